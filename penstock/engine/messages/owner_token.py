"""The token of an attempt. The attempt may act for its job as long as its token lies in the job's folder.

Every attempt of every driver has a token of its own, with a growing number. A driver that takes over a job creates the
next token and deletes the earlier ones (`penstock.engine.checkpoint.ownership`). So an attempt only needs to check one
file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from penstock.base.storage import Storage
from penstock.errors import JobDisplaced, StorageError

FOLDER = "owner"
"""The folder of the tokens inside a job's folder."""
READS = 3
"""Number of times that a token is read if the storage returns only its beginning."""


def token_name(number: int) -> str:
    """Return the name of a token's file inside that folder."""
    return f"{number:08d}"


def number_of(name: str) -> int | None:
    """Return the number of a token by the name of its file; None for other files."""
    return int(name) if name.isdecimal() else None


@dataclass(frozen=True)
class Token:
    """The right of one attempt to publish, commit and delete. Plain data, for every slot of the attempt."""

    folder: str
    """URL of the folder of the job's tokens."""
    number: int
    text: bytes
    """Content of the token's file, which differs from that of every other driver's token."""

    def check(self) -> None:
        """Raise JobDisplaced if the job has another owner, or StorageError if that cannot be determined."""
        storage = Storage(self.folder)
        if not holds(storage, token_name(self.number), self.text):
            raise JobDisplaced(_describe_displacement(storage, self))


def holds(storage: Storage, name: str, text: bytes) -> bool:
    """Return True if a file holds this text. Raise StorageError if only the beginning of the text can be read."""
    for _ in range(READS):
        found = read_or_none(storage, name)
        if found is None or found == text or not text.startswith(found):
            return found == text
    raise StorageError(f"'{storage.url(name)}' cannot be read to its end")


def read_or_none(storage: Storage, name: str) -> bytes | None:
    """Return the content of a file; None if it does not exist."""
    try:
        return storage.read(name)
    except FileNotFoundError:
        return None


def describe_holder(text: bytes) -> str:
    """Return a description of a token's holder for an error message."""
    try:
        holder: dict[str, Any] = json.loads(text)
        return f"process {holder['pid']} on {holder['host']}, since {holder['since']}"
    except (ValueError, KeyError, TypeError):
        return "someone who cannot be identified, since the token cannot be read"


def _describe_displacement(storage: Storage, token: Token) -> str:
    ended = "This driver ends and changes nothing more"
    numbers = [number for name in storage.names() if (number := number_of(name)) is not None]
    newest = max(numbers, default=0)
    text = read_or_none(storage, token_name(newest)) if newest > token.number else None
    if text is None:
        return f"token {token.number} of the job is gone from '{storage.url()}', and there is no newer one. {ended}"
    return f"the job has a new owner: {describe_holder(text)} (token {newest}; this driver had {token.number}). {ended}"
