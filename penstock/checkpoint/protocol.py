"""The decisions of the checkpoint protocol, as pure functions of what is seen in storage."""

from __future__ import annotations

import re
from collections.abc import Iterable

from penstock.checkpoint.metadata import FILE, Metadata

FINISHED = "_finished"
"""Marks the folder of a job that came to its end: there is nothing to recover."""
_FOLDER = re.compile(r"chk-(\d+)/")


def folder_of(number: int) -> str:
    """The folder of a checkpoint inside its job's folder."""
    return f"chk-{number}"


def number_of(name: str) -> int | None:
    """The checkpoint to which a file belongs, by its name."""
    found = _FOLDER.match(name)
    return int(found[1]) if found else None


def complete(names: Iterable[str]) -> list[int]:
    """The checkpoints that are complete, oldest first: those that have metadata."""
    numbers = [number_of(name) for name in names if name.endswith(f"/{FILE}") and name.count("/") == 1]
    return sorted(number for number in numbers if number is not None)


def next_number(names: Iterable[str]) -> int:
    """A number that no checkpoint has had, complete or not."""
    return max((number for name in names if (number := number_of(name)) is not None), default=0) + 1


def is_finished(names: Iterable[str]) -> bool:
    """Whether the job came to its end."""
    return FINISHED in names


def superseded(dropped: Iterable[Metadata], kept: Iterable[Metadata]) -> set[str]:
    """URLs of the files that only checkpoints need which are dropped."""
    needed = set[str]().union(*(metadata.files() for metadata in kept))
    return set[str]().union(*(metadata.files() for metadata in dropped)) - needed


def leftovers(names: Iterable[str], kept: dict[int, set[str]], since: int = 0) -> list[str]:
    """The files of a job's folder that no kept checkpoint needs, metadata first so that none is ever half there.

    `kept` gives the names of the files of each checkpoint that stays; older ones than `since` belong to others.
    """
    needed = {f"{folder_of(number)}/{FILE}" for number in kept}.union(*kept.values())
    unneeded = [n for n in names if (number := number_of(n)) is not None and number >= since and n not in needed]
    return sorted(unneeded, key=lambda name: (not name.endswith(f"/{FILE}"), name))
