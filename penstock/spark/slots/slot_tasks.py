"""The Spark tasks that become slots: starting, cancelling and watching them.

An attempt knows only the two protocols of this module. The tasks of a classic session, which has a SparkContext, are
those of a job over an RDD. They are barrier tasks, which Spark starts all at once. With dynamic allocation, they are
ordinary tasks, because Spark starts no barrier tasks then, but adds executors for waiting ordinary tasks.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from contextlib import suppress
from typing import Any, Protocol

from py4j.protocol import Py4JError
from pyspark import InheritableThread, SparkContext

from penstock.errors import ConfigurationError, SlotLost
from penstock.spark.links.door import Door
from penstock.spark.links.encryption import Identity
from penstock.spark.sessions.interpreters import UNFIT, unfit_interpreter
from penstock.spark.sessions.obstacles import resources
from penstock.spark.slots.worker import Invitation

STRAGGLER_SECONDS = 0.5
"""Time, in seconds, that ordinary tasks get to end by themselves. A task may be a retry that has not started yet."""
log = logging.getLogger("penstock.job")


class SlotTasks(Protocol):
    """The tasks of the slots of one attempt. Each stays until its slot ends."""

    @property
    def failure(self) -> str | None:
        """Reason why the tasks have ended, or None while they run. Any thread may read it."""

    def start(self) -> None:
        """Ask Spark for the tasks, and return at once. Called at most once."""

    def obstacle(self, started: int) -> str:
        """Describe what the tasks wait for when `started` of them have started. Also called before `start`."""

    def end(self, seconds: float) -> None:
        """Wait this long for the tasks to end by themselves, then cancel them. Do nothing before `start`.

        Any thread may call this, and more than once.
        """


class SlotHost(Protocol):
    """Spark, as far as attempts need it."""

    @property
    def on_network(self) -> bool:
        """True if slots may be on other machines than the driver."""

    def capacity(self) -> int | None:
        """Return the number of tasks that Spark can run at once now; None if it is unknown or grows as needed."""

    def prepare(self, unreachable: Collection[str]) -> None:
        """Prepare an attempt: replace an application that has ended, and avoid unreachable hosts.

        Raise SlotLost if the application cannot be replaced yet.
        """

    def application(self) -> bytes | None:
        """Return the description by which a later driver of the job can free the cores of this one, or None."""

    def end_application(self, described: bytes) -> None:
        """Free the cores that an earlier driver of the job, which is gone, may still hold.

        `described` is what that driver's `application` returned.
        """

    def tokens(self) -> bytes:
        """Return Hadoop's file with the delegation tokens of HDFS that slots need, or no bytes if they need none."""

    def keep_spares(self, slots: int) -> None:
        """Keep Python processes ready on the cores that these slots leave free."""

    def end_spares(self) -> None:
        """Leave all cores to the next attempt. Any thread may call this, and more than once."""

    def open_door(self, secret: bytes, identity: Identity | None) -> Door:
        """Open a listening socket for the slots."""

    def tasks(self, invitation: Invitation, name: str, group: str) -> SlotTasks:
        """Prepare the tasks of an attempt. Spark shows them under `name`. Only they have the job group `group`."""


class BarrierTasks:
    """Tasks of a barrier job. Spark starts all of them at once, and ends all of them when one fails."""

    def __init__(self, context: SparkContext, invitation: Invitation, name: str, group: str) -> None:
        self.failure: str | None = None
        self._context = context
        self._invitation = invitation
        self._name = name
        self._group = group
        self._job = InheritableThread(target=self._run, name="penstock slots", daemon=True)

    def start(self) -> None:
        self._job.start()

    def obstacle(self, started: int) -> str:
        return resources(self._context, self._group).obstacle(self._invitation.slots, started)

    def _run(self) -> None:
        try:
            self._context.setJobGroup(self._group, self._name, interruptOnCancel=False)
            ended = self._partitions().mapPartitionsWithIndex(self._invitation).collect()
        except Exception as error:
            self.failure = reason(str(error), self._context.pythonExec)
        else:
            self.failure = "; ".join(ended) or "Spark has ended the job"

    def _partitions(self) -> Any:
        """Return a barrier RDD with an empty partition for every slot."""
        return self._context.parallelize(range(self._invitation.slots), self._invitation.slots).barrier()

    def end(self, seconds: float) -> None:
        if self._job.ident is None:
            return
        self._job.join(seconds)
        if self._job.is_alive():
            with suppress(Py4JError, OSError):  # a JVM that is gone runs no tasks
                self._context.cancelJobGroup(self._group)


class OrdinaryTasks(BarrierTasks):
    """Tasks that Spark starts one by one, as cores become free, and retries when they fail.

    The driver waits for all slots, notices the loss of one, and cancels the others.
    """

    def start(self) -> None:
        if self._context.getConf().get("spark.speculation", "false").lower() == "true":
            log.warning(
                "spark.speculation is true: Spark may start a second task for a slot; that task occupies a core "
                "and does nothing. Set spark.speculation to false"
            )
        super().start()

    def _partitions(self) -> Any:
        return self._context.parallelize(range(self._invitation.slots), self._invitation.slots)

    def end(self, seconds: float) -> None:
        super().end(min(seconds, STRAGGLER_SECONDS))


def loss(why: str) -> ConfigurationError | SlotLost:
    """Return the error for lost slots. A ConfigurationError means that new slots would fail in the same way."""
    return ConfigurationError(why) if UNFIT in why else SlotLost(why)


def reason(text: str, interpreter: str | None = None) -> str:
    """Return Spark's error in one line, without stack frames. `interpreter` is the Python of the tasks."""
    unfit = unfit_interpreter(text, interpreter)
    if unfit is not None:
        return unfit
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if "ExecutorLostFailure" in text:
        return "an executor was lost, and its slots with it"
    if "the process of slot" in text or "crashed" in text or "exited unexpectedly" in text or "EOFException" in text:
        return "a slot's process died, and its state with it"
    if "cancelled" in text:
        return "the Spark job was cancelled"
    telling = [line for line in lines if ("Error" in line or "Exception" in line) and not line.startswith("at ")]
    return (telling or lines or ["Spark gave no reason"])[-1][:400]
