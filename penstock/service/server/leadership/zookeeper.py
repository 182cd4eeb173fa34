"""Leader election with ZooKeeper: servers queue for a lock, and the leader keeps it as long as its session lives."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from penstock.base.libraries import optional_library
from penstock.base.storage import Storage
from penstock.errors import ConfigurationError, StorageError
from penstock.service.options.server_options import CLUSTER_ID, ZK_QUORUM, ZK_ROOT, ZK_SESSION, ServerSettings
from penstock.service.server.leadership.elections import Deposed, Elected, last_leader
from penstock.service.server.leadership.fencing_numbers import next_fence

log = logging.getLogger("penstock.server")
PAUSE_SECONDS = 1.0


class ZooKeeperElection:
    """Takes part in the election in a separate thread.

    While the connection is interrupted, this server does not act, although it may still have the lock. If the session
    continues, the server leads again; if the session has ended, it queues again.
    """

    def __init__(self, settings: ServerSettings, storage: Storage, who: Mapping[str, Any]) -> None:
        quorum = ZK_QUORUM.of(settings.configuration)
        if quorum is None:
            raise ConfigurationError(
                f"high-availability.type is zookeeper, and {ZK_QUORUM.name} is not set: name the servers of "
                "ZooKeeper there"
            )
        self._kazoo = optional_library("kazoo.client", "high-availability.type=zookeeper needs kazoo", "zookeeper")
        root = ZK_ROOT.value(settings.configuration).rstrip("/")
        self._folder = f"{root}/{CLUSTER_ID.of(settings.configuration)}"
        self._storage = storage
        self._who = who
        self._client = self._create_client(quorum, ZK_SESSION.value(settings.configuration) / 1000)
        self._stopped = threading.Event()
        self._lost = threading.Event()
        self._held = False
        self._thread: threading.Thread | None = None
        self._lock: Any = None

    def _create_client(self, quorum: str, session_seconds: float) -> Any:
        # With unlimited tries, the client reconnects whenever ZooKeeper is back.
        endless = {"max_tries": -1, "delay": 0.2, "max_delay": 5}
        client = self._kazoo.KazooClient(hosts=quorum, timeout=session_seconds, connection_retry=endless)
        client.add_listener(self._note_connection)
        return client

    def _note_connection(self, state: str) -> None:
        log.info("ZooKeeper: %s", state)
        if state == "LOST":
            self._lost.set()

    def start(self, on_elected: Elected, on_deposed: Deposed) -> None:
        self._client.start_async()
        self._thread = threading.Thread(
            target=self._run, args=(on_elected, on_deposed), name="penstock election", daemon=True
        )
        self._thread.start()

    def _run(self, on_elected: Elected, on_deposed: Deposed) -> None:
        while not self._stopped.is_set():
            try:
                self._lead_once(on_elected, on_deposed)
            except StorageError as error:
                log.warning("this server was elected leader, but could not start to lead: %s", error)
            except Exception as error:
                if not self._stopped.is_set():
                    log.warning("the election failed; trying again: %s: %s", type(error).__name__, error)
            self._stopped.wait(PAUSE_SECONDS)

    def _lead_once(self, on_elected: Elected, on_deposed: Deposed) -> None:
        """Queue for the lock, and keep it until the session has ended."""
        if not self._client.connected:
            return
        self._lost.clear()
        self._lock = self._client.Lock(f"{self._folder}/election", self._who["id"])
        if not self._lock.acquire():
            return
        try:
            fence = next_fence(self._storage, self._who)
            self._publish()
            self._held = True
            on_elected(fence)
            while not self._stopped.is_set() and not self._lost.wait(0.1):
                pass
        finally:
            if self._held:
                self._held = False
                if not self._stopped.is_set():
                    on_deposed()
            with suppress(Exception):
                self._lock.release()

    def _publish(self) -> None:
        """Store the id and address of this leader in ZooKeeper, for clients that look there."""
        path, said = f"{self._folder}/leader", json.dumps(dict(self._who)).encode()
        self._client.ensure_path(path)
        self._client.set(path, said)

    def leads(self) -> bool:
        return self._held and not self._lost.is_set() and bool(self._client.connected)

    def leader(self) -> Mapping[str, Any]:
        return last_leader(self._storage)

    def stop(self) -> None:
        self._stopped.set()
        if self._lock is not None:
            with suppress(Exception):
                self._lock.cancel()
        if self._thread is not None:
            self._thread.join(10)
        with suppress(Exception):
            self._client.stop()
            self._client.close()
