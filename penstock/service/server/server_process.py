"""The process of a server, which serves REST and supervises jobs until it is told to end.

    python -m penstock.service.server.server_process OPTIONS

OPTIONS is a JSON file with the folder and the configuration. The process deletes it after reading.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.base.hdfs.kerberos_login import log_in
from penstock.errors import PenstockError
from penstock.service.options.rest_options import rest_settings
from penstock.service.options.server_options import LOG_FILES, LOG_SIZE, STANDBY, ServerSettings
from penstock.service.rest.app import create_app
from penstock.service.rest.http_server import RestServer
from penstock.service.rest.server_secret import create_secret, delete_secret, write_secret
from penstock.service.server.control import ControlServer, key_in, socket_path
from penstock.service.server.home import LOG, OUT, Home
from penstock.service.server.leadership.forwarding import Forwarding, trust_of
from penstock.service.server.leadership.standby_middleware import LeaderOnly
from penstock.service.server.log_files import keep_small
from penstock.service.server.service import Service

log = logging.getLogger("penstock.server")


class ServerProcess:
    """The parts of one server process."""

    def __init__(self, folder: Path, configuration: Mapping[str, str]) -> None:
        # Files of the server may contain secrets. Files of jobs have the original umask.
        umask = os.umask(0o077)
        self._home = Home(folder)
        settings = ServerSettings.of(folder, configuration)
        log_in(configuration)
        self._service = Service(settings, umask)
        self._secret = create_secret()
        rest = replace(rest_settings(configuration), owner_secret=self._secret)
        app = create_app(self._service.jobs, rest)
        forwards = STANDBY.value(configuration) == "forward"
        app.add_middleware(
            LeaderOnly,
            election=lambda: self._service.election,
            own=self._url,
            forwarding=Forwarding(trust_of(rest.tls.certificate if rest.tls.enabled else None)) if forwards else None,
        )
        self._rest: RestServer = RestServer(app, rest)
        self._told_to_end = threading.Event()
        self._keep_jobs = False

    def _url(self) -> str:
        return self._rest.url

    def run(self) -> None:
        """Serve until a signal or the command line ends the server."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._told_to_end.set())
        folder = self._home.folder
        address = socket_path(folder, "server")
        control = ControlServer(address, str(key_in(folder)), {"status": self._status, "stop": self._stop})
        self._service.start(self._rest.url)
        self._rest.start()
        self._home.announce(self._rest.url, address)
        write_secret(self._rest.url, self._secret)
        log.info("the server listens at %s", self._rest.url)
        self._told_to_end.wait()
        log.info("the server is ending; its jobs %s", "run on" if self._keep_jobs else "are suspended")
        self._rest.stop()
        self._service.stop(self._keep_jobs)
        control.close()
        delete_secret(self._rest.url, self._secret)
        self._home.leave()

    def _stop(self, asked: Mapping[str, Any]) -> None:
        self._keep_jobs = bool(asked["keep_jobs"])
        self._told_to_end.set()

    def _status(self, _: Mapping[str, Any]) -> dict[str, Any]:
        election = self._service.election
        leads = election.leads()
        records = self._service.jobs.records() if leads else []
        managers = self._service.jobs.task_managers() if leads else []
        return {
            "pid": os.getpid(),
            "address": self._rest.url,
            "leads": leads,
            "leader": self._rest.url if leads else election.leader().get("address"),
            "jobs": dict(Counter(record.status for record in records)),
            "slots": sum(manager.slots for manager in managers),
            "free_slots": sum(manager.free_slots for manager in managers),
        }


def main(options: Path) -> None:
    """Run the server process."""
    told = json.loads(options.read_text())
    options.unlink()
    folder, configuration = Path(told["folder"]), told["configuration"]
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    if told["foreground"]:  # otherwise standard error is the file
        handlers.append(logging.FileHandler(folder / LOG))
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)-7s %(name)s: %(message)s", handlers=handlers
    )
    keep_small([folder / LOG, folder / OUT], LOG_SIZE.value(configuration), LOG_FILES.value(configuration))
    try:
        ServerProcess(folder, configuration).run()
    except PenstockError as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
