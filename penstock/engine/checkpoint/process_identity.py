"""Where a process runs, and whether it is still alive, as far as another process can see that."""

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
    """Identifies one process among all others, including later ones with the same process id."""

    host: str
    machine: str
    """Equal for processes that see each other: the same boot of the same machine, the same container."""
    pid: int
    started: str
    """When the process began, as the system counts; empty where the system does not tell."""

    @classmethod
    def here(cls) -> Whereabouts:
        """Where this process runs."""
        return cls(socket.gethostname(), _machine(), os.getpid(), _stat(os.getpid())[1])

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Whereabouts:
        """The whereabouts that `described` turned into plain data."""
        return cls(described["host"], described["machine"], described["pid"], described["started"])

    def described(self) -> dict[str, Any]:
        """These whereabouts as plain data, for JSON."""
        return asdict(self)

    def is_here(self) -> bool:
        """Whether this is the process that asks."""
        return (self.machine, self.pid, self.started) == (_machine(), os.getpid(), _stat(os.getpid())[1])

    def lives(self) -> bool | None:
        """Whether the process exists; None if that cannot be seen from here. A stopped process counts as alive."""
        if self.machine != _machine():
            return None
        state, started = _stat(self.pid)
        if started and self.started:
            return started == self.started and state not in "ZX"
        return _takes_signals(self.pid)


@cache
def _machine() -> str:
    """Process numbers mean the same within one boot of a machine and one namespace of processes."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as boot:
        return f"{boot.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    return socket.gethostname()


def _stat(pid: int) -> tuple[str, str]:
    """The state of a process, a letter as `ps` shows it, and its start in ticks; empty where there is no /proc."""
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
