"""The pass of a server: a secret in a file that only the user who started the server can read.

Whoever shows it is that user, and may do over REST what this user could do on the machine anyway: run programs. So the
command line works on the machine of a server at once, although the server takes programs from nobody else.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from secrets import token_urlsafe
from urllib.parse import urlsplit

HEADER = "penstock-pass"


def secret_file(url: str) -> Path:
    """Where the pass of the server at a URL is, if this machine has it."""
    home = Path(os.environ.get("PENSTOCK_HOME") or Path.home() / ".penstock")
    return home / "passes" / f"port-{urlsplit(url).port or 0}"


def create_secret() -> str:
    return token_urlsafe(32)


def write_secret(url: str, secret: str) -> None:
    """Leave the pass for the command line of this user."""
    file = secret_file(url)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
        opened.write(secret)
    os.replace(draft, file)


def delete_secret(url: str, secret: str) -> None:
    """The server ends; a pass that another one has left since stays."""
    if read_secret(url) == secret:
        secret_file(url).unlink(missing_ok=True)


def read_secret(url: str) -> str | None:
    """The pass that this user has for a server on this machine."""
    if urlsplit(url).hostname not in ("localhost", "127.0.0.1", "::1"):
        return None
    with suppress(OSError, ValueError):
        return secret_file(url).read_text()
    return None
