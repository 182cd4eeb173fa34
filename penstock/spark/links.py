"""Sockets that carry whole messages between the driver and the slots of one attempt, and among the slots.

Every connection begins with a handshake by which both sides show that they know the attempt's secret. A message is its
length, three numbers that say what it belongs to (attempt, epoch, stage), and its body.
"""

from __future__ import annotations

import os
import queue
import selectors
import socket
import struct
import tempfile
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import NamedTuple

from penstock.spark.encryption import Encrypted, Identity, encrypted

HANDSHAKE_SECONDS = 10
LONGEST_BODY = 1 << 40
_HEADER = struct.Struct("!Qqqq")
_AT_ONCE = 1 << 20
_BUFFER = 1 << 20
_READ_AHEAD = 1 << 16
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}
"""A machine that disappears silently is noticed after a minute and a half, not after hours, also by the slots."""


class LinkLost(Exception):
    """The other side of a link is gone, or violates the protocol."""


class Tag(NamedTuple):
    """What a message belongs to."""

    attempt: int
    epoch: int
    stage: int


@dataclass(frozen=True)
class Address:
    """Where a process listens: a path for peers on the same machine, and a host and port, if any, for the others."""

    machine: str
    path: str
    host: str = ""
    port: int = 0


def this_machine() -> str:
    """A name that only processes with the same file system and kernel share."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as boot:
        return f"{socket.gethostname()} {boot.read().strip()}"
    return socket.gethostname()


class Listener:
    """Accepts connections from processes that know the secret."""

    def __init__(
        self, secret: bytes, host: str | None = None, bind: str = "", identity: Identity | None = None
    ) -> None:
        """`host` is this machine's name on the network; None if no other machine will connect.

        With an identity, connections over the network are encrypted.
        """
        self._secret = secret
        self._identity = identity
        self._folder = tempfile.mkdtemp(prefix="penstock-link-", dir=_short_folder())
        path = os.path.join(self._folder, "s")
        local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        local.bind(path)
        local.listen(128)
        self._sockets = [local]
        port = 0
        if host is not None:
            remote = socket.create_server((bind, 0), backlog=128)
            port = remote.getsockname()[1]
            self._sockets.append(remote)
        self.address = Address(this_machine(), path, host or "", port)
        self._selector = selectors.DefaultSelector()
        for listening in self._sockets:
            listening.setblocking(False)
            self._selector.register(listening, selectors.EVENT_READ)

    def accept(self, seconds: float) -> socket.socket | None:
        """The next connection, not yet trusted; None if none came in time. Raises OSError once closed."""
        for key, _ in self._selector.select(seconds):
            with suppress(BlockingIOError):
                accepted, _ = key.fileobj.accept()  # type: ignore[union-attr]
                accepted.setblocking(True)
                return accepted  # type: ignore[no-any-return]
        return None

    def trust(self, accepted: socket.socket) -> socket.socket | None:
        """The connection after its handshake; None, and the connection closed, for a stranger."""
        if self._identity is not None and accepted.family != socket.AF_UNIX:
            _tune(accepted)
            try:
                accepted = encrypted(accepted, self._identity, True, HANDSHAKE_SECONDS)
            except OSError:
                return None
        return accepted if _shaken(accepted, self._secret, first=True) else None

    def close(self) -> None:
        for listening in self._sockets:
            with suppress(OSError, KeyError, ValueError):
                self._selector.unregister(listening)
            listening.close()
        with suppress(OSError):
            os.unlink(self.address.path)
            os.rmdir(self._folder)


def _short_folder() -> str:
    """Where sockets can lie: the system allows paths of about a hundred characters."""
    usual = tempfile.gettempdir()
    return usual if len(usual) < 60 or not os.access("/tmp", os.W_OK) else "/tmp"


def connect(address: Address, secret: bytes, identity: Identity | None = None) -> socket.socket:
    """A trusted connection, by path on the same machine and over the network otherwise. Raises LinkLost."""
    made = _by_path(address) or _by_network(address, identity)
    if not _shaken(made, secret, first=False):
        raise LinkLost("the other side does not know the secret of this attempt")
    return made


def _by_network(address: Address, identity: Identity | None) -> socket.socket:
    try:
        made = socket.create_connection((address.host, address.port), timeout=HANDSHAKE_SECONDS)
        if identity is not None:
            _tune(made)
            return encrypted(made, identity, False, HANDSHAKE_SECONDS)
    except OSError as error:
        raise LinkLost(f"{address.host}:{address.port} cannot be reached: {error}") from None
    made.settimeout(None)
    return made


def _by_path(address: Address) -> socket.socket | None:
    if address.machine != this_machine() or not os.path.exists(address.path):
        return None
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.connect(address.path)
    except OSError as error:
        made.close()
        if address.port:
            return None
        raise LinkLost(f"nobody listens any more: {error}") from None
    return made


def _shaken(sock: socket.socket, secret: bytes, first: bool) -> bool:
    """Each side challenges the other. Python's own multiprocessing does the same."""
    _tune(sock)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", HANDSHAKE_SECONDS, 0))
    connection: Connection = Connection(os.dup(sock.fileno()))
    try:
        for challenges in (first, not first):
            (deliver_challenge if challenges else answer_challenge)(connection, secret)
    except (AuthenticationError, OSError, EOFError, AssertionError, ValueError):
        sock.close()
        return False
    finally:
        connection.close()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 0))
    return True


def _tune(sock: socket.socket) -> None:
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            if hasattr(socket, name):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER)


# --- whole messages ---
def send(sock: socket.socket, tag: Tag, body: bytes) -> None:
    """Send a message on a blocking socket. Raises LinkLost."""
    try:
        sock.sendall(_HEADER.pack(len(body), *tag) + body if len(body) < _AT_ONCE else _HEADER.pack(len(body), *tag))
        if len(body) >= _AT_ONCE:
            sock.sendall(body)
    except OSError as error:
        raise LinkLost(str(error)) from None


def framed(tag: Tag, body: bytes) -> bytes:
    """A message as it travels."""
    return _HEADER.pack(len(body), *tag) + body


def receive(sock: socket.socket) -> tuple[Tag, bytearray]:
    """The next message of a blocking socket, and not a byte of the following one. Raises LinkLost."""
    inlet = Inlet(sock, ahead=False)
    inlet.read()
    return inlet.message()


class Inlet:
    """Reads one message after the other from a socket: a small one with a single call, even if it arrived early."""

    def __init__(self, sock: socket.socket, ahead: bool = True) -> None:
        """With `ahead` it may read, and keep, the beginning of what follows a message."""
        self.sock = sock
        self._at_once = _READ_AHEAD if ahead else _HEADER.size
        self._unparsed = b""
        self._tag: Tag | None = None
        self._body = bytearray()
        self._got = 0

    def read(self, flags: int = 0) -> bool:
        """Take what comes until a message is complete, and return whether it is.

        It is not if the socket does not block, or the flags say so. Raises LinkLost at the end of the connection.
        """
        while not self.is_complete():
            try:
                count = self._take(flags)
            except BlockingIOError:
                return False
            except OSError as error:
                raise LinkLost(str(error)) from None
            if not count:
                middle = self._unparsed or self._tag is not None
                raise LinkLost("cut off in the middle of a message" if middle else "the connection was closed")
        return True

    def _take(self, flags: int) -> int:
        if self._tag is not None:
            count = self.sock.recv_into(memoryview(self._body)[self._got :], 0, flags)
            self._got += count
            return count
        said = self.sock.recv(self._at_once - len(self._unparsed), flags)
        self._unparsed += said
        return len(said)

    def is_complete(self) -> bool:
        """Whether a whole message is here already, so that nothing needs to come for it."""
        if self._tag is None and len(self._unparsed) >= _HEADER.size:
            self._begin_body()
        return self._tag is not None and self._got == len(self._body)

    def _begin_body(self) -> None:
        length, *tag = _HEADER.unpack_from(self._unparsed)
        if length > LONGEST_BODY:
            raise LinkLost(f"a message of {length} bytes cannot be")
        self._tag = Tag(*tag)
        self._body = bytearray(length)
        there = self._unparsed[_HEADER.size : _HEADER.size + length]
        self._body[: len(there)] = there
        self._got = len(there)
        self._unparsed = self._unparsed[_HEADER.size + length :]

    def message(self) -> tuple[Tag, bytearray]:
        """The complete message; the next one begins."""
        assert self._tag is not None
        tag, body = self._tag, self._body
        self._tag, self._body, self._got = None, bytearray(), 0
        return tag, body


class Outlet:
    """The unsent rest of some messages; sends without waiting for the other side."""

    def __init__(self, sock: socket.socket, tag: Tag, bodies: Iterable[bytes]) -> None:
        self.sock = sock
        self._parts: list[memoryview] = []
        for body in bodies:
            header = _HEADER.pack(len(body), *tag)
            parts = [header + body] if len(body) < _READ_AHEAD else [header, body]
            self._parts += map(memoryview, parts)

    def write(self) -> bool:
        """Send what the other side takes; whether that was all. Raises LinkLost."""
        while self._parts:
            try:
                count = self.sock.sendmsg(self._parts, (), socket.MSG_DONTWAIT)
            except BlockingIOError:
                return False
            except OSError as error:
                raise LinkLost(str(error)) from None
            while self._parts and count >= len(self._parts[0]):
                count -= len(self._parts.pop(0))
            if self._parts and count:
                self._parts[0] = self._parts[0][count:]
        return True


def closed(sockets: Iterable[socket.socket]) -> None:
    """Close connections so that the other sides notice at once, even if another thread reads from them here."""
    for sock in sockets:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()


def say_farewell(sock: socket.socket) -> None:
    """Close a connection at the end of this process, which must not keep back what was said last."""
    if isinstance(sock, Encrypted):
        sock.close_when_sent(HANDSHAKE_SECONDS)
    else:
        sock.close()


class Door:
    """Accepts peers that know the secret and identify themselves; one thread waits for them, and another greets
    each."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._guests: queue.SimpleQueue[tuple[bytes, socket.socket]] = queue.SimpleQueue()
        self._open = True
        threading.Thread(target=self._wait, name="penstock door", daemon=True).start()

    @property
    def address(self) -> Address:
        return self._listener.address

    def _wait(self) -> None:
        while self._open:
            try:
                stranger = self._listener.accept(0.5)
            except (OSError, ValueError):
                return
            if stranger is not None:
                threading.Thread(target=self._greet, args=(stranger,), name="penstock greeting", daemon=True).start()

    def _greet(self, stranger: socket.socket) -> None:
        peer = self._listener.trust(stranger)
        if peer is not None:
            try:
                _, said = receive(peer)
            except LinkLost:
                peer.close()
                return
            self._guests.put((bytes(said), peer))

    def guest(self, seconds: float) -> tuple[bytes, socket.socket] | None:
        """What the next peer said, and its connection; None if none came in time."""
        try:
            return self._guests.get(timeout=seconds)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Accept no more peers; those that wait are turned away."""
        self._open = False
        self._listener.close()
        while (guest := self.guest(0)) is not None:
            guest[1].close()
