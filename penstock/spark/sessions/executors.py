"""Executors on hosts that cannot be reached. Spark would start tasks there until it notices the loss by itself."""

from __future__ import annotations

import logging
import socket
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

from penstock.spark.sessions.session import scala_context

PROBE_SECONDS = 2.5
"""Time, in seconds, in which the system of a host must answer a connection. A lost packet is repeated after 1 s."""
MOST_PROBES = 32
"""Number of executors that are probed at the same time."""
log = logging.getLogger("penstock.job")


class Executors:
    """The executors of an application, and the hosts of theirs that have been reached."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._reached: set[str] = set()

    def probe(self, lost: Collection[str] = ()) -> set[str]:
        """Return the hosts of executors that do not answer now and have answered before. Hosts in `lost` are not asked.

        A host that never answers may be behind a firewall, which does not disturb Spark.
        """
        answers = probe_hosts(one for one in executor_addresses(self._context) if one[0] not in lost)
        self._reached |= {host for host, answered in answers.items() if answered}
        return {host for host, answered in answers.items() if not answered and host in self._reached}

    def give_up_unreachable(self, hosts: Collection[str]) -> None:
        """Make Spark replace the executors on these hosts, and on hosts that do not answer any more.

        If no host of an executor can be reached, this machine is the one that is cut off, and nothing is replaced.
        """
        with suppress(Py4JError, OSError):
            scala = scala_context(self._context)
            places = {host for host, _ in executor_addresses(self._context)}
            lost = places & {*hosts, *self.probe(hosts)}
            if not lost or lost == places:
                return
            log.warning("replacing the executors on %s: these hosts cannot be reached", ", ".join(sorted(lost)))
            for executor in [executor for host in lost for executor in _executors_on(scala, host)]:
                scala.killAndReplaceExecutor(executor)


def executor_addresses(context: SparkContext) -> set[tuple[str, int]]:
    """Return host and port of every executor on another host than the driver's."""
    own = context.getConf().get("spark.driver.host")
    found = {(str(one.host()), int(one.port())) for one in scala_context(context).statusTracker().getExecutorInfos()}
    return {(host, port) for host, port in found if host != own}


def probe_hosts(addresses: Iterable[tuple[str, int]], seconds: float = PROBE_SECONDS) -> dict[str, bool]:
    """Return for each host whether its system answers. A refused connection is an answer."""
    with ThreadPoolExecutor(MOST_PROBES, thread_name_prefix="penstock probe") as pool:
        tries = [(host, pool.submit(_answers, host, port, seconds)) for host, port in addresses]
    answers: dict[str, bool] = {}
    for host, tried in tries:
        answers[host] = answers.get(host, False) or tried.result()
    return answers


def _answers(host: str, port: int, seconds: float) -> bool:
    try:
        socket.create_connection((host, port), seconds).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return True


def _executors_on(scala: Any, host: str) -> list[str]:
    alive = scala.taskScheduler().getExecutorsAliveOnHost(host)
    return str(alive.get().mkString(",")).split(",") if alive.isDefined() else []
