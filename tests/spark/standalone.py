"""A standalone Spark cluster of real processes: a master, and workers that stand for machines and can be killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import psutil
import pyspark

from tests.spark.kills import session_of
from tests.waiting import SPARK_SECONDS, until

ROOT = Path(__file__).parents[2]
SPARK = Path(pyspark.__file__).parent
SETTINGS = """
spark.executor.memory                            512m
spark.cores.max                                  4
spark.scheduler.minRegisteredResourcesRatio      1.0
spark.driver.host                                127.0.0.1
spark.driver.bindAddress                         127.0.0.1
"""
"""The application waits for all cores before its first job, so that Spark spreads the slots over both machines."""


DYNAMIC = """
spark.dynamicAllocation.enabled                  true
spark.dynamicAllocation.minExecutors             0
spark.dynamicAllocation.executorIdleTimeout      1s
spark.scheduler.minRegisteredResourcesRatio      0
spark.executor.cores                             1
"""
"""Further settings: executors of one core come when tasks wait, and go as soon as they have none."""


class Daemon:
    """A process of Spark's, and all that come of it: they share a session, as the processes of a machine do."""

    def __init__(self, log: Path, address: str, kind: str, *arguments: str, apart: bool = False) -> None:
        self.address = address
        self._log = log
        command = [str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments]
        if apart:
            command = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', log.stem, *command]
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "SPARK_LOCAL_IP": address,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_NO_DAEMONIZE": "1",
        }
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                command, stdout=out, stderr=out, env=environment, cwd=log.parent, start_new_session=True
            )

    def processes(self) -> list[psutil.Process]:
        """The processes of this machine that are alive."""
        return session_of(self._process.pid)

    def slots(self) -> list[psutil.Process]:
        """The slots that this machine hosts; a slot's process bears its name."""
        found = []
        for process in self.processes():
            with suppress(psutil.Error):
                if process.name().startswith("slot"):
                    found.append(process)
        return found

    def executors(self) -> list[psutil.Process]:
        """The JVMs of the executors on this machine."""
        found = []
        for process in self.processes():
            with suppress(psutil.Error):
                if any("CoarseGrainedExecutorBackend" in argument for argument in process.cmdline()):
                    found.append(process)
        return found

    def kill(self) -> None:
        """The power fails: nothing on this machine gets to say a last word."""
        while alive := self.processes():
            for process in alive:
                with suppress(psutil.Error):
                    process.send_signal(signal.SIGKILL)
            psutil.wait_procs(alive, timeout=1)
            self._process.poll()
        self._process.wait()

    def await_word(self, word: str) -> None:
        """Wait until the log contains a text."""

        def said() -> bool:
            assert self._process.poll() is None, f"it ended:\n{self._log.read_text()[-3000:]}"
            return word in self._log.read_text()

        until(
            said,
            progress=self._log.read_text,
            patience=SPARK_SECONDS,
            every=0.05,
            told=lambda: f"{word!r} is not in:\n{self._log.read_text()[-3000:]}",
        )


class Standalone:
    """A master and two workers with two cores each."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        """`settings` come after SETTINGS; of two values, the later one holds."""
        self._folder = folder
        self._apart = _can_have_host_names()
        self._daemons: list[Daemon] = []
        (folder / "conf").mkdir()
        (folder / "conf" / "spark-defaults.conf").write_text(SETTINGS + settings)

    @property
    def environment(self) -> dict[str, str]:
        """What a driver needs to know."""
        return {"SPARK_CONF_DIR": str(self._folder / "conf"), "SPARK_LOCAL_IP": "127.0.0.1"}

    def __enter__(self) -> Standalone:
        port = free_port()
        self.url = f"spark://127.0.0.1:{port}"
        options = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
        try:
            master = self._started(Daemon(self._folder / "master.log", "127.0.0.1", "master.Master", *options))
            master.await_word("New state: ALIVE")
            self.machines = [self.machine(number) for number in (0, 1)]
            for machine in self.machines:
                machine.await_word("Successfully registered with master")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def machine(self, number: int) -> Daemon:
        """Switch a machine on. Each has an address of its own, and a host name where the system allows it."""
        address = f"127.0.0.{11 + number}"
        log = self._folder / f"machine{number}.log"
        log.unlink(missing_ok=True)
        options = ["--host", address, "--webui-port", "0", "--cores", "2", "--memory", "1g"]
        options += ["--work-dir", str(self._folder / f"work{number}"), self.url]
        worker = Daemon(log, address, "worker.Worker", *options, apart=self._apart)
        return self._started(worker)

    def _started(self, daemon: Daemon) -> Daemon:
        self._daemons.append(daemon)
        return daemon

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for daemon in reversed(self._daemons):
            daemon.kill()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def _can_have_host_names() -> bool:
    """Processes with different host names count as being on different machines, and talk over the network."""
    try:
        tried = subprocess.run(["unshare", "--uts", "hostname", "tried"], capture_output=True, check=False)
    except OSError:
        return False
    return tried.returncode == 0
