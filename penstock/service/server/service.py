"""A server without REST: register, drivers, supervisor, history and election."""

from __future__ import annotations

import logging
import os
from uuid import uuid4

from penstock.service.options.server_options import ServerSettings
from penstock.service.server.drivers import Drivers
from penstock.service.server.job_history import History
from penstock.service.server.leadership.elections import Election, Unelected, election_of
from penstock.service.server.register import Register
from penstock.service.server.server_jobs import ServerJobs
from penstock.service.server.supervisor import Supervisor

log = logging.getLogger("penstock.server")


class Service:
    """The parts of a server that run from `start` to `stop`. It leads whenever it is elected."""

    def __init__(self, settings: ServerSettings, driver_umask: int = -1) -> None:
        os.makedirs(settings.data, mode=0o700, exist_ok=True)
        self.settings = settings
        register, drivers = Register(settings.storage), Drivers(settings, driver_umask)
        self._register = register
        self.supervisor = Supervisor(settings, register, drivers)
        self.history = History(settings.history, settings.history_refresh, settings.history_kept)
        self.jobs = ServerJobs(settings, register, self.supervisor, drivers, self.history)
        self.election: Election = Unelected()

    def start(self, address: str) -> None:
        """Take part in the election. Without rivals, this server leads when the method returns.

        `address` is the URL of this server's REST, under which others reach it.
        """
        who = {"id": uuid4().hex, "address": address}
        self.election = election_of(self.settings, self._register.storage, who)
        self.supervisor.may_act = self.election.leads
        self.history.start()
        self.election.start(on_elected=self._start_leading, on_deposed=self._stop_leading)

    def _start_leading(self, fence: int) -> None:
        log.info("this server is now the leader, with number %d", fence)
        self.supervisor.lead(fence)

    def _stop_leading(self) -> None:
        log.warning("this server is no longer the leader; its drivers continue to run")
        self.supervisor.follow()

    def stop(self, keep_jobs: bool) -> None:
        """End the service. Jobs are suspended until a server leads again, or continue to run with `keep_jobs`."""
        led = self.supervisor.leads
        self.supervisor.follow()
        if led and not keep_jobs:
            self.supervisor.suspend()
        self.election.stop()
        self.history.stop()
