"""Encrypted links between machines. Each attempt has its own certificate, and its processes accept no other.

The engine reads and writes plain sockets in many ways. An encrypted link is therefore a pair of connected sockets: the
engine has one end, and a thread carries bytes between the other end and the network through TLS.
"""

from __future__ import annotations

import datetime
import ipaddress
import select
import socket
import ssl
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass

from penstock.base.libraries import optional_library

_AT_ONCE = 1 << 18
_VALID_DAYS = 3650
"""Validity of a certificate, in days. An attempt may run for years; only it knows its certificate."""


@dataclass(frozen=True)
class Identity:
    """A certificate and its key in PEM, by which the processes of one attempt recognise each other."""

    certificate: bytes
    key: bytes

    def context(self, server: bool) -> ssl.SSLContext:
        """Return a TLS context with which both sides show the certificate and accept only the same one."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=self.certificate.decode())
        # Python's ssl reads a key from files only; this one is readable for its owner alone.
        with tempfile.NamedTemporaryFile() as file:
            file.write(self.certificate + self.key)
            file.flush()
            context.load_cert_chain(file.name)
        return context


def new_identity(address: str | None = None) -> Identity:
    """Create a self-signed certificate. With an address, clients that verify the host's address accept it, too."""
    optional_library("cryptography", "encrypted links (security.ssl.internal.enabled) need cryptography", "tls")
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "penstock attempt")])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))  # clocks of machines differ
        .not_valid_after(now + datetime.timedelta(days=_VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    )
    if address is not None:
        known_as = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        builder = builder.add_extension(known_as, critical=False)
    certificate = builder.sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    return Identity(
        certificate.public_bytes(pem),
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def encrypt(sock: socket.socket, identity: Identity, server: bool, seconds: float) -> socket.socket:
    """Return a plain socket to the peer that is carried over a new TLS connection.

    Raise OSError and close the connection if the TLS handshake fails or takes longer than this time.
    """
    sock.settimeout(seconds)
    try:
        tls = wrap(sock, identity, server)
        tls.do_handshake()
    except OSError:
        sock.close()
        raise
    return tunnel(tls)


def wrap(sock: socket.socket, identity: Identity, server: bool) -> ssl.SSLSocket:
    """Wrap a socket in TLS, without the handshake."""
    return identity.context(server).wrap_socket(sock, server_side=server, do_handshake_on_connect=False)


def tunnel(tls: ssl.SSLSocket) -> Encrypted:
    """Return the engine's end of a connection after its TLS handshake."""
    ours, theirs = socket.socketpair()
    return Encrypted(ours, Tunnel(tls, theirs))


class Encrypted(socket.socket):
    """The engine's end of an encrypted connection."""

    def __init__(self, ours: socket.socket, tunnel: Tunnel) -> None:
        super().__init__(fileno=ours.detach())
        self._tunnel = tunnel
        tunnel.start()

    @property
    def network(self) -> socket.socket:
        """Connection to the other host."""
        return self._tunnel.network

    @property
    def error(self) -> OSError | None:
        """Error that ended the connection to the other host, or None."""
        return self._tunnel.error

    def close_when_sent(self, seconds: float) -> None:
        """Close the connection, and wait until its last bytes are sent, since this process may be about to end."""
        self.close()
        self._tunnel.join(seconds)


class Tunnel(threading.Thread):
    """Thread that carries bytes both ways until one side ends."""

    def __init__(self, tls: ssl.SSLSocket, plain: socket.socket) -> None:
        super().__init__(name="penstock tunnel", daemon=True)
        self._tls, self._plain = tls, plain
        self.error: OSError | None = None
        self._inward = self._outward = memoryview(b"")
        tls.setblocking(False)
        plain.setblocking(False)

    @property
    def network(self) -> socket.socket:
        """End of the tunnel that is connected to the other host."""
        return self._tls

    def run(self) -> None:
        try:
            while self._carry():
                pass
        except OSError as error:
            self.error = error  # a side that is cut off has ended
        for sock in (self._plain, self._tls):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _carry(self) -> bool:
        """Carry the bytes that move without waiting, or wait if no bytes move. Return False at the end."""
        moved = False
        with suppress(BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if not self._inward:
                self._inward = memoryview(self._tls.recv(_AT_ONCE))
                if not self._inward:
                    return False
                moved = True
        with suppress(BlockingIOError):
            if self._inward:
                self._inward = self._inward[self._plain.send(self._inward) :]
                moved = True
        with suppress(BlockingIOError):
            if not self._outward:
                self._outward = memoryview(self._plain.recv(_AT_ONCE))
                if not self._outward:
                    return False
                moved = True
        with suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if self._outward:
                self._outward = self._outward[self._tls.send(self._outward) :]
                moved = True
        if not moved:
            self._wait()
        return True

    def _wait(self) -> None:
        """Wait until one side can be read or written again."""
        poll = select.poll()
        if self._inward or not self._outward:
            poll.register(self._plain, _events(not self._outward, bool(self._inward)))
        if self._outward or not self._inward:
            poll.register(self._tls, _events(not self._inward, bool(self._outward)))
        poll.poll()


def _events(reads: bool, writes: bool) -> int:
    return (select.POLLIN if reads else 0) | (select.POLLOUT if writes else 0)
