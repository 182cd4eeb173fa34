"""The driver's and the slots' listening ends: they accept peers that know the secret of the attempt."""

from __future__ import annotations

import errno
import os
import queue
import selectors
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from penstock.spark.links.encryption import Identity, tunnel, wrap
from penstock.spark.links.handshake import REPLY_BYTES, Host
from penstock.spark.links.links import HANDSHAKE_SECONDS, Address, Inlet, LinkLost, this_machine, tune

MOST_STRANGERS = 256
"""Greatest number of open connections whose peers have not introduced themselves yet."""
_LOOK_SECONDS = 0.5
"""Time, in seconds, between two checks of a door for expired connections and for its own end."""


class Listener:
    """Accepts connections from processes that know the secret."""

    def __init__(
        self, secret: bytes, host: str | None = None, bind: str = "", identity: Identity | None = None
    ) -> None:
        """Start to listen. `host` is this machine's name on the network, or None if no other machine will connect.

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
            family = socket.AF_INET6 if ":" in bind else socket.AF_INET
            remote = socket.create_server((bind, 0), family=family, backlog=128)
            port = remote.getsockname()[1]
            self._sockets.append(remote)
        self.address = Address(this_machine(), path, host or "", port)
        for listening in self._sockets:
            listening.setblocking(False)

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        """Sockets on which connections arrive."""
        return tuple(self._sockets)

    def applicant(self, accepted: socket.socket) -> Applicant:
        """Begin the handshake with a peer that has connected."""
        on_network = accepted.family != socket.AF_UNIX
        return Applicant(accepted, self._secret, self._identity if on_network else None)

    def close(self) -> None:
        """Stop listening, and delete the path."""
        for listening in self._sockets:
            listening.close()
        with suppress(OSError):
            os.unlink(self.address.path)
            os.rmdir(self._folder)


def _short_folder() -> str:
    """Return a folder for sockets, whose paths may have only about a hundred characters."""
    usual = tempfile.gettempdir()
    return usual if len(usual) < 60 or not os.access("/tmp", os.W_OK) else "/tmp"


class Applicant:
    """A connection whose peer has not proved yet that it knows the secret. It is read without waiting, and expires."""

    def __init__(self, sock: socket.socket, secret: bytes, identity: Identity | None) -> None:
        """Begin the handshake. With an identity, the connection is encrypted first. Raise OSError."""
        tune(sock)
        sock.setblocking(False)
        self.deadline = time.monotonic() + HANDSHAKE_SECONDS
        self.sock = sock if identity is None else wrap(sock, identity, server=True)
        self.hello = b""
        """First message of the peer, empty until it has come."""
        self._host = Host(secret)
        self._reply = b""
        self._inlet: Inlet | None = None
        self.advance: Callable[[], bool] = self._encrypt if identity is not None else self._prove
        """Next step of the handshake. It returns True if `hello` is complete, and raises OSError or LinkLost."""
        if identity is None:
            sock.sendall(self._host.challenge)

    def _encrypt(self) -> bool:
        """Continue the TLS handshake. A peer with the attempt's certificate may use a thread from then on."""
        assert isinstance(self.sock, ssl.SSLSocket)
        try:
            self.sock.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        self.sock = tunnel(self.sock)
        self.sock.setblocking(False)
        self.sock.sendall(self._host.challenge)
        self.advance = self._prove
        return False

    def _prove(self) -> bool:
        with suppress(BlockingIOError):
            said = self.sock.recv(REPLY_BYTES - len(self._reply))
            if not said:
                raise LinkLost("the connection was closed")
            self._reply += said
        if len(self._reply) < REPLY_BYTES:
            return False
        proof = self._host.answer(self._reply)
        if proof is None:
            raise LinkLost("it does not know the secret of this attempt")
        self.sock.sendall(proof)
        self._inlet = Inlet(self.sock, ahead=False)
        self.advance = self._introduce
        return self._introduce()

    def _introduce(self) -> bool:
        assert self._inlet is not None
        if not self._inlet.read():
            return False
        self.hello = bytes(self._inlet.message()[1])
        self.sock.setblocking(True)
        return True


class Door:
    """Accepts peers that know the secret and introduce themselves. One thread handles all that have not done so yet."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._guests: queue.SimpleQueue[tuple[bytes, socket.socket]] = queue.SimpleQueue()
        self._open = True
        self._applicants: dict[socket.socket, Applicant] = {}
        """Connections whose peers have not introduced themselves, the oldest first."""
        self._selector = selectors.DefaultSelector()
        for listening in listener.sockets:
            self._selector.register(listening, selectors.EVENT_READ)
        threading.Thread(target=self._serve, name="penstock door", daemon=True).start()

    @property
    def address(self) -> Address:
        """Address of the listener."""
        return self._listener.address

    def _serve(self) -> None:
        while self._open:
            try:
                ready = [key.fileobj for key, _ in self._selector.select(_LOOK_SECONDS)]
            except (OSError, ValueError):
                break  # the listener is closed
            for sock in ready:
                assert isinstance(sock, socket.socket)
                if sock in self._applicants:
                    self._hear(sock)
                else:
                    self._accept(sock)
            self._show_out()
        for sock in list(self._applicants):
            self._dismiss(sock)
        self._selector.close()

    def _accept(self, listening: socket.socket) -> None:
        """Accept a connection. If there are too many unknown peers, close the oldest connection."""
        try:
            accepted, _ = listening.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE) and self._applicants:
                self._dismiss(next(iter(self._applicants)))
            return
        try:
            applicant = self._listener.applicant(accepted)
        except OSError:
            accepted.close()
            return
        self._await(applicant)
        if len(self._applicants) > MOST_STRANGERS:
            self._dismiss(next(iter(self._applicants)))

    def _await(self, applicant: Applicant) -> None:
        self._applicants[applicant.sock] = applicant
        self._selector.register(applicant.sock, selectors.EVENT_READ)

    def _hear(self, sock: socket.socket) -> None:
        applicant = self._applicants[sock]
        try:
            is_known = applicant.advance()
        except (OSError, LinkLost):
            self._dismiss(sock)
            return
        if is_known or applicant.sock is not sock:
            self._forget(sock)
        if is_known:
            self._guests.put((applicant.hello, applicant.sock))
        elif applicant.sock is not sock:
            self._await(applicant)

    def _show_out(self) -> None:
        now = time.monotonic()
        for sock in [sock for sock, one in self._applicants.items() if one.deadline <= now]:
            self._dismiss(sock)

    def _forget(self, sock: socket.socket) -> None:
        del self._applicants[sock]
        with suppress(OSError, KeyError, ValueError):
            self._selector.unregister(sock)

    def _dismiss(self, sock: socket.socket) -> None:
        applicant = self._applicants[sock]
        self._forget(sock)
        applicant.sock.close()

    def guest(self, seconds: float) -> tuple[bytes, socket.socket] | None:
        """Return the first message of the next peer, and its connection; None if no peer came in time."""
        try:
            return self._guests.get(timeout=seconds)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Accept no more peers, and close the connections of waiting ones."""
        self._open = False
        self._listener.close()
        while (guest := self.guest(0)) is not None:
            guest[1].close()
