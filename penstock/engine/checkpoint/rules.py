"""The decisions of the checkpoint protocol, as pure functions of the names and metadata in storage."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.engine.checkpoint.metadata import FILE, Metadata

_FOLDER = re.compile(r"chk-(\d+)/")


@dataclass(frozen=True)
class Ending:
    """The ending of a job by its owner."""

    finished: bool
    """Whether the job has finished, so that there is nothing to recover."""
    kept: frozenset[tuple[int, int]] | None = None
    """Owners and numbers of the checkpoints that stay; None for all."""


@dataclass(frozen=True)
class Start:
    """The start of an attempt by its owner."""

    owner: int
    inherited: frozenset[tuple[int, int]] = frozenset()
    """Owners and numbers of the checkpoints that it took over; empty if the job starts from the beginning."""
    ending: Ending | None = None
    """The owner's ending, if there is one."""
    newest: int | None = None
    """Number of the newest checkpoint that the owner noted as published; None without a note."""


def folder_of(number: int) -> str:
    """Return the folder of a checkpoint inside its job's folder."""
    return f"chk-{number}"


def number_of(name: str) -> int | None:
    """Return the number of the checkpoint to which a file belongs by its name; None for other files."""
    found = _FOLDER.match(name)
    return int(found[1]) if found else None


def complete(names: Iterable[str]) -> list[int]:
    """Return the numbers of the complete checkpoints, oldest first. A complete checkpoint has metadata."""
    numbers = [number_of(name) for name in names if name.endswith(f"/{FILE}") and name.count("/") == 1]
    return sorted(number for number in numbers if number is not None)


def next_number(names: Iterable[str]) -> int:
    """Return a number that no checkpoint has had, complete or not."""
    return max((number for name in names if (number := number_of(name)) is not None), default=0) + 1


def is_finished(last: Start | None) -> bool:
    """Return True if the job came to its end."""
    return last is not None and last.ending is not None and last.ending.finished


def line(complete_ones: Iterable[Metadata], last: Start | None) -> list[Metadata]:
    """Return the valid checkpoints, oldest first: those of the last owner that began, and those that it took over.

    The driver of any other checkpoint was displaced while it published that checkpoint. Its contents have not been and
    will not be committed.
    """
    if last is None:
        return list(complete_ones)
    counting = [m for m in complete_ones if m.owner == last.owner or (m.owner, m.number) in last.inherited]
    if last.ending is None or last.ending.kept is None:
        return counting
    kept = last.ending.kept
    return [m for m in counting if (m.owner, m.number) in kept]


def missing(counting: Iterable[Metadata], last: Start | None) -> tuple[int, int] | None:
    """Return owner and number of the newest published checkpoint if it is missing, else None.

    `counting` holds the valid checkpoints that exist. A checkpoint newer than the recorded number is no problem: its
    owner may have died between publishing and recording it. The ending of the job lists the checkpoints that are kept.
    Others were deleted on purpose.
    """
    if last is None:
        return None
    expected = max(last.inherited, default=None) if last.newest is None else (last.owner, last.newest)
    kept = None if last.ending is None else last.ending.kept
    if expected is None or (kept is not None and expected not in kept):
        return None
    return None if any((m.owner, m.number) >= expected for m in counting) else expected


def exclusive_files(dropped: Iterable[Metadata], kept: Iterable[Metadata]) -> set[str]:
    """Return the URLs of the files that only dropped checkpoints need."""
    needed = set[str]().union(*(metadata.files() for metadata in kept))
    return set[str]().union(*(metadata.files() for metadata in dropped)) - needed


def leftovers(names: Iterable[str], kept: dict[int, set[str]], since: int = 0) -> list[str]:
    """Return the files of a job's folder that no kept checkpoint needs.

    Metadata comes first, so that no checkpoint ever exists in part. `kept` gives the names of the files of each
    checkpoint that stays. Checkpoints with a number below `since` belong to other jobs.
    """
    needed = {f"{folder_of(number)}/{FILE}" for number in kept}.union(*kept.values())
    unneeded = [n for n in names if (number := number_of(n)) is not None and number >= since and n not in needed]
    return sorted(unneeded, key=lambda name: (not name.endswith(f"/{FILE}"), name))
