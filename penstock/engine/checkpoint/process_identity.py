"""The identity of a process, by which another process can tell whether it is still alive."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True)
class Whereabouts:
    """The identity of a process, which differs from a later process with the same process id."""

    host: str
    machine: str
    """Text that is equal for processes that see each other: in one boot of a machine, and in one container."""
    pid: int
    started: str
    """Start time of the process in ticks of the system; empty if the system does not tell it."""

    @classmethod
    def here(cls) -> Whereabouts:
        """Return the identity of this process."""
        return cls(socket.gethostname(), _machine(), os.getpid(), _stat(os.getpid())[1])

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Whereabouts:
        """Return the identity that `described` turned into plain data."""
        return cls(described["host"], described["machine"], described["pid"], described["started"])

    def as_dict(self) -> dict[str, Any]:
        """Return this identity as plain data, for JSON."""
        return asdict(self)

    def is_here(self) -> bool:
        """Return True if this is the identity of the calling process."""
        return (self.machine, self.pid, self.started) == (_machine(), os.getpid(), _stat(os.getpid())[1])

    def lives(self) -> bool | None:
        """Return True if the process exists, or None if that is not visible here. A stopped process counts as alive."""
        if self.machine != _machine():
            return None
        state, started = _stat(self.pid)
        if started and self.started:
            return started == self.started and state not in "ZX"
        return _takes_signals(self.pid)


@cache
def _machine() -> str:
    """Return a text for one boot of a machine and one namespace of processes, in which process ids are unique."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as boot:
        return f"{boot.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    return socket.gethostname()


def _stat(pid: int) -> tuple[str, str]:
    """Return a process's state, as the letter that `ps` shows, and its start in ticks; empty texts without /proc."""
    with suppress(OSError), open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
        return fields[0], fields[19]
    return "", ""


def _takes_signals(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
