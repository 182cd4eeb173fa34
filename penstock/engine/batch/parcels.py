"""The parcels that the tasks of a BATCH job send to each other, and the order in which a task always receives them."""

from __future__ import annotations

import pickle
import tempfile
from collections import deque
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from penstock.graph.plan import Plan


class Origin(NamedTuple):
    """The task that sends a parcel."""

    stage: int
    slot: int


class Parcel(NamedTuple):
    """A part of the output of one task for one slot of one later stage.

    The driver counts as the stage after the last.
    """

    stage: int
    origin: Origin
    number: int
    is_last: bool
    contents: Any
    """Frames with the addresses of their channels, or a report for the driver."""


def senders(plan: Plan, stage: int) -> list[Origin]:
    """Return the tasks that send to a stage, in the order in which it takes their parcels."""
    stages = sorted({source for source, target in _exchanges(plan) if target == stage})
    return [Origin(before, slot) for before in stages for slot in range(plan.slots)]


def receivers(plan: Plan, stage: int) -> list[int]:
    """Return the stages to which a stage sends."""
    return sorted({target for source, target in _exchanges(plan) if source == stage})


def _exchanges(plan: Plan) -> Iterator[tuple[int, int]]:
    """Iterate over the exchanges, as (source stage, target stage)."""
    return ((plan.nodes[e.source].stage, plan.nodes[e.target].stage) for e in plan.edges if not e.local)


class Arrivals:
    """Brings the parcels of a stage into the order of their senders. Early parcels wait on disk.

    A shuffle delivers parcels in any order. A task that runs again must produce exactly the same output as before.
    Otherwise the results of tasks that read its first output would not match the results of tasks that read its second
    output.
    """

    def __init__(self, origins: list[Origin], folder: str | None = None) -> None:
        self._awaited = deque(origins)
        self._number = 0
        self._folder = folder
        self._file: BinaryIO | None = None
        self._early: dict[tuple[Origin, int], tuple[int, int]] = {}

    def take(self, parcel: Parcel) -> Iterator[Parcel]:
        """Take a parcel that has arrived, and iterate over the parcels that are next in the order."""
        if not self._awaited or (self._awaited[0], self._number) != (parcel.origin, parcel.number):
            self._keep(parcel)
            return
        due: Parcel | None = parcel
        while due is not None:
            self._number += 1
            if due.is_last:
                self._awaited.popleft()
                self._number = 0
            yield due
            due = self._read_early()

    def missing(self) -> list[Origin]:
        """Return the senders that have not sent everything."""
        return list(self._awaited)

    def close(self) -> None:
        """Release the file of early parcels."""
        if self._file is not None:
            self._file.close()

    def _keep(self, parcel: Parcel) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="penstock-parcels-", dir=self._folder)  # noqa: SIM115
        body = pickle.dumps(parcel, pickle.HIGHEST_PROTOCOL)
        self._early[parcel.origin, parcel.number] = (self._file.seek(0, 2), len(body))
        self._file.write(body)

    def _read_early(self) -> Parcel | None:
        place = self._early.pop((self._awaited[0], self._number), None) if self._awaited else None
        if place is None or self._file is None:
            return None
        self._file.seek(place[0])
        kept: Parcel = pickle.loads(self._file.read(place[1]))
        return kept
