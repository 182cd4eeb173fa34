"""Fencing numbers of leaders. Each number is higher than all before it, so that a displaced leader is recognised.

leaders/00000007   the id and address of the seventh leader
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
    """Return the file name of a number."""
    return f"{number:08}"


def fences(storage: Storage) -> list[int]:
    """Return the stored numbers of leaders, in order."""
    names = Storage(storage.url(FOLDER)).names()
    return sorted(int(name) for name in names if name.isdigit())


def newest_fence(storage: Storage) -> int:
    """Return the number of the last leader, or 0 if there was no leader."""
    return max(fences(storage), default=0)


def claim_fence(storage: Storage, number: int, who: Mapping[str, Any]) -> bool:
    """Become the leader of this number. Return False if another server has it."""
    try:
        storage.create(f"{FOLDER}/{fence_name(number)}", json.dumps(dict(who)).encode())
    except AlreadyThere:
        return False
    if newest_fence(storage) == number:
        return True
    # Later leaders have deleted the numbers before their own, so that this number was free again.
    storage.delete(f"{FOLDER}/{fence_name(number)}")
    return False


def next_fence(storage: Storage, who: Mapping[str, Any]) -> int:
    """Claim and return a new number, for a server that was elected by other means or has no rivals."""
    while True:
        number = newest_fence(storage) + 1
        if claim_fence(storage, number, who):
            forget_before(storage, number)
            return number


def leader(storage: Storage, number: int) -> dict[str, Any]:
    """Return the `id` and `address` of a leader, or an empty mapping if they are deleted or unreadable."""
    with suppress(FileNotFoundError, ValueError):
        said = json.loads(storage.read(f"{FOLDER}/{fence_name(number)}"))
        if isinstance(said, dict):
            return said
    return {}


def forget_before(storage: Storage, number: int) -> None:
    """Delete the files of leaders before this one."""
    for earlier in fences(storage):
        if earlier < number:
            storage.delete(f"{FOLDER}/{fence_name(earlier)}")
            storage.delete(f"{FOLDER}/{fence_name(earlier)}.pulse")
