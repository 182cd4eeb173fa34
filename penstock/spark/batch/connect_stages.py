"""BATCH jobs over Spark Connect: a stage is a `mapInArrow` over a DataFrame, and an exchange is a `repartitionById`."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from penstock.base.pickling import dumps
from penstock.engine.batch.parcels import Parcel
from penstock.spark.batch.batch_task import StageTask
from penstock.spark.batch.stage_jobs import StageProgress
from penstock.spark.sessions.connect_session import clone, describe_error
from penstock.spark.slots.slot_tasks import reason

COLUMNS = "slot INT, parcel BINARY"
_CHECKSUMS = "spark.sql.shuffle.orderIndependentChecksum"
OPTIONS = {
    # Parcels come to a task in batches of about this size. A limit on their number would not limit their bytes.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(4 << 20),
    # Tasks send the driver times and names of transactions, which differ when a task runs again. Spark would take
    # them for different records, and give the job up.
    f"{_CHECKSUMS}.enabled": "false",
    f"{_CHECKSUMS}.enableFullRetryOnMismatch": "false",
    f"{_CHECKSUMS}.enableQueryLevelRollbackOnMismatch": "false",
}
"""Options of the session in which a job runs."""


class FrameStages:
    """A job over a DataFrame. A row holds a parcel and the slot that gets it.

    The job needs its own options, so it runs in a clone of the program's session.
    """

    def __init__(self, session: Any, tasks: Sequence[StageTask], assigned: Sequence[bytes], group: str) -> None:
        self.parcels: list[Parcel] | None = None
        self.failure = ""
        self._session = clone(session)
        self._tasks = tasks
        self._assigned = assigned
        self._group = group
        self._progress: list[StageProgress] = []
        self._thread = threading.Thread(target=self._run, name="penstock batch", daemon=True)

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        for option, value in OPTIONS.items():
            self._session.conf.set(option, value)
        self._session.registerProgressHandler(self._look)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._session.addTag(self._group)  # the tags of a client belong to its threads
            rows = self._frame().collect()
            self.parcels = [pickle.loads(row.parcel) for row in rows]
        except Exception as error:
            self.failure = reason(describe_error(error))
        finally:
            self._session.stop()

    def _frame(self) -> Any:
        slots = len(self._assigned)
        first, *others = self._tasks
        frame = self._session.range(0, slots, 1, slots).mapInArrow(first_stage(first, self._assigned), COLUMNS)
        for task in others:
            frame = frame.repartitionById(slots, "slot").mapInArrow(later_stage(task), COLUMNS)
        return frame

    def _look(self, stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        """Keep the progress of the stages. Spark's client calls this from time to time."""
        if not done:
            ordered = sorted(stages, key=lambda stage: stage.stage_id)
            self._progress = [
                StageProgress(0 if one.done else inflight_tasks, one.num_completed_tasks, one.num_tasks)
                for one in ordered
            ]

    def stages(self) -> list[StageProgress]:
        return self._progress

    def cancel(self) -> None:
        with suppress(Exception):  # neither a server that is gone nor a session that has ended runs tasks
            self._session.interruptTag(self._group)


def first_stage(task: StageTask, assigned: Sequence[bytes]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function of the first stage. It gets one row, which is the number of its slot."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        [slot] = [value for batch in batches for value in batch.column(0).to_pylist()]
        yield from pack_parcels(task(slot, iter([(slot, assigned[slot])])))

    return run


def later_stage(task: StageTask) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function of a stage behind an exchange. A partition has the parcels of one slot."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        slot = context.partitionId()
        yield from pack_parcels(task(slot, unpack_parcels(batches, slot)))

    return run


def unpack_parcels(batches: Iterator[Any], slot: int) -> Iterator[tuple[int, Parcel]]:
    """Yield the parcels of batches. Raise RuntimeError if one of them is for another slot."""
    for batch in batches:
        for target, parcel in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            if target != slot:
                raise RuntimeError(f"Spark delivered a parcel for slot {target} to slot {slot}")
            yield target, pickle.loads(parcel.as_buffer())


def pack_parcels(sent: Iterator[tuple[int, Parcel]]) -> Iterator[Any]:
    """Yield a batch for each parcel."""
    import pyarrow

    for slot, parcel in sent:
        yield pyarrow.RecordBatch.from_pydict(
            {"slot": pyarrow.array([slot], pyarrow.int32()), "parcel": pyarrow.array([dumps(parcel)], pyarrow.binary())}
        )
