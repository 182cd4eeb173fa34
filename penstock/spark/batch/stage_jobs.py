"""The Spark job of a BATCH job: starting, cancelling and watching it.

A driver knows only the two protocols of this module. Their implementation for a classic session, which has a
SparkContext, is here, too: a stage is a `mapPartitionsWithIndex` over an RDD, and an exchange is a `partitionBy`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from pyspark import InheritableThread, SparkContext

from penstock.engine.batch.parcels import Parcel
from penstock.spark.batch.batch_task import StageTask
from penstock.spark.links.door import Door
from penstock.spark.links.encryption import Identity
from penstock.spark.slots.slot_tasks import reason


class StageProgress(NamedTuple):
    """Numbers of running, completed and all tasks of one stage."""

    running: int
    completed: int
    tasks: int


class StageJob(Protocol):
    """One Spark job that runs all stages."""

    @property
    def parcels(self) -> list[Parcel] | None:
        """Parcels that the stages send to the driver, or None unless the job has run to its end."""

    @property
    def failure(self) -> str:
        """Reason of the job's failure; empty if it has not failed."""

    @property
    def is_running(self) -> bool:
        """True if the job has neither succeeded nor failed."""

    def start(self) -> None:
        """Ask Spark for the job, and return at once."""

    def stages(self) -> list[StageProgress]:
        """Return the progress of the stages in their order, as far as Spark tells it."""

    def cancel(self) -> None:
        """Cancel the Spark jobs that Spark knows of so far. Any thread may call this, and repeatedly."""


class StageHost(Protocol):
    """The operations of Spark that BATCH jobs need."""

    @property
    def on_network(self) -> bool:
        """True if tasks may be on other machines than the driver."""

    def open_door(self, secret: bytes, identity: Identity | None) -> Door:
        """Open a listening socket for the tasks."""

    def stage_job(self, tasks: Sequence[StageTask], assigned: Sequence[bytes], name: str, group: str) -> StageJob:
        """Prepare a job with a task per stage. `assigned`: pickled assignments of the first stage, by slot.

        Spark shows the job under `name`. Only this job has the job group `group`.
        """


class RddStages:
    """A job over an RDD."""

    def __init__(
        self, context: SparkContext, tasks: Sequence[StageTask], assigned: Sequence[bytes], name: str, group: str
    ) -> None:
        self.parcels: list[Parcel] | None = None
        self.failure = ""
        self._context = context
        self._tasks = tasks
        self._assigned = assigned
        self._name = name
        self._group = group
        self._thread = InheritableThread(target=self._run, name="penstock batch", daemon=True)

    @property
    def is_running(self) -> bool:
        return bool(self._thread.is_alive())

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        try:
            self._context.setJobGroup(self._group, self._name, interruptOnCancel=False)
            self.parcels = self._lineage().collect()
        except Exception as error:
            self.failure = reason(str(error), self._context.pythonExec)

    def _lineage(self) -> Any:
        """Return the RDD of the last stage, whose values are for the driver."""
        slots = len(self._assigned)
        first, *others = self._tasks
        stages: Any = self._context.parallelize(list(enumerate(self._assigned)), slots).mapPartitionsWithIndex(first)
        for task in others:
            stages = stages.partitionBy(slots, by_slot).mapPartitionsWithIndex(task)
        return stages.values()

    def stages(self) -> list[StageProgress]:
        tracker = self._context.statusTracker()
        jobs = [info for job in tracker.getJobIdsForGroup(self._group) if (info := tracker.getJobInfo(job)) is not None]
        numbers = [stage for job in jobs for stage in sorted(job.stageIds)]
        found = [info for stage in numbers if (info := tracker.getStageInfo(stage)) is not None]
        return [StageProgress(info.numActiveTasks, info.numCompletedTasks, info.numTasks) for info in found]

    def cancel(self) -> None:
        self._context.cancelJobGroup(self._group)


def by_slot(slot: int) -> int:
    """Return the slot that a parcel goes to. Spark's shuffle calls this."""
    return slot
