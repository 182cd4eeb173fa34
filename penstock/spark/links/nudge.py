"""Wakes a thread that waits for sockets."""

from __future__ import annotations

import socket
from contextlib import suppress


class Nudge:
    """A socket to wait for beside others. After the first nudge, further ones cost nothing until the next `reset`."""

    def __init__(self) -> None:
        self.sock, self._other = socket.socketpair()
        self.sock.setblocking(False)
        self._other.setblocking(False)
        self._given = False

    def give(self) -> None:
        """Wake who waits; from any thread."""
        if not self._given:
            self._given = True
            with suppress(OSError):  # there are nudges enough, or nobody waits any more
                self._other.send(b"!")

    def reset(self) -> None:
        """The next nudge wakes again. What it is about is to be looked for after this call."""
        self._given = False

    def drain(self) -> None:
        with suppress(OSError):
            self.sock.recv(64)
