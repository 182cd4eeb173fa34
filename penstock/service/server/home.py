"""The folder of a server on its machine. One process at a time owns it, and stores its id and address there."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.engine.checkpoint.process_identity import Whereabouts
from penstock.errors import ConfigurationError
from penstock.service.server.control import ask, key_in

PID_FILE = "server.pid"
LOG, OUT = "server.log", "server.out"


@dataclass(frozen=True)
class RunningServer:
    """A server that runs on this machine."""

    pid: int
    address: str
    socket: str
    key_file: str

    def ask(self, do: str, seconds: float = 10.0, **more: Any) -> Any:
        """Return the server's answer to a question on its control socket."""
        return ask(self.socket, self.key_file, {"do": do, **more}, seconds)


class Home:
    """The folder as its owning process sees it. The constructor locks it, or raises ConfigurationError."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(f"the server's folder '{folder}' cannot be made: {error}") from None
        self.folder = folder
        self._lock = os.open(folder / "server.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigurationError(already_running(folder)) from None

    def announce(self, address: str, socket: str) -> None:
        """Store the id and the addresses of this process in the folder."""
        said = {
            **Whereabouts.here().as_dict(),
            "address": address,
            "socket": socket,
            "key_file": str(key_in(self.folder)),
        }
        draft = self.folder / f"{PID_FILE}.draft"
        draft.write_text(json.dumps(said))
        os.replace(draft, self.folder / PID_FILE)

    def leave(self) -> None:
        """Remove the address of this process and unlock the folder."""
        (self.folder / PID_FILE).unlink(missing_ok=True)
        os.close(self._lock)


def running_server(folder: Path) -> RunningServer | None:
    """Return the server that owns a folder, or None if no server runs on it."""
    with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
        said = json.loads((folder / PID_FILE).read_text())
        if Whereabouts.of(said).lives():
            return RunningServer(said["pid"], said["address"], said["socket"], said["key_file"])
    return None


def already_running(folder: Path) -> str:
    """Return the error message for a second server on a folder."""
    found = running_server(folder)
    who = f"process {found.pid}, {found.address}" if found is not None else "it is being started or stopped"
    return (
        f"a server already runs on the folder '{folder}' ({who}): stop it first, or choose another folder with --data"
    )
