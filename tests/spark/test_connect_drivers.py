"""Drivers that run in tasks of a real Spark Connect server, and outlive their clients."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.spark import kill_job
from tests.spark.connect_server import ROOT, ConnectServer, ConnectVictim
from tests.spark.standalone import free_port
from tests.waiting import SPARK_SECONDS

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(3600)]
DETACHED_SECONDS = 90
IMPATIENT = {
    "spark.connect.execute.manager.detachedTimeout": f"{DETACHED_SECONDS}s",
    "spark.connect.execute.manager.maintenanceInterval": "1s",
    "spark.connect.session.manager.defaultSessionTimeout": f"{DETACHED_SECONDS}s",
    "spark.connect.session.manager.maintenanceInterval": "1s",
}
"""A server that soon ends what nobody listens to, but not while Spark starts a driver again on a busy machine."""
PENSTOCK = (sys.executable, "-m", "penstock")


class DriverVictim(ConnectVictim):
    """A job whose driver is a process of the server, too. `process` is the client."""

    def order(self) -> None:
        options = {
            "spark.submit.deployMode": "cluster",
            "pipeline.job-id": "5107" * 8,
            "execution.checkpointing.dir": f"file://{self.folder}/checkpoints",
            "execution.recover": "latest",
        }
        settings = [part for name, value in options.items() for part in ("-D", f"{name}={value}")]
        self.launcher = (*PENSTOCK, "run", "-m", self.server.url, *settings)
        self.start()

    def key(self) -> str:
        """Return the name of the driver that was started last."""
        return re.findall(r"driver ([0-9a-f]{32}) runs in the cluster", (self.folder / self.log_name).read_text())[-1]

    def attach(self, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*PENSTOCK, "attach", "-m", self.server.url, self.key(), *options],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=2 * SPARK_SECONDS,
            check=False,
        )

    def programs(self) -> list[psutil.Process]:
        """Return the process of the program, in which the driver is."""
        found = []
        for process in self.server.processes():
            with suppress(psutil.Error):
                if "--program" in process.cmdline():
                    found.append(process)
        return found

    def await_new_checkpoint(self) -> None:
        """Wait for a checkpoint that is ordered from now on."""
        self.await_checkpoint(0, ordered_after=int(time.time() * 1000))
        assert not self.has_ended()


def test_a_driver_outlives_its_client_its_process_and_its_executor(tmp_path: Path) -> None:
    """It also lets its job be suspended, and another driver continues it."""
    with ConnectServer(tmp_path, "local-cluster[3,2,1024]", IMPATIENT) as server:
        victim = DriverVictim(tmp_path, server.url)
        victim.server = server
        victim.order()
        assert victim.process is not None
        victim.await_checkpoint(0)
        victim.process.kill()
        victim.process.wait()
        time.sleep(1.5 * DETACHED_SECONDS)
        victim.await_new_checkpoint()
        [program] = victim.programs()
        program.kill()
        victim.await_new_checkpoint()
        [program] = victim.programs()
        [executor] = [parent for parent in program.parents() if parent in victim.executors()]
        executor.kill()
        victim.await_new_checkpoint()
        suspended = victim.attach("--suspend")
        assert suspended.returncode == 143, suspended.stderr
        assert victim.programs() == [] and not victim.has_ended()
        victim.order()
        victim.await_new_checkpoint()
        victim.finish()
        victim.check(kill_job.KEYS)
        assert victim.has_ended()


def test_a_driver_that_could_not_continue_is_not_started_again(tmp_path: Path) -> None:
    """Spark tries its task again, which must not begin the job anew."""
    with ConnectServer(tmp_path, "local[4,4]") as server:
        victim = DriverVictim(tmp_path, server.url)
        victim.server = server
        victim.launcher = (*PENSTOCK, "run", "-m", server.url, "-D", "spark.submit.deployMode=cluster")
        victim.start()
        assert victim.process is not None
        victim.await_checkpoint(0)
        [program] = victim.programs()
        program.kill()
        assert victim.process.wait() == 1
        assert "the process of the driver was lost, and the program was not started again" in victim.log()
        assert victim.programs() == [] and not victim.has_ended()


def test_executors_that_cannot_reach_the_server_are_explained(tmp_path: Path) -> None:
    url = f"sc://127.0.0.1:{free_port()}"
    with ConnectServer(tmp_path, "local[4,4]") as server:
        victim = DriverVictim(tmp_path, server.url)
        victim.server = server
        options = ("-D", "spark.submit.deployMode=cluster", "-D", f"penstock.connect.inner-url={url}")
        victim.launcher = (*PENSTOCK, "run", "-m", server.url, *options)
        victim.start()
        assert victim.process is not None
        assert victim.process.wait() == 1
        assert f"no Spark Connect server answers at '{url}'" in victim.log(), victim.log()
