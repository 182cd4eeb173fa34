"""Slots over Spark Connect. Their tasks are those of a `mapInArrow` over a DataFrame with a row per slot."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from penstock.spark.batch.batch_task import StageTask
from penstock.spark.batch.connect_stages import FrameStages
from penstock.spark.batch.stage_jobs import StageJob
from penstock.spark.links.door import Door, Listener
from penstock.spark.links.encryption import Identity
from penstock.spark.links.links import Address, host_towards
from penstock.spark.sessions.cached_files import upload
from penstock.spark.sessions.connect_session import (
    DRIVER_TASK,
    OWN_ADDRESS,
    check_server,
    describe_error,
    endpoint,
    parallelism_of,
    sibling,
)
from penstock.spark.sessions.obstacles import Resources
from penstock.spark.slots.slot_tasks import SlotTasks, reason
from penstock.spark.slots.worker import Invitation

FORGOTTEN = (
    "SESSION_NOT_FOUND",
    "SESSION_CHANGED",
    "SESSION_CLOSED",
    "SESSION_NOT_SAME",
    "OPERATION_NOT_FOUND",
    "NO_ACTIVE_SESSION",
)
"""Words with which a server, or later Spark's client, refuses a session that the server does not know."""


class ConnectHost:
    """Host that uses a session of Spark Connect. Slots connect to this process, as without Spark Connect."""

    on_network = True

    def __init__(self, session: Any, options: Mapping[str, str], uploaded: Sequence[str] = ()) -> None:
        """Create a host. `options`: Spark options of the job, some of which name this process's address.

        `uploaded`: names of staged files that slots need.
        """
        check_server(session)
        self._session = session
        self._options = options
        self._uploaded = uploaded

    def capacity(self) -> int | None:
        cores = parallelism_of(self._session)
        # The task of a driver in the cluster occupies one core.
        return cores if cores is None or DRIVER_TASK not in os.environ else max(0, cores - 1)

    def prepare(self, unreachable: Collection[str]) -> None:
        """Do nothing: application and executors belong to the server, and a client cannot replace them."""

    def keep_spares(self, slots: int) -> None:
        """Do nothing: the server belongs to others, too."""

    def end_spares(self) -> None:
        """Do nothing: there are none."""

    def application(self) -> bytes | None:
        """Return None: the application belongs to the server."""
        return None

    def end_application(self, described: bytes) -> None:
        """Do nothing: drivers have no applications of their own."""

    def tokens(self) -> bytes:
        """Return no bytes: a client has no JVM whose tokens Spark renews."""
        return b""

    def open_door(self, secret: bytes, identity: Identity | None) -> Door:
        host, bind = (self._options.get(name) for name in OWN_ADDRESS)
        if host is None:
            host = bind = host_towards(self._server())
        return Door(Listener(secret, host, bind or "", identity))

    def _server(self) -> Address:
        host, _, port = endpoint(self._session).rpartition(":")
        return Address("", "", host.strip("[]") or "localhost", int(port) if port.isdigit() else 15002)

    def tasks(self, invitation: Invitation, name: str, group: str) -> SlotTasks:
        return ConnectTasks(self._renew_session(), invitation, group, self.capacity)

    def stage_job(self, tasks: Sequence[StageTask], assigned: Sequence[bytes], name: str, group: str) -> StageJob:
        return FrameStages(self._renew_session(), tasks, assigned, group)

    def _renew_session(self) -> Any:
        """Return the session, or a new one if the server has forgotten it."""
        if self._is_forgotten():
            self._session = sibling(self._session)
            upload(self._session, self._uploaded)
        return self._session

    def _is_forgotten(self) -> bool:
        """Return True if the server has forgotten the session, because it was restarted or the session timed out."""
        try:
            self._session.conf.get("spark.app.name", "")
        except Exception as error:
            return any(word in str(error) for word in FORGOTTEN)
        return False


class ConnectTasks:
    """Barrier tasks that a Connect server starts."""

    def __init__(self, session: Any, invitation: Invitation, group: str, capacity: Callable[[], int | None]) -> None:
        self.failure: str | None = None
        self._session = session
        self._capacity = capacity
        self._invitation = invitation
        self._group = group
        self._job = threading.Thread(target=self._run, name="penstock slots", daemon=True)

    def start(self) -> None:
        self._job.start()

    def obstacle(self, started: int) -> str:
        return Resources(endpoint(self._session), capacity=self._capacity()).obstacle(self._invitation.slots, started)

    def _run(self) -> None:
        try:
            self._session.addTag(self._group)  # the tags of a client belong to its threads
            slots = self._invitation.slots
            numbers = self._session.range(0, slots, 1, slots)
            rows = numbers.mapInArrow(slot_task(self._invitation), "ended string", barrier=True).collect()
        except Exception as error:
            self.failure = reason(describe_error(error))
        else:
            self.failure = "; ".join(row.ended for row in rows) or self._quiet_end()

    def _quiet_end(self) -> str:
        """Return the message for slots that ended silently, because they lost the driver or never reached it."""
        driver = self._invitation.driver
        return (
            f"they ended on their own. If executors cannot reach this process at {driver.host}:{driver.port}, "
            "set spark.driver.host to an address of this machine that they reach, and spark.driver.bindAddress to the "
            "address to listen at; or let the driver run in the cluster, with spark.submit.deployMode=cluster"
        )

    def end(self, seconds: float) -> None:
        if self._job.ident is None:
            return
        self._job.join(seconds)
        if self._job.is_alive():
            with suppress(Exception):  # a server that is gone runs no tasks
                self._session.interruptTag(self._group)


def slot_task(invitation: Invitation) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function of the slots' tasks. Spark requires a plain function."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        [index] = [value for batch in batches for value in batch.column(0).to_pylist()]
        yield pyarrow.RecordBatch.from_pydict({"ended": pyarrow.array(invitation.host_slot(index), pyarrow.string())})

    return run
