"""Jobs on the YARN of the tests, as an outsider sees them: what they wrote, what can be killed, how long they take."""

from __future__ import annotations

import ast
import collections
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyspark

from penstock.base.storage import Storage
from tests.services.hadoop import SPARK_JARS, Hadoop
from tests.waiting import SPARK_SECONDS, until

PROGRAM = Path(__file__).with_name("counting_job.py")
SPARK_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
SMALL = {
    "spark.yarn.jars": f"local:{SPARK_JARS}/*",
    "spark.executor.instances": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    "spark.yarn.am.memory": "512m",
    "spark.yarn.maxAppAttempts": "3",
    "spark.ui.enabled": "false",
}
APPLICATION_MASTERS = ("deploy.yarn.ApplicationMaster", "deploy.yarn.ExecutorLauncher")
EXECUTORS = ("YarnCoarseGrainedExecutorBackend",)


@dataclass
class YarnJob:
    """One job with two slots, and its folder on HDFS."""

    hadoop: Hadoop
    folder: Path
    mode: str
    """`client` and `cluster` of spark-submit, or `run` for `penstock run`."""
    count: int
    rate: int
    settings: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"{self.hadoop.url}/jobs/{self.folder.name}"

    @property
    def _job_id(self) -> str:
        return self.folder.name.encode().hex()[:32].ljust(32, "0")

    def start(self) -> None:
        options = {
            "parallelism.default": "2",
            "pipeline.job-id": self._job_id,
            "execution.recover": "latest",
            "execution.checkpointing.interval": "1s",
            "execution.checkpointing.dir": f"{self.url}/checkpoints",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "5",
            "restart-strategy.fixed-delay.delay": "100ms",
        }
        arguments = [str(PROGRAM), f"{self.url}/out", str(self.count), str(self.rate)]
        settings = {**SMALL, **self.settings}
        if self.mode == "run":
            pairs = [f"-D{name}={value}" for name, value in {**settings, **options}.items()]
            command = [sys.executable, "-m", "penstock", "run", "-m", "yarn", *pairs, *arguments]
        else:
            submitted = {f"spark.penstock.{name}": value for name, value in options.items()} | settings
            pairs = [word for pair in submitted.items() for word in ("--conf", "=".join(pair))]
            command = [str(SPARK_SUBMIT), "--master", "yarn", "--deploy-mode", self.mode, *pairs, *arguments]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.folder, env=self._environment(), start_new_session=True
            )

    def _environment(self) -> dict[str, str]:
        python = self.settings.get("spark.pyspark.python", sys.executable)
        # Spark hands PYTHONPATH on to the containers, where it would put Penstock's sources before an archive's.
        left_out = {"PYTHONPATH"} if python != sys.executable else set()
        return {
            **{name: value for name, value in os.environ.items() if name not in left_out},
            **self.hadoop.environment,
            "PYSPARK_PYTHON": python,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }

    # --- what it does ---
    def checkpoint(self) -> int:
        """The number of the newest complete checkpoint."""
        names = Storage(f"{self.url}/checkpoints").names()
        return max((int(number) for name in names for number in re.findall(r"chk-(\d+)/_metadata$", name)), default=0)

    def await_checkpoint(self, after: int = 0) -> None:
        """Wait for a checkpoint with a later number, which its number continues to be after a restart."""

        def is_there() -> bool:
            assert self.process is not None and self.process.poll() is None, f"it ended early:\n{self.log()}"
            return self.checkpoint() > after

        self.until(is_there, f"no checkpoint after {after}")

    def await_end(self) -> int:
        """Wait until the command has ended and return its exit code."""
        process = self.process
        assert process is not None
        self.until(lambda: process.poll() is not None, "it does not end")
        return int(process.wait())

    def until(self, condition, missing: str) -> None:  # type: ignore[no-untyped-def]
        until(
            condition,
            progress=lambda: (self.checkpoint(), len(self.log())),
            patience=SPARK_SECONDS,
            every=0.1,
            told=lambda: f"{missing}:\n{self.log()[-6000:]}",
        )

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def container_logs(self) -> str:
        """What all containers wrote, of this job and of earlier ones."""
        logs = self.hadoop.folder.glob("data/**/container_*/std*")
        return "\n".join(log.read_text(errors="replace") for log in sorted(logs) if log.is_file())

    def check_results(self) -> None:
        """Every number is there once, and every place of every key."""
        rows = [ast.literal_eval(line) for line in self.lines()]
        numbers = collections.Counter(row[1] for row in rows)
        places = collections.Counter((row[0], row[2]) for row in rows)
        assert len(numbers) == len(rows) == self.count, f"{len(rows)} rows with {len(numbers)} numbers"
        assert places == collections.Counter((number % 10, number // 10 + 1) for number in range(self.count))

    def lines(self) -> list[str]:
        storage = Storage(f"{self.url}/out")
        seen = [name for name in storage.names() if not name.rpartition("/")[2].startswith((".", "_"))]
        return [line for name in seen for line in storage.read(name).decode().splitlines()]

    # --- faults ---
    def kill_executor(self) -> None:
        _kill(self._containers(EXECUTORS)[0])

    def kill_application_master(self) -> None:
        """Kill its JVM. In cluster mode the Python of the driver is left to notice that by itself."""
        _kill(self._containers(APPLICATION_MASTERS)[0])

    def kill_driver_and_start_again(self) -> None:
        """Kill the driver on this machine, as a supervisor finds it, which then runs the same command once more."""
        assert self.process is not None
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.start()

    def stop_node(self) -> None:
        """Stop the node manager of an executor, which ends all of its containers."""
        folder = self._containers(EXECUTORS)[0].cwd()
        (number,) = re.findall(r"-nm-(\d+)_", folder)
        self.hadoop.stop_node(int(number))

    def _containers(self, kinds: tuple[str, ...]) -> list[psutil.Process]:
        """The JVMs of this job's containers."""
        assert self.hadoop.process is not None
        below = psutil.Process(self.hadoop.process.pid).children(recursive=True)
        chosen = []
        for process in below:
            with suppress(psutil.Error):
                words = " ".join(process.cmdline())
                if process.name() == "java" and any(kind in words for kind in kinds):
                    chosen.append(process)
        return chosen

    def end(self) -> None:
        """End what still runs."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for process in self._containers(APPLICATION_MASTERS + EXECUTORS):
            with suppress(psutil.Error):
                process.kill()


def _kill(process: psutil.Process) -> None:
    process.kill()
    process.wait()


def seconds_until_checkpoint(job: YarnJob, fault: str) -> float:
    """Cause a fault and return the seconds from there to the next complete checkpoint."""
    before, began = job.checkpoint(), time.monotonic()
    getattr(job, fault)()
    job.await_checkpoint(before)
    return time.monotonic() - began
