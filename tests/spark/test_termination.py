"""SIGTERM: a driver suspends its job and ends, and the next driver continues exactly, whoever started the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyspark
import pytest

from tests.spark.kill_job import KEYS
from tests.spark.kills import Victim
from tests.waiting import SPARK_SECONDS

pytestmark = pytest.mark.timeout(600)
SUSPENDED = 143
"""The exit code of a program that SIGTERM ended."""
SPARK_SUBMIT = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
OWN_NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


def test_a_terminated_driver_leaves_its_job_to_the_next_one(tmp_path: Path) -> None:
    first_of_container = (*_as_first_process(), sys.executable, "-m", "penstock", "run")
    submitted = (SPARK_SUBMIT, "--master", "local[2]", "--driver-memory", "512m")
    drivers = [
        Victim(tmp_path, "local[2]", launcher=first_of_container, log_name="first"),
        Victim(tmp_path, "local[2]", options={"PYSPARK_PYTHON": sys.executable}, launcher=submitted, log_name="second"),
        Victim(tmp_path, "local[2]", log_name="third"),
    ]
    try:
        for driver in drivers[:2]:
            driver.start()
            driver.await_checkpoint(driver.checkpoint() + 1)
            _terminate(driver)
            assert _is_given_back(tmp_path), driver.log()
        drivers[2].start()
        drivers[2].await_checkpoint(drivers[2].checkpoint() + 1)
        drivers[2].finish()
    finally:
        for driver in drivers:
            if driver.process is not None and driver.process.poll() is None:
                driver.kill_driver()
    drivers[2].check(KEYS)
    logs = "".join((tmp_path / driver.log_name).read_text() for driver in drivers)
    assert "JobRunning" not in logs
    assert "Traceback" not in logs


def _as_first_process() -> tuple[str, ...]:
    """A container's first process has no default action for SIGTERM. Not every system lets a test make a namespace."""
    try:
        tried = subprocess.run([*OWN_NAMESPACE, "true"], capture_output=True, check=False)
    except OSError:
        return ()
    return OWN_NAMESPACE if tried.returncode == 0 else ()


def _terminate(driver: Victim) -> None:
    """Send SIGTERM to the process that a container runtime would send it to, and wait for all that came of it."""
    assert driver.process is not None
    family = driver.processes()
    outer = psutil.Process(driver.process.pid)
    target = outer.children()[0] if outer.name() == "unshare" else outer
    began = time.monotonic()
    os.kill(target.pid, signal.SIGTERM)
    driver.process.wait(SPARK_SECONDS)
    sys.stdout.write(f"{driver.log_name}: {time.monotonic() - began:.2f} s\n")
    assert driver.process.returncode == SUSPENDED, driver.log()
    _, alive = psutil.wait_procs(family, timeout=SPARK_SECONDS)
    assert alive == []


def _is_given_back(folder: Path) -> bool:
    """The newest token of the job's owner has its mark of an orderly end."""
    tokens = [path for path in (folder / "checkpoints").glob("*/owner/*") if path.name.isdigit()]
    newest = max(tokens)
    return newest.with_name(f"{newest.name}.over").exists()
