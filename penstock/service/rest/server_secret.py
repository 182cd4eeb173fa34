"""A secret of the server, in a file that only the user who started the server can read.

A client that sends the secret acts for this user. It may run programs over REST, as the user could do on the machine
anyway. So the command line works on the machine of a server without configuration, although the server accepts
programs from nobody else.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from secrets import token_urlsafe
from urllib.parse import urlsplit

HEADER = "penstock-pass"


def secret_file(url: str) -> Path:
    """Return the path at which this machine keeps the secret of the server at a URL."""
    home = Path(os.environ.get("PENSTOCK_HOME") or Path.home() / ".penstock")
    return home / "passes" / f"port-{urlsplit(url).port or 0}"


def create_secret() -> str:
    """Return a new random secret."""
    return token_urlsafe(32)


def write_secret(url: str, secret: str) -> None:
    """Store the secret for the command line of this user."""
    file = secret_file(url)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
        opened.write(secret)
    os.replace(draft, file)


def delete_secret(url: str, secret: str) -> None:
    """Delete the secret of a server that ends. The secret of a later server on the same port stays."""
    if read_secret(url) == secret:
        secret_file(url).unlink(missing_ok=True)


def read_secret(url: str) -> str | None:
    """Return this user's secret for a server on this machine, or None."""
    if urlsplit(url).hostname not in ("localhost", "127.0.0.1", "::1"):
        return None
    with suppress(OSError, ValueError):
        return secret_file(url).read_text()
    return None
