"""Sockets that carry whole messages between the driver and the slots of one attempt, and among the slots.

Every connection begins with a handshake by which both sides show that they know the attempt's secret. A message
consists of its length, its tag (attempt, epoch and stage), and its body.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from penstock.spark.links.encryption import Encrypted, Identity, encrypt
from penstock.spark.links.handshake import CHALLENGE_BYTES, PROOF_BYTES, Guest

HANDSHAKE_SECONDS = 10
"""Time, in seconds, in which a peer must show that it knows the secret and introduce itself."""
LONGEST_BODY = 1 << 40
_HEADER = struct.Struct("!Qqqq")
_AT_ONCE = 1 << 20
_BUFFER = 1 << 20
_READ_AHEAD = 1 << 16
_PROBES = 3
"""Number of probes that an idle connection sends before a silent peer counts as lost."""
_TCP_INFO = struct.Struct("=24xI28xI")
"""Layout of two figures of the kernel: unacknowledged segments, and milliseconds since the last answer."""
UNREACHABLE = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH)


class LinkLost(Exception):
    """Raised if the other side of a link is gone or violates the protocol."""

    def __init__(self, why: str, is_unreachable: bool = False, slot: int | None = None) -> None:
        """Create the error. `is_unreachable`: the other host acknowledges nothing. `slot`: the slot over there."""
        super().__init__(why)
        self.is_unreachable = is_unreachable
        self.slot = slot


class Tag(NamedTuple):
    """The attempt, epoch and stage to which a message belongs."""

    attempt: int
    epoch: int
    stage: int


@dataclass(frozen=True)
class Address:
    """The address of a listening process: a path for its own machine, and a host and port, if any, for others."""

    machine: str
    path: str
    host: str = ""
    port: int = 0


def this_machine() -> str:
    """Return a name that only processes with the same file system and kernel share."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as boot:
        return f"{socket.gethostname()} {boot.read().strip()}"
    return socket.gethostname()


def connect(address: Address, secret: bytes, identity: Identity | None = None) -> socket.socket:
    """Return a trusted connection: by path on the same machine, otherwise over the network. Raise LinkLost."""
    made = _by_path(address) or _by_network(address, identity)
    if not _shake_hands(made, secret):
        raise LinkLost("the other process does not know the secret of this attempt")
    return made


def host_towards(address: Address) -> str:
    """Return this machine's address on the network over which it reaches another address. Raise LinkLost."""
    try:
        [(family, kind, _, _, target), *_] = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_DGRAM)
        with socket.socket(family, kind) as unused:
            unused.connect(target)  # sends nothing: a datagram socket only looks up its route
            return str(unused.getsockname()[0])
    except OSError as error:
        raise LinkLost(f"{address.host}:{address.port} cannot be reached: {error}") from None


def _by_network(address: Address, identity: Identity | None) -> socket.socket:
    try:
        made = socket.create_connection((address.host, address.port), timeout=HANDSHAKE_SECONDS)
        if identity is not None:
            tune(made)
            return encrypt(made, identity, False, HANDSHAKE_SECONDS)
    except OSError as error:
        raise LinkLost(f"{address.host}:{address.port} cannot be reached: {error}") from None
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
        raise LinkLost(f"the listener is closed: {error}") from None
    return made


def _shake_hands(sock: socket.socket, secret: bytes) -> bool:
    """Prove knowledge of the secret to the host. Return True if the host knows it, else close the connection."""
    tune(sock)
    sock.settimeout(HANDSHAKE_SECONDS)
    try:
        guest = Guest(secret, _exactly(sock, CHALLENGE_BYTES))
        sock.sendall(guest.reply)
        if guest.trusts(_exactly(sock, PROOF_BYTES)):
            sock.settimeout(None)
            return True
    except OSError:
        pass  # a host that does not know the secret closes the connection
    sock.close()
    return False


def _exactly(sock: socket.socket, count: int) -> bytes:
    """Read this many bytes from a blocking socket."""
    got = b""
    while len(got) < count:
        said = sock.recv(count - len(got))
        if not said:
            raise ConnectionResetError("the connection was closed")
        got += said
    return got


def tune(sock: socket.socket) -> None:
    """Send small messages at once, and set buffers large enough for fast transfers."""
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER)


def limit_silence(sock: socket.socket, seconds: float) -> None:
    """Make the system end a connection whose other host acknowledges nothing for this long.

    Without this, the loss of a host is noticed only after the kernel's retransmissions, which take about a quarter of
    an hour. A peer whose process is busy or stopped is not affected, because its kernel acknowledges.
    """
    network = sock.network if isinstance(sock, Encrypted) else sock
    if network.family == socket.AF_UNIX:
        return
    between = max(1, int(seconds / _PROBES))
    options = {"TCP_KEEPIDLE": between, "TCP_KEEPINTVL": between, "TCP_KEEPCNT": _PROBES}
    options["TCP_USER_TIMEOUT"] = max(1, int(seconds * 1000))
    network.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in options.items():
        if hasattr(socket, name):
            network.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def silence_of(sock: socket.socket) -> float:
    """Return the seconds for which the other host has acknowledged no data.

    It is 0 if all data are acknowledged, or if the system does not tell.
    """
    network = sock.network if isinstance(sock, Encrypted) else sock
    try:
        told = network.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        unacknowledged, last_heard = _TCP_INFO.unpack(told)
    except (OSError, AttributeError, struct.error):
        return 0.0
    return last_heard / 1000 if unacknowledged else 0.0


def loss_of(error: OSError) -> LinkLost:
    """Return a LinkLost that describes an error of a connection in plain words."""
    if error.errno in UNREACHABLE:
        return LinkLost(f"its host acknowledges nothing ({error.strerror})", is_unreachable=True)
    return LinkLost(str(error))


# --- whole messages ---
def send(sock: socket.socket, tag: Tag, body: bytes) -> None:
    """Send a message on a blocking socket. Raise LinkLost."""
    try:
        sock.sendall(_HEADER.pack(len(body), *tag) + body if len(body) < _AT_ONCE else _HEADER.pack(len(body), *tag))
        if len(body) >= _AT_ONCE:
            sock.sendall(body)
    except OSError as error:
        raise loss_of(error) from None


def add_header(tag: Tag, body: bytes) -> bytes:
    """Return a message with its header."""
    return _HEADER.pack(len(body), *tag) + body


def receive(sock: socket.socket) -> tuple[Tag, bytearray]:
    """Read the next message of a blocking socket, and no byte of the following one. Raise LinkLost."""
    inlet = Inlet(sock, ahead=False)
    inlet.read()
    return inlet.message()


class Inlet:
    """Reads one message after the other from a socket. A small message takes a single call of the system."""

    def __init__(self, sock: socket.socket, ahead: bool = True) -> None:
        """Create a reader. With `ahead`, it may read and keep bytes that follow a message."""
        self.sock = sock
        self._at_once = _READ_AHEAD if ahead else _HEADER.size
        self._unparsed = b""
        self._tag: Tag | None = None
        self._body = bytearray()
        self._got = 0

    def read(self, flags: int = 0) -> bool:
        """Read until a message is complete, and return True if it is.

        Return False if the rest has not arrived and reading would block. Raise LinkLost at the end of the connection.
        """
        while not self.is_complete():
            try:
                count = self._take(flags)
            except BlockingIOError:
                return False
            except OSError as error:
                raise loss_of(error) from None
            if not count:
                if isinstance(self.sock, Encrypted) and self.sock.error is not None:
                    raise loss_of(self.sock.error)
                middle = self._unparsed or self._tag is not None
                raise LinkLost(
                    "the connection ended in the middle of a message" if middle else "the connection was closed"
                )
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
        """Return True if a whole message has been read already."""
        if self._tag is None and len(self._unparsed) >= _HEADER.size:
            self._begin_body()
        return self._tag is not None and self._got == len(self._body)

    def _begin_body(self) -> None:
        length, *tag = _HEADER.unpack_from(self._unparsed)
        if length > LONGEST_BODY:
            raise LinkLost(f"a message cannot have {length} bytes")
        self._tag = Tag(*tag)
        self._body = bytearray(length)
        there = self._unparsed[_HEADER.size : _HEADER.size + length]
        self._body[: len(there)] = there
        self._got = len(there)
        self._unparsed = self._unparsed[_HEADER.size + length :]

    def message(self) -> tuple[Tag, bytearray]:
        """Return the complete message, and begin the next one."""
        assert self._tag is not None
        tag, body = self._tag, self._body
        self._tag, self._body, self._got = None, bytearray(), 0
        return tag, body


class Outlet:
    """The unsent rest of some messages. It is sent without waiting for the other side."""

    def __init__(self, sock: socket.socket, tag: Tag, bodies: Iterable[bytes]) -> None:
        self.sock = sock
        self._parts: list[memoryview] = []
        for body in bodies:
            header = _HEADER.pack(len(body), *tag)
            parts = [header + body] if len(body) < _READ_AHEAD else [header, body]
            self._parts += map(memoryview, parts)

    def write(self) -> bool:
        """Send as much as the other side takes. Return True if everything is sent. Raise LinkLost."""
        while self._parts:
            try:
                count = self.sock.sendmsg(self._parts, (), socket.MSG_DONTWAIT)
            except BlockingIOError:
                return False
            except OSError as error:
                raise loss_of(error) from None
            while self._parts and count >= len(self._parts[0]):
                count -= len(self._parts.pop(0))
            if self._parts and count:
                self._parts[0] = self._parts[0][count:]
        return True


def close_all(sockets: Iterable[socket.socket]) -> None:
    """Close connections so that the other sides notice at once, even if another thread reads from them here."""
    for sock in sockets:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()


def has_news(sock: socket.socket) -> bool:
    """Return True if an unread message, or the end of the connection, has come from the other side."""
    news = select.poll()  # unlike select(), it takes descriptors of any number
    news.register(sock, select.POLLIN)
    return bool(news.poll(0))


def say_farewell(sock: socket.socket) -> None:
    """Close a connection at the end of this process, after its last messages are on their way."""
    if isinstance(sock, Encrypted):
        sock.close_when_sent(HANDSHAKE_SECONDS)
    else:
        sock.close()
