"""A Spark Connect server of its own process, on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import psutil
import pyspark

from tests.spark.kills import SLOT, Victim, session_of
from tests.spark.standalone import free_port
from tests.waiting import SPARK_SECONDS, until

ROOT = Path(__file__).parents[2]
SPARK = Path(pyspark.__file__).parent
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


class ConnectServer:
    """`spark-submit` with the class of the server, as sbin/start-connect-server.sh does it."""

    def __init__(
        self, folder: Path, master: str = "local[8,4]", options: Mapping[str, str] | None = None, **environment: str
    ) -> None:
        self._log = folder / "connect-server.log"
        self._folder = folder
        self._master = master
        self._options = options or {}
        self._environment = environment
        self.port = free_port()
        self.url = f"sc://localhost:{self.port}"

    def __enter__(self) -> ConnectServer:
        self.start()
        return self

    def start(self) -> None:
        """Start it, at the same port each time, and wait until it takes sessions."""
        began = len(self._log.read_text()) if self._log.exists() else 0
        options = {
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.executor.memory": "512m",
            "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
            **self._options,
        }
        command = [str(SPARK / "bin" / "spark-submit"), "--class", SERVER, "--master", self._master]
        command += [part for name, value in options.items() for part in ("--conf", f"{name}={value}")]
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            **self._environment,
        }
        with self._log.open("ab") as out:
            self._process = subprocess.Popen(
                [*command, "spark-internal"],
                stdout=out,
                stderr=out,
                env=environment,
                cwd=self._folder,
                start_new_session=True,
            )
        until(
            lambda: self._is_up(began), progress=self._log.read_text, patience=SPARK_SECONDS, every=0.05, told=self.log
        )

    def _is_up(self, began: int) -> bool:
        assert self._process.poll() is None, self.log()
        return "Spark Connect server started" in self._log.read_text()[began:]

    def log(self) -> str:
        return self._log.read_text()[-4000:]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Kill it, with its executors and slots."""
        while alive := self.processes():
            for process in alive:
                with suppress(psutil.Error):
                    process.send_signal(signal.SIGKILL)
            psutil.wait_procs(alive, timeout=1)
            self._process.poll()
        self._process.wait()

    def processes(self) -> list[psutil.Process]:
        """The processes of the server, its executors and slots among them."""
        return session_of(self._process.pid)

    def slots(self, job: str = "") -> dict[int, int]:
        """By number of a slot: its process."""
        found = {}
        for process in self.processes():
            with suppress(psutil.Error):
                slot = SLOT.fullmatch(process.name())
                if slot is not None and (not job or job.startswith(slot[2])):
                    found[int(slot[1])] = process.pid
        return found


class ConnectVictim(Victim):
    """A job whose executors and slots are processes of a Connect server."""

    server: ConnectServer

    def _children(self) -> list[psutil.Process]:
        return self.server.processes()

    def kill_driver(self) -> None:
        """The process of the job alone. Its slots end by themselves."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
