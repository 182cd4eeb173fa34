"""Python processes on the free cores of a cluster, so that a lost slot has its successor at once.

The first Python process of an executor takes seconds to start: the executor's JVM loads what it needs, starts Python
and imports modules. Empty tasks on the free cores let that happen while the job runs, and not when a slot is lost.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark import SparkContext

from penstock.spark.sessions.obstacles import capacity
from penstock.spark.sessions.preloading import preload
from penstock.spark.sessions.session import scala_context

LOOK_SECONDS = 5.0
"""Time, in seconds, between two looks for executors that have come."""
NAME = "Penstock: start spare Python processes"
log = logging.getLogger("penstock.job")


@dataclass(frozen=True)
class SpareTask:
    """A task that ends as soon as its Python process has imported what slots need."""

    modules: tuple[str, ...]

    def __call__(self, index: int, elements: Iterator[object]) -> Iterator[object]:
        """Import the modules."""
        preload(self.modules)
        return iter(())


class SpareProcesses:
    """Starts a Python process on every executor of an application that has free cores."""

    def __init__(
        self, context: SparkContext, slots: int, modules: tuple[str, ...], on_news: Callable[[], object]
    ) -> None:
        """Create the keeper for an attempt that uses `slots` cores. `on_news` is called for new executors."""
        self._context = context
        self._slots = slots
        self._modules = modules
        self._on_news = on_news
        self._known: frozenset[str] = frozenset()
        """Executors that have been prepared."""
        self._over = threading.Event()
        self._group = f"penstock-spares-{id(self)}"

    def start(self) -> None:
        """Prepare the current executors, and those that start later."""
        threading.Thread(target=self._watch, name="penstock spares", daemon=True).start()

    def end(self) -> None:
        """Leave all cores to the slots of the next attempt. Any thread may call this."""
        self._over.set()
        with suppress(Py4JError, OSError):
            self._context.cancelJobGroup(self._group)

    def _watch(self) -> None:
        while not self._over.is_set():
            try:
                self._prepare()
            except Exception as error:  # a job must not suffer from its spares
                log.debug("spare processes could not be started: %s", error)
            self._over.wait(LOOK_SECONDS)

    def _prepare(self) -> None:
        """Start a process on each free core if there is a new executor."""
        executors = executors_of(self._context)
        if executors <= self._known:
            return
        self._on_news()
        free = (capacity(self._context) or 0) - self._slots
        self._known = executors
        if free <= 0:
            return
        self._context.setJobGroup(self._group, NAME, interruptOnCancel=False)
        if not self._over.is_set():
            tasks = self._context.parallelize(range(free), free)
            tasks.mapPartitionsWithIndex(SpareTask(self._modules)).count()
            log.debug("%d spare processes have started", free)


def executors_of(context: SparkContext) -> frozenset[str]:
    """Return the ids of the living executors."""
    return frozenset(str(scala_context(context).getExecutorIds().mkString(",")).split(",")) - {""}
