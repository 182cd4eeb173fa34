"""A way to wake a thread that waits for sockets."""

from __future__ import annotations

import socket
from contextlib import suppress


class Nudge:
    """A socket that wakes a thread which waits for several sockets.

    After the first nudge, further ones cost nothing until the next `reset`.
    """

    def __init__(self) -> None:
        self.sock, self._other = socket.socketpair()
        self.sock.setblocking(False)
        self._other.setblocking(False)
        self._given = False

    def give(self) -> None:
        """Wake the waiting thread. Any thread may call this."""
        if not self._given:
            self._given = True
            with suppress(OSError):  # there are enough nudges, or no thread waits any more
                self._other.send(b"!")

    def reset(self) -> None:
        """Let the next nudge wake again. Look for the reason of earlier nudges after this call, not before."""
        self._given = False

    def drain(self) -> None:
        """Read the byte of the last nudge, so that the socket is quiet again."""
        with suppress(OSError):
            self.sock.recv(64)
