"""Numbers of leaders: each is used once and is higher than all before it, so that an earlier leader is known as such.

leaders/00000007   the seventh leader: which server, and its address
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from penstock.base.storage import Storage
from penstock.errors import AlreadyThere

FOLDER = "leaders"


def fence_name(number: int) -> str:
    return f"{number:08}"


def fences(storage: Storage) -> list[int]:
    """The numbers of all leaders that are remembered, in order."""
    names = Storage(storage.url(FOLDER)).names()
    return sorted(int(name) for name in names if name.isdigit())


def newest_fence(storage: Storage) -> int:
    """The number of the last leader; 0 if there was none."""
    return max(fences(storage), default=0)


def claim_fence(storage: Storage, number: int, who: Mapping[str, Any]) -> bool:
    """Become the leader of this number; False if another server is."""
    try:
        storage.create(f"{FOLDER}/{fence_name(number)}", json.dumps(dict(who)).encode())
    except AlreadyThere:
        return False
    if newest_fence(storage) == number:
        return True
    # Later leaders have deleted the numbers before theirs, so that this one was free again.
    storage.delete(f"{FOLDER}/{fence_name(number)}")
    return False


def next_fence(storage: Storage, who: Mapping[str, Any]) -> int:
    """A number that no leader has had, for a server that was elected elsewhere or has no rivals."""
    while True:
        number = newest_fence(storage) + 1
        if claim_fence(storage, number, who):
            forget_before(storage, number)
            return number


def leader(storage: Storage, number: int) -> dict[str, Any]:
    """What a leader said of itself; nothing if that is gone or cannot be read."""
    with suppress(FileNotFoundError, ValueError):
        said = json.loads(storage.read(f"{FOLDER}/{fence_name(number)}"))
        if isinstance(said, dict):
            return said
    return {}


def forget_before(storage: Storage, number: int) -> None:
    """Delete the traces of leaders before this one."""
    for earlier in fences(storage):
        if earlier < number:
            storage.delete(f"{FOLDER}/{fence_name(earlier)}")
            storage.delete(f"{FOLDER}/{fence_name(earlier)}.pulse")
