"""TLS for queryable state: a server's certificate, and a client's connection that several threads can use."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import ConfigurationError


@dataclass(unsafe_hash=True)
class Certificate:
    """A server's certificate and key, as PEM files."""

    enabled: bool = False
    certificate: str | None = None
    key: str | None = None
    key_password: str | None = field(default=None, repr=False)

    def context(self) -> ssl.SSLContext | None:
        """Return the server's TLS context, or None if TLS is off.

        Raise ConfigurationError if the files cannot be used.
        """
        if not self.enabled:
            return None
        if self.certificate is None or self.key is None:
            raise ConfigurationError(
                "queryable-state.ssl.enabled needs PEM files: set queryable-state.ssl.certificate and "
                "queryable-state.ssl.key"
            )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.certificate, self.key, lambda: self.key_password or "")
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"the certificate '{self.certificate}' and the key '{self.key}' of queryable-state.ssl cannot be "
                f"used: {error}"
            ) from None
        return context


def trusting(tls: bool | str | Path | ssl.SSLContext) -> ssl.SSLContext | None:
    """Return a client's TLS context.

    `tls` selects no TLS (False), the authorities of this machine (True) or of a file (a path), or a context.
    """
    if tls is False:
        return None
    if isinstance(tls, ssl.SSLContext):
        return tls
    return ssl.create_default_context(cafile=None if tls is True else str(tls))


class EncryptedSocket:
    """A connection of a client in which one thread reads while others write: OpenSSL does not allow both at once."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, host: str) -> None:
        """Perform the TLS handshake. Raise OSError if it fails, also for errors of TLS."""
        self._sock = context.wrap_socket(sock, server_hostname=host)
        self._timeout = self._sock.gettimeout()
        self._sock.setblocking(False)
        self._one = threading.Lock()

    def recv(self, size: int) -> bytes:
        while True:
            with self._one:
                try:
                    return self._sock.recv(size)
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    pass
            self._await(select.POLLIN)

    def sendall(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            with self._one:
                try:
                    left = left[self._sock.send(left) :]
                    continue
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    pass
            self._await(select.POLLOUT)

    def _await(self, event: int) -> None:
        ready = select.poll()
        ready.register(self._sock, event)
        if not ready.poll(None if self._timeout is None else 1000 * self._timeout):
            raise TimeoutError("timed out")

    def pending(self) -> int:
        """Return the number of decrypted bytes that wait to be read. Polling the socket does not show them."""
        with self._one:
            return self._sock.pending()

    def settimeout(self, seconds: float | None) -> None:
        self._timeout = seconds

    def fileno(self) -> int:
        return self._sock.fileno()

    def setsockopt(self, *option: Any) -> None:
        self._sock.setsockopt(*option)

    def shutdown(self, how: int) -> None:
        self._sock.shutdown(how)

    def close(self) -> None:
        self._sock.close()
