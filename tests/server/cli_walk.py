"""A walk through the life of a job with the command line alone; needs no more than the address of a server.

    walk("http://127.0.0.1:8081", folder)

The server must allow uploads (`web.submit.enable`), have two slots, and read and write `folder`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.waiting import SPARK_SECONDS, until

ROOT = Path(__file__).parents[2]

COUNTING = """
import sys
from penstock.datastream import StreamExecutionEnvironment
from counting import modulo

env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(200)
(
    env.generate(lambda i: i, rate=200).uid("numbers")
    .key_by(modulo)
    .map(lambda n: n).uid("same")
    .print()
)
env.execute(sys.argv[1])
"""
ENDING = """
from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.from_elements(1, 2, 3).map(lambda n: 10 // {divisor} * n).print()
env.execute("ending")
"""


class Walk:
    """Calls of the command, each with the server's address."""

    def __init__(self, url: str, folder: Path, *switches: str) -> None:
        self.url, self.folder, self._switches = url, folder, switches

    def call(self, verb: str, *arguments: str, code: int = 0) -> str:
        """What a command printed; on standard error, if it is to fail."""
        done = subprocess.run(
            [sys.executable, "-m", "penstock", verb, "-m", self.url, *self._switches, *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, f"penstock {verb} {' '.join(arguments)}: {done.returncode}\n{done.stderr}"
        return done.stdout if code == 0 else done.stderr

    def json(self, verb: str, *arguments: str) -> Any:
        return json.loads(self.call(verb, "--json", *arguments))

    def start(self, *arguments: str) -> str:
        """Give a program to the server; gives the id of its job."""
        return self.call("run", "-d", *arguments).split()[1]

    def state(self, job: str) -> str:
        states = {entry["jid"]: entry["state"] for entry in self.json("list", "-a")["jobs"]}
        return states.get(job, "UNKNOWN")

    def await_state(self, job: str, state: str) -> None:
        until(lambda: self.state(job) == state, patience=SPARK_SECONDS, every=0.5, told=lambda: self.state(job))

    def await_output(self, job: str, after: int = 0) -> int:
        """Wait until the program has printed more than this many bytes; gives how many there are."""

        def printed() -> int:
            return len(self.call("logs", "--stdout", job))

        until(lambda: printed() > after, patience=SPARK_SECONDS, every=0.5)
        return printed()


def walk(url: str, folder: Path, *switches: str) -> None:
    """From a package to a job that was rescaled and upgraded with a savepoint; `switches` such as --token go along."""
    steps = Walk(url, folder, *switches)
    package = _packed(folder)
    job = steps.start("-p", "1", package, "first version")
    steps.await_state(job, "RUNNING")
    steps.await_output(job)
    assert job[:6] in steps.call("list", "-r")
    assert steps.json("checkpoint", job[:10])["checkpoint"] > 0
    assert Path(_local(steps.json("savepoint", job, str(folder / "kept"))["savepoint"]), "_metadata").is_file()

    steps.call("modify", "-p", "2", job)
    steps.await_state(job, "RUNNING")
    steps.await_output(job, steps.await_output(job))

    stopped = steps.json("stop", "-p", str(folder / "savepoints"), job)["savepoint"]
    steps.await_state(job, "FINISHED")
    upgraded = steps.start("-s", stopped, "-p", "1", package, "second version")
    steps.await_state(upgraded, "RUNNING")
    steps.await_output(upgraded)
    assert "second version" in steps.call("list", "-r")
    steps.call("cancel", upgraded)
    steps.await_state(upgraded, "CANCELED")
    steps.call("savepoint", "-d", stopped)
    assert not Path(_local(stopped)).exists()
    _ends(steps)


def _packed(folder: Path) -> str:
    (folder / "app").mkdir()
    (folder / "app/job.py").write_text(COUNTING)
    (folder / "app/counting.py").write_text("def modulo(n):\n    return n % 7\n")
    command = [sys.executable, "-m", "penstock", "package", "app/job.py", "-o", "job.zip"]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=folder, check=True, capture_output=True)
    return str(folder / "job.zip")


def _local(path: str) -> str:
    return path.removeprefix("file://").removeprefix("file:")


def _ends(steps: Walk) -> None:
    """A job that is followed shows what it prints, and ends the command as it ends."""
    good, bad = steps.folder / "good.py", steps.folder / "bad.py"
    good.write_text(ENDING.format(divisor=1))
    bad.write_text(ENDING.format(divisor=0))
    shown = steps.call("run", "-p", "1", str(good))
    assert [line for line in shown.splitlines() if line in ("10", "20", "30")] == ["10", "20", "30"]
    assert "has finished after" in shown
    assert "has failed" in steps.call("run", "-p", "1", str(bad), code=1)
