"""Replacement of executors on unreachable hosts, where Spark would start tasks until it notices the loss."""

from __future__ import annotations

import logging
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

from penstock.spark.sessions.obstacles import capacity
from penstock.spark.sessions.session import scala_context

log = logging.getLogger("penstock.job")


def give_up_executors(context: SparkContext, hosts: Collection[str], slots: int) -> None:
    """Make Spark replace the executors on some hosts, if the others have enough cores for these slots.

    Otherwise the hosts are needed, and Spark's own timeouts decide about them.
    """
    with suppress(Py4JError, OSError):
        scala = scala_context(context)
        lost = {executor: host for host in hosts for executor in _executors_on(scala, host)}
        executors = max(1, int(scala.getExecutorMemoryStatus().size()) - 1)  # the driver is among them
        cores = capacity(context) or 0
        if not lost or cores - len(lost) * cores / executors < slots:
            return
        log.warning("executors on %s are replaced: these hosts cannot be reached", ", ".join(sorted({*lost.values()})))
        for executor in lost:
            scala.killAndReplaceExecutor(executor)


def _executors_on(scala: Any, host: str) -> list[str]:
    alive = scala.taskScheduler().getExecutorsAliveOnHost(host)
    return str(alive.get().mkString(",")).split(",") if alive.isDefined() else []
