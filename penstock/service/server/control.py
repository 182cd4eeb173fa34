"""The link between a server and the drivers on its machine: JSON messages over a Unix socket, with a shared key.

The server asks and the driver answers. Each question has a connection of its own, so that a slow savepoint delays no
other question. The messages contain no pickles, because a driver runs code of users.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener, answer_challenge, deliver_challenge
from pathlib import Path
from typing import Any

from penstock import errors
from penstock.errors import PenstockError

log = logging.getLogger("penstock.server")
LONGEST_PATH = 100
"""Longest path of a socket, in bytes. Unix allows 107 bytes."""
CONNECT_SECONDS = 3.0
Handler = Callable[[Mapping[str, Any]], Any]


class DriverUnreachable(PenstockError):
    """A driver does not answer: it has ended, is ending, or does not respond."""


def key_in(folder: Path) -> Path:
    """Return the file with the key of this folder's server. A missing file is created; only its owner may read it."""
    path = folder / "control.key"
    with suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_hex(32).encode())
    return path


def socket_path(folder: Path, name: str) -> str:
    """Return the path of a driver's socket: in the folder, or in a new folder if the path is too long for a socket."""
    path = str(folder / f"{name}.sock")
    if len(path.encode()) <= LONGEST_PATH:
        return path
    return os.path.join(tempfile.mkdtemp(prefix="penstock-", dir="/tmp"), "driver.sock")


# --- the driver's side ---
class ControlServer:
    """Answers questions, each in a separate thread, until the process ends."""

    def __init__(self, address: str, key_file: str, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self._key = Path(key_file).read_bytes()
        with suppress(FileNotFoundError):
            os.unlink(address)
        self._listener = Listener(address, "AF_UNIX", backlog=64)
        os.chmod(address, 0o600)
        threading.Thread(target=self._accept, name="penstock control", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), name="penstock control", daemon=True).start()

    def _serve(self, connection: Any) -> None:
        with connection, suppress(EOFError, OSError, AuthenticationError):
            deliver_challenge(connection, self._key)
            answer_challenge(connection, self._key)
            question = json.loads(connection.recv_bytes())
            connection.send_bytes(json.dumps(self._answer(question)).encode())

    def _answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return {"answer": self._handlers[question["do"]](question)}
        except Exception as error:
            if not isinstance(error, PenstockError):
                log.warning("request '%s' failed", question.get("do"), exc_info=True)
            return {"error": type(error).__name__, "message": str(error)}

    def close(self) -> None:
        """Stop accepting questions."""
        self._listener.close()


# --- the server's side ---
def ask(address: str, key_file: str, question: Mapping[str, Any], seconds: float | None = 10.0) -> Any:
    """Return a driver's answer.

    Raise the error that the driver raised, or DriverUnreachable if there is no answer within `seconds`.
    """
    try:
        with _connect(address) as connection:
            key = Path(key_file).read_bytes()
            _await(connection, CONNECT_SECONDS)
            answer_challenge(connection, key)
            deliver_challenge(connection, key)
            connection.send_bytes(json.dumps(question).encode())
            _await(connection, seconds)
            answer = json.loads(connection.recv_bytes())
    except (OSError, EOFError, AuthenticationError) as error:
        raise DriverUnreachable(f"the job's driver does not answer: {error or type(error).__name__}") from None
    if "error" in answer:
        raise _error(answer["error"], answer["message"])
    return answer["answer"]


def _connect(address: str) -> Connection:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.settimeout(CONNECT_SECONDS)
    try:
        link.connect(address)
    except BaseException:
        link.close()
        raise
    link.setblocking(True)
    return Connection(link.detach())


def _await(connection: Connection, seconds: float | None) -> None:
    if not connection.poll(seconds):
        raise OSError(f"no message has arrived for {seconds:g} s")


def _error(kind: str, message: str) -> Exception:
    """Return an error of Penstock's class with this name, or a PenstockError if there is no such class."""
    found = _OTHERS.get(kind) or getattr(errors, kind, None)
    if isinstance(found, type) and issubclass(found, Exception):
        return found(message)
    return PenstockError(f"{kind}: {message}")


def _others() -> dict[str, type[Exception]]:
    from penstock.service.rest.job_backend import Refused, UnknownJob

    return {"UnknownJob": UnknownJob, "Refused": Refused}


_OTHERS = _others()
