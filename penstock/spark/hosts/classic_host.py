"""A SparkContext in this process as the host of streaming and BATCH jobs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence

from pyspark import SparkContext

from penstock.errors import ConfigurationError, SlotLost
from penstock.spark.batch.batch_task import StageTask
from penstock.spark.batch.stage_jobs import RddStages, StageJob
from penstock.spark.links.door import Door, Listener
from penstock.spark.links.encryption import Identity
from penstock.spark.sessions.delegation_tokens import delegation_tokens
from penstock.spark.sessions.earlier_applications import application_of, end_application
from penstock.spark.sessions.executors import Executors
from penstock.spark.sessions.obstacles import allocates_dynamically, capacity
from penstock.spark.sessions.preloading import modules_to_import
from penstock.spark.sessions.session import has_ended
from penstock.spark.slots.slot_tasks import BarrierTasks, OrdinaryTasks, SlotTasks
from penstock.spark.slots.spare_processes import SpareProcesses
from penstock.spark.slots.worker import Invitation

log = logging.getLogger("penstock.job")


class ClassicHost:
    """Host of slots and stages that uses a SparkContext in this process."""

    def __init__(self, context: SparkContext, renew: Callable[[], SparkContext] | None = None) -> None:
        """Create a host. `renew` replaces an application that has ended; None if the program created the session."""
        self._context = context
        self._renew = renew
        self._is_dynamic = allocates_dynamically(context)
        self._spares: SpareProcesses | None = None
        self._executors = Executors(context)
        self._has_begun = False

    def prepare(self, unreachable: Collection[str]) -> None:
        if has_ended(self._context):
            self._replace()
        elif self._has_begun and self.on_network:
            self._executors.give_up_unreachable(unreachable)
        self._has_begun = True

    def _replace(self) -> None:
        if self._renew is None:
            raise ConfigurationError(
                "the Spark application of this job has ended. The program created its session, so Penstock "
                "cannot replace it. Start the program again, or let Penstock create the session (spark.master)"
            )
        log.warning("the Spark application of this job has ended; starting another one")
        try:
            self._context = self._renew()
            self._executors = Executors(self._context)
        except ConfigurationError as error:
            raise SlotLost(
                f"the Spark application has ended, and another one could not be started yet: {error}"
            ) from None

    def keep_spares(self, slots: int) -> None:
        if self.on_network and self._renew is not None and not self._is_dynamic:
            self._spares = SpareProcesses(self._context, slots, modules_to_import(), self._executors.probe)
            self._spares.start()

    def end_spares(self) -> None:
        spares, self._spares = self._spares, None
        if spares is not None:
            spares.end()

    def application(self) -> bytes | None:
        return application_of(self._context)

    def end_application(self, described: bytes) -> None:
        end_application(self._context, described)

    @property
    def on_network(self) -> bool:
        return not is_local(self._context)

    def capacity(self) -> int | None:
        return None if self._is_dynamic else capacity(self._context)

    def tokens(self) -> bytes:
        return b"" if is_local(self._context) else delegation_tokens()

    def open_door(self, secret: bytes, identity: Identity | None) -> Door:
        return door_of(self._context, secret, identity)

    def tasks(self, invitation: Invitation, name: str, group: str) -> SlotTasks:
        kind = OrdinaryTasks if self._is_dynamic else BarrierTasks
        return kind(self._context, invitation, name, group)

    def stage_job(self, tasks: Sequence[StageTask], assigned: Sequence[bytes], name: str, group: str) -> StageJob:
        return RddStages(self._context, tasks, assigned, name, group)


def is_local(context: SparkContext) -> bool:
    """Return True if driver and executors are one process."""
    return context.master.startswith("local") and not context.master.startswith("local-cluster")


def door_of(context: SparkContext, secret: bytes, identity: Identity | None) -> Door:
    """Return a listening socket for executors: at a path on the same machine, else at the address that Spark uses."""
    if is_local(context):
        return Door(Listener(secret))
    configuration = context.getConf()
    bind = configuration.get("spark.driver.bindAddress", "") or ""
    return Door(Listener(secret, configuration.get("spark.driver.host"), bind, identity))
