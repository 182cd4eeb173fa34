"""The states of a job's subtasks, derived from the job's record.

A record contains the job, its slots and the times of its status changes. Flink reports a separate state for every
subtask of every vertex. In Penstock a subtask has the state of its slot.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.engine.job.job_record import JobRecord, SlotRecord, VertexRecord

JOB_STATES = (
    "INITIALIZING",
    "CREATED",
    "RUNNING",
    "FAILING",
    "FAILED",
    "CANCELLING",
    "CANCELED",
    "FINISHED",
    "RESTARTING",
    "SUSPENDED",
    "RECONCILING",
)
TASK_STATES = (
    "CREATED",
    "SCHEDULED",
    "DEPLOYING",
    "INITIALIZING",
    "RUNNING",
    "FINISHED",
    "CANCELING",
    "CANCELED",
    "FAILED",
    "RECONCILING",
)
BEFORE_THE_END = TASK_STATES[:5]
OVER = ("FINISHED", "CANCELED", "FAILED")
UNASSIGNED = "(unassigned)"
"""The place of a subtask that is not assigned to a slot yet."""

_OF_A_JOB = {
    "CREATED": "CREATED",
    "INITIALIZING": "CREATED",
    "RUNNING": "RUNNING",
    "FAILING": "CANCELED",
    "FAILED": "CANCELED",
    "RESTARTING": "CANCELED",
    "CANCELLING": "CANCELING",
    "CANCELED": "CANCELED",
    "SUSPENDED": "CANCELED",
    "FINISHED": "FINISHED",
    "RECONCILING": "RECONCILING",
}
"""The usual state of a subtask, by the status of its job."""
_AFTER_A_FAILURE = ("FAILING", "FAILED", "RESTARTING")


@dataclass(frozen=True)
class Subtask:
    """One subtask of a vertex. Times are in milliseconds since 1970; 0 means that the event has not happened."""

    index: int
    status: str
    attempt: int
    place: str
    slot: SlotRecord | None
    """The last report of its slot, or None before the first report."""
    times: dict[str, int]
    """The time at which the subtask entered each state."""
    now: int

    @property
    def start(self) -> int:
        """The time of its deployment, or -1 before that."""
        return self.times["DEPLOYING"] or -1

    @property
    def end(self) -> int:
        """The time of its end, or -1 before that."""
        return self.times[self.status] if self.status in OVER else -1

    @property
    def duration(self) -> int:
        """The time from the start to the end or to now, in milliseconds, or -1 before the start."""
        if self.start < 0:
            return -1
        return max(0, (self.end if self.end > 0 else self.now) - self.start)

    def durations(self) -> dict[str, int]:
        """Return the time in each state before the end, in milliseconds, or -1 for a state that it never entered."""
        entered = [(state, self.times[state]) for state in BEFORE_THE_END if self.times[state]]
        left = [when for _, when in entered[1:]] + [self.end if self.end > 0 else self.now]
        took = {state: max(0, end - when) for (state, when), end in zip(entered, left, strict=True)}
        return {state: took.get(state, -1) for state in BEFORE_THE_END}


def subtasks(record: JobRecord, vertex: VertexRecord) -> list[Subtask]:
    """Return all subtasks of a vertex, in order."""
    slots = {slot.slot: slot for slot in record.slots}
    failed = _find_failed_subtask(record, vertex)
    return [_subtask(record, index, slots.get(index), index == failed) for index in range(vertex.parallelism)]


def _find_failed_subtask(record: JobRecord, vertex: VertexRecord) -> int | None:
    """Return the index of the subtask that failed the last attempt, or None if it is not one of this vertex."""
    if record.status not in _AFTER_A_FAILURE or not record.failures:
        return None
    last = record.failures[-1]
    return (last.slot or 0) if any(last.uid == operator.uid for operator in vertex.operators) else None


def _subtask(record: JobRecord, index: int, slot: SlotRecord | None, failed: bool) -> Subtask:
    status = "FAILED" if failed else _status(record, slot)
    place = (slot.place if slot is not None else "") or UNASSIGNED
    return Subtask(index, status, record.attempt, place, slot, _times(record, status, slot), record.taken)


def _status(record: JobRecord, slot: SlotRecord | None) -> str:
    if record.status == "RUNNING" and record.deployed is None:
        return "SCHEDULED"
    if slot is not None and slot.finished:
        return "FINISHED"
    return _OF_A_JOB.get(record.status, "CREATED")


def _times(record: JobRecord, status: str, slot: SlotRecord | None) -> dict[str, int]:
    times = dict.fromkeys(TASK_STATES, 0)
    began = record.time_of("RUNNING") or record.started
    times["CREATED"] = began
    if status != "CREATED":
        times["SCHEDULED"] = began
    if record.deployed is not None or slot is not None:
        times["DEPLOYING"] = times["INITIALIZING"] = began
        times["RUNNING"] = max(began, record.deployed or began)
    if status not in BEFORE_THE_END:
        times[status] = _last_change(record) if record.status != "RUNNING" else record.taken
    return times


def _last_change(record: JobRecord) -> int:
    return record.changes[-1].when if record.changes else record.taken


def combine_states(states: Iterable[str]) -> str:
    """Return the state of a vertex whose subtasks have these states."""
    present = set(states)
    for decisive in ("FAILED", "CANCELING", "CANCELED", "RECONCILING", "INITIALIZING", "RUNNING"):
        if decisive in present:
            return decisive
    if "FINISHED" in present:
        return "FINISHED" if present == {"FINISHED"} else "RUNNING"
    return "CREATED"


def count_states(states: Iterable[str]) -> dict[str, int]:
    """Return the number of subtasks in each state."""
    counts = dict.fromkeys(TASK_STATES, 0)
    for state in states:
        counts[state] += 1
    return counts
