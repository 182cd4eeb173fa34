"""Jobs of a real Jupyter kernel on real Spark: an interrupted cell and a kernel that restarts leave no slot behind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from jupyter_client import KernelManager
from jupyter_client.blocking import BlockingKernelClient

from tests.spark.kills import SLOT
from tests.waiting import SPARK_SECONDS, until

pytestmark = pytest.mark.spark

START = """
import time
from penstock.datastream import StreamExecutionEnvironment

def endless():
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    return env, env.generate(lambda n: n, rate=100).rebalance().map(str)
"""
CELLS = {
    "execute": "env, stream = endless(); stream.discard(); env.execute()",
    "next": "_, stream = endless()\nfor value in stream.filter(lambda text: False).execute_and_collect():\n    pass",
    "work": """
_, stream = endless()
for value in stream.execute_and_collect():
    open("works", "w").close()
    time.sleep(100_000)
""",
}


class Kernel:
    """A kernel with its slots, whose processes are known by the files that they make."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manager = KernelManager(kernel_name="python3")
        root = str(Path(__file__).parents[2])
        self.manager.start_kernel(cwd=str(folder), env={**os.environ, "IPYTHONDIR": str(folder), "PYTHONPATH": root})
        self.client = self._connect()

    def _connect(self) -> BlockingKernelClient:
        client = self.manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=SPARK_SECONDS)
        return client

    def run(self, code: str) -> dict[str, str]:
        """Run a cell to its end."""
        return self.client.execute_interactive(
            code, store_history=False, timeout=SPARK_SECONDS, output_hook=lambda _: None
        )["content"]

    def begin(self, code: str) -> str:
        """Start a cell, and return the id with which its answer comes."""
        return self.client.execute(code, store_history=False)

    def answer(self, started: str) -> dict[str, str]:
        while (reply := self.client.get_shell_msg(timeout=SPARK_SECONDS))["parent_header"].get("msg_id") != started:
            pass
        return reply["content"]

    def slots(self) -> list[int]:
        """Wait for the two slots of a job, and return their process ids."""
        until(lambda: len(self._slots()) == 2, patience=SPARK_SECONDS)
        return self._slots()

    def _slots(self) -> list[int]:
        found = []
        for process in psutil.Process(self.manager.provisioner.pid).children(recursive=True):
            with suppress(psutil.Error):
                if SLOT.fullmatch(process.name()):
                    found.append(process.pid)
        return found

    def restart(self, now: bool) -> None:
        self.client.stop_channels()
        self.manager.restart_kernel(now=now)
        self.client = self._connect()

    def stop(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def are_gone(pids: list[int]) -> Callable[[], bool]:
    return lambda: not any(psutil.pid_exists(pid) for pid in pids)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory) -> Iterator[Kernel]:
    made = Kernel(tmp_path_factory.mktemp("kernel"))
    made.run(START)
    yield made
    made.stop()


def interrupt(kernel: Kernel, started: str) -> None:
    kernel.manager.interrupt_kernel()
    assert kernel.answer(started)["ename"] == "KeyboardInterrupt"


@pytest.mark.parametrize("cell", CELLS)
def test_an_interrupted_cell_leaves_no_slot(kernel, cell):
    started = kernel.begin(CELLS[cell])
    slots = kernel.slots()
    if cell == "work":
        until((kernel.folder / "works").exists)
    kernel.manager.interrupt_kernel()
    assert kernel.answer(started)["ename"] == "KeyboardInterrupt"
    until(are_gone(slots))
    assert kernel.run("sum(range(3))")["status"] == "ok"


@pytest.mark.parametrize("now", [False, True], ids=["asked", "killed"])
def test_a_kernel_that_restarts_leaves_no_slot(kernel, now):
    kernel.run("env, stream = endless(); stream.discard(); job = env.execute_async()")
    slots = kernel.slots()
    kernel.restart(now)
    until(are_gone(slots))
    kernel.run(START)
