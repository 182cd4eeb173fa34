"""Checkpoints and savepoints: statistics, history, and details by vertex and subtask.

A slot writes one share of a checkpoint for all operators that it hosts. Flink counts acknowledgements by subtask. In
Penstock every subtask of a slot acknowledges when the slot does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.engine.checkpoint.checkpoint_history import CheckpointRecord, CheckpointStatus, SlotShare
from penstock.engine.job.job_record import CheckpointingRecord, JobRecord, VertexRecord
from penstock.service.rest.answers.flink_numbers import Json, Number, summary

HISTORY = 10
"""Default number of checkpoints in the history, as in Flink."""
NEVER = (1 << 63) - 1
"""The interval, in milliseconds, that tells Flink's dashboard that there are no periodic checkpoints."""
_NOT_ADDRESSABLE = "<checkpoint-not-externally-addressable>"

_FIGURES = (
    "checkpointed_size",
    "state_size",
    "end_to_end_duration",
    "alignment_buffered",
    "processed_data",
    "persisted_data",
)


def config(record: JobRecord) -> Json:
    """Return the checkpointing settings of a job. A job without periodic checkpoints has the interval NEVER."""
    checkpointing = record.settings.checkpoints or CheckpointingRecord(interval=NEVER)
    retention = checkpointing.retention
    return {
        "mode": checkpointing.mode.lower(),
        "interval": max(1, checkpointing.interval),
        "timeout": max(1, checkpointing.timeout),
        "min_pause": max(0, checkpointing.min_pause),
        "max_concurrent": max(1, checkpointing.max_concurrent),
        "externalization": {
            "enabled": retention != "NO_EXTERNALIZED_CHECKPOINTS",
            "delete_on_cancellation": retention != "RETAIN_ON_CANCELLATION",
        },
        "state_backend": checkpointing.state_backend or "HashMapStateBackend",
        "checkpoint_storage": checkpointing.storage or "JobManagerCheckpointStorage",
        "unaligned_checkpoints": checkpointing.unaligned,
        "tolerable_failed_checkpoints": max(0, checkpointing.tolerable_failures),
        "aligned_checkpoint_timeout": 0,
        "checkpoints_after_tasks_finish": True,
        "state_changelog_enabled": False,
    }


# --- one checkpoint ---
class _Part:
    """The figures of a checkpoint, for all vertices or for one."""

    def __init__(self, checkpoint: CheckpointRecord, vertices: Sequence[VertexRecord]) -> None:
        self.checkpoint = checkpoint
        self.vertices = vertices
        slots = [range(vertex.parallelism) for vertex in vertices]
        self.subtasks = sum(map(len, slots))
        self.acknowledged = sum(share.slot in indices for share in checkpoint.slots for indices in slots)

    def figures(self) -> Json:
        checkpoint = self.checkpoint
        return {
            "id": checkpoint.number,
            "status": checkpoint.status.name,
            "latest_ack_timestamp": max((share.acknowledged for share in checkpoint.slots), default=-1),
            **_sizes(self._bytes(_new_bytes), self._bytes(_size), _duration(checkpoint)),
            "num_subtasks": max(1, self.subtasks),
            "num_acknowledged_subtasks": self.acknowledged,
        }

    def _bytes(self, size: Callable[[SlotShare, VertexRecord], int]) -> int:
        return sum(size(share, vertex) for vertex in self.vertices for share in self.checkpoint.slots)


def _size(share: SlotShare, vertex: VertexRecord) -> int:
    """Return the number of bytes of a slot's share that belong to operators of a vertex."""
    return sum(share.operators.get(operator.uid, 0) for operator in vertex.operators)


def _new_bytes(share: SlotShare, vertex: VertexRecord) -> int:
    """Estimate the newly written bytes of a vertex from its part of the slot's state size."""
    return round(share.written * _size(share, vertex) / share.size) if share.size else 0


def _duration(checkpoint: CheckpointRecord) -> int:
    return max(0, checkpoint.millis) if checkpoint.ended is not None else -1


def _sizes(written: Number, size: Number, duration: Number) -> Json:
    figures = dict.fromkeys(_FIGURES, 0)
    return {**figures, "checkpointed_size": written, "state_size": size, "end_to_end_duration": duration}


def checkpoint_row(record: JobRecord, checkpoint: CheckpointRecord) -> Json:
    """Return a checkpoint as a line of the history."""
    whole = _Part(checkpoint, record.vertices).figures()
    row = {
        "className": checkpoint.status.name.lower(),
        "is_savepoint": checkpoint.savepoint,
        "savepointFormat": "CANONICAL" if checkpoint.savepoint else None,
        "trigger_timestamp": checkpoint.started,
        **whole,
        **_sizes(checkpoint.written, checkpoint.size, _duration(checkpoint)),
        "checkpoint_type": "SAVEPOINT" if checkpoint.savepoint else "CHECKPOINT",
        "tasks": {},
    }
    if checkpoint.status is CheckpointStatus.COMPLETED:
        discarded = checkpoint.number in _obsolete_checkpoints(record)
        return {**row, "external_path": checkpoint.path or _NOT_ADDRESSABLE, "discarded": discarded}
    if checkpoint.status is CheckpointStatus.FAILED:
        when = checkpoint.started if checkpoint.ended is None else checkpoint.ended
        return {**row, "failure_timestamp": when, "failure_message": checkpoint.failure}
    return row


def _obsolete_checkpoints(record: JobRecord) -> set[int]:
    """Return the numbers of checkpoints that later ones have replaced. Savepoints are never replaced."""
    kept = record.settings.checkpoints.retained if record.settings.checkpoints is not None else 1
    own = [one.number for one in record.checkpoints.completed if not one.savepoint]
    return set(own[: max(0, len(own) - kept)])


def checkpoint_details(record: JobRecord, checkpoint: CheckpointRecord) -> Json:
    """Return a checkpoint with its figures for each vertex."""
    tasks = {vertex.id: _Part(checkpoint, [vertex]).figures() for vertex in record.vertices}
    return {**checkpoint_row(record, checkpoint), "tasks": tasks}


# --- all of a job ---
def statistics(record: JobRecord, listed: int = HISTORY) -> Json:
    """Return counts, distributions of sizes and durations, the latest of each kind, and the newest checkpoints."""
    checkpoints = record.checkpoints
    going, done, failed = checkpoints.in_progress, checkpoints.completed, checkpoints.failed
    counts = {
        "restored": checkpoints.restored_in_all,
        "total": len(going) + checkpoints.completed_in_all + checkpoints.failed_in_all,
        "in_progress": len(going),
        "completed": checkpoints.completed_in_all,
        "failed": checkpoints.failed_in_all,
    }
    newest = sorted((*going, *done, *failed), key=lambda one: one.number, reverse=True)
    return {
        "counts": counts,
        "summary": _summaries(done),
        "latest": _latest(record),
        "history": [checkpoint_row(record, one) for one in newest[:listed]],
    }


def _summaries(completed: Sequence[CheckpointRecord]) -> Json:
    nothing: list[Number] = [0] * len(completed)
    return {
        **{name: summary(nothing) for name in _FIGURES},
        "checkpointed_size": summary([one.written for one in completed]),
        "state_size": summary([one.size for one in completed]),
        "end_to_end_duration": summary([max(0, one.millis) for one in completed]),
    }


def _latest(record: JobRecord) -> Json:
    checkpoints = record.checkpoints
    own = [one for one in checkpoints.completed if not one.savepoint]
    savepoints = [one for one in checkpoints.completed if one.savepoint]
    latest: Json = {
        name: checkpoint_row(record, some[-1]) if some else None
        for name, some in {"completed": own, "savepoint": savepoints, "failed": checkpoints.failed}.items()
    }
    restored = checkpoints.restored
    latest["restored"] = None
    if restored is not None:
        latest["restored"] = {
            "id": max(1, restored.number),
            "restore_timestamp": restored.when,
            "is_savepoint": restored.savepoint,
            "external_path": restored.path or (_initial_savepoint(record) if restored.savepoint else None),
        }
    return latest


def _initial_savepoint(record: JobRecord) -> str | None:
    """Return the savepoint from which the options let the job start, or None."""
    return record.settings.configuration.get("execution.state-recovery.path")


def find(record: JobRecord, number: int) -> CheckpointRecord | None:
    """Return the checkpoint with this number, or None if it is not remembered."""
    known = record.checkpoints
    return next((one for one in (*known.in_progress, *known.completed, *known.failed) if one.number == number), None)


# --- the subtasks of a vertex ---
def subtasks(checkpoint: CheckpointRecord, vertex: VertexRecord) -> Json:
    """Return the contribution of each subtask of a vertex to a checkpoint."""
    shares = {share.slot: share for share in checkpoint.slots if share.slot < vertex.parallelism}
    rows = [_subtask(checkpoint, vertex, index, shares.get(index)) for index in range(vertex.parallelism)]
    done = [row for row in rows if row["className"] == "completed"]
    return {**_Part(checkpoint, [vertex]).figures(), "summary": _subtask_summaries(done), "subtasks": rows}


def _subtask(checkpoint: CheckpointRecord, vertex: VertexRecord, index: int, share: SlotShare | None) -> Json:
    if share is None:
        return {"className": "pending", "index": index, "status": "pending_or_failed"}
    return {
        "className": "completed",
        "index": index,
        "ack_timestamp": share.acknowledged,
        "end_to_end_duration": max(0, share.acknowledged - checkpoint.started),
        "checkpointed_size": _new_bytes(share, vertex),
        "state_size": _size(share, vertex),
        "checkpoint": {"sync": max(0, round(share.sync_millis)), "async": max(0, round(share.async_millis))},
        "alignment": {"buffered": 0, "processed": 0, "persisted": 0, "duration": 0},
        "start_delay": 0,
        "unaligned_checkpoint": False,
        "aborted": False,
        "status": "completed",
    }


def _subtask_summaries(rows: Sequence[Json]) -> Json:
    nothing = summary([0] * len(rows))
    return {
        **{name: summary([row[name] for row in rows]) for name in _FIGURES[:3]},
        "checkpoint_duration": {step: summary([row["checkpoint"][step] for row in rows]) for step in ("sync", "async")},
        "alignment": dict.fromkeys(("buffered", "processed", "persisted", "duration"), nothing),
        "start_delay": nothing,
    }
