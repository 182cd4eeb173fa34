"""Kills processes of a running job with SIGKILL at random moments, and measures how long the job takes to go on."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.waiting import SPARK_SECONDS, until

SCRIPT = "kill_job"
SLOT = re.compile(r"slot(\d+)-([0-9a-f]+)")
"""The name of a slot's process."""
ROOT = Path(__file__).parents[2]


@dataclass
class Victim:
    """A job in a process of its own, as an outsider sees it."""

    folder: Path
    master: str
    script: str = SCRIPT
    options: dict[str, str] = field(default_factory=dict)
    """Environment variables."""
    log_name: str = "log"
    launcher: tuple[str, ...] = (sys.executable, "-m")
    """The command that runs the script: with `-m` as a module, else as a file."""
    process: subprocess.Popen[bytes] | None = None
    recoveries: list[float] = field(default_factory=list)
    """Seconds from each kill to the next complete checkpoint."""

    def start(self) -> None:
        log = (self.folder / self.log_name).open("ab")
        program = f"tests.spark.{self.script}" if self.launcher[-1] == "-m" else f"tests/spark/{self.script}.py"
        command = [*self.launcher, program, str(self.folder), self.master]
        environment = {**os.environ, **self.options}
        self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT, env=environment)

    def has_ended(self) -> bool:
        return (self.folder / "ended").exists()

    def checkpoint(self) -> int:
        """The number of the newest complete checkpoint."""
        found = (self.folder / "checkpoints").glob("*/chk-*/_metadata")
        return max((int(path.parent.name.removeprefix("chk-")) for path in found), default=0)

    def ordered_at(self) -> int:
        """When the newest complete checkpoint was ordered, in milliseconds since 1970."""
        times = []
        for path in (self.folder / "checkpoints").glob("*/chk-*/_metadata"):
            with suppress(FileNotFoundError):
                times.append(json.loads(path.read_text().partition("\n")[2])["timestamp"])
        return max(times, default=0)

    def await_checkpoint(self, after: int, ordered_after: int = 0) -> None:
        """Wait for a checkpoint with a later number, and, if a time is given, one that was ordered later than that."""
        self.until(
            lambda: (self.checkpoint() > after and self.ordered_at() > ordered_after) or self.has_ended(),
            f"no checkpoint after {after}",
        )

    def until(self, condition: Callable[[], Any], missing: str) -> Any:
        """Wait for something, for as long as the job gets anywhere."""
        return until(
            condition,
            progress=self.progress,
            patience=SPARK_SECONDS,
            every=0.02,
            told=lambda: f"{missing}:\n{self.log()}",
        )

    def progress(self) -> object:
        """How far it has come: its processes, its checkpoints, and what it has written."""
        written = (self.folder / self.log_name).stat().st_size
        return self.checkpoint(), written, sorted(child.pid for child in self._children())

    def log(self) -> str:
        return (self.folder / self.log_name).read_text()[-4000:]

    # --- what can be killed ---
    def slots(self) -> list[psutil.Process]:
        return _slots(self._children())

    def executors(self) -> list[psutil.Process]:
        return [child for child in self._children() if any("CoarseGrainedExecutor" in a for a in _arguments(child))]

    def hosts(self) -> list[psutil.Process]:
        """The executors that have a slot."""
        return [executor for executor in self.executors() if _slots(_descendants(executor.pid))]

    def _children(self) -> list[psutil.Process]:
        assert self.process is not None
        return _descendants(self.process.pid)

    def processes(self) -> list[psutil.Process]:
        """The driver and everything that it has started."""
        assert self.process is not None
        return [psutil.Process(self.process.pid), *self._children()]

    def kill_driver(self) -> None:
        """The driver's Python process; its JVM follows."""
        assert self.process is not None
        children = self._children()
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        psutil.wait_procs(children, timeout=SPARK_SECONDS)

    # --- rounds ---
    def round(self, what: str, chance: random.Random) -> None:
        """Wait a little, kill, and wait until the job goes on."""
        self.await_checkpoint(self.checkpoint())
        time.sleep(chance.uniform(0.0, 0.8))
        if what == "driver":
            began = time.monotonic()
            self.kill_driver()
            killed_at = _millis()
            self.start()
        else:
            find = self.slots if what == "slot" else self.hosts
            chosen = chance.choice(self.until(find, "there is nothing to kill"))
            orphans = _slots(_descendants(chosen.pid))
            began = time.monotonic()
            chosen.kill()
            # Slots outlive their executor for a moment, in which they may still take part in a checkpoint.
            psutil.wait_procs(orphans, SPARK_SECONDS)
            killed_at = _millis()
        # One that was ordered before may still become complete, and says nothing of the recovery.
        self.await_checkpoint(0, ordered_after=killed_at)
        self.recoveries.append(time.monotonic() - began)

    def finish(self) -> None:
        (self.folder / "enough").touch()
        process = self.process
        assert process is not None
        self.until(lambda: process.poll() is not None, "the job does not end")
        assert process.returncode == 0, self.log()

    def emitted(self) -> list[int]:
        """Every number that the source has emitted."""
        counts = [int((self.folder / f"emitted-{subtask}").read_text()) for subtask in (0, 1)]
        return [subtask + 2 * n for subtask in (0, 1) for n in range(counts[subtask])]

    def check(self, keys: int) -> None:
        """Every count of every key is there once, and nothing alarmed."""
        counts: dict[str, list[int]] = defaultdict(list)
        for path in (self.folder / "visible").iterdir():
            for line in path.read_text().splitlines():
                assert not line.startswith("ALARM"), line
                key, count = line.split()
                counts[key].append(int(count))
        expected = Counter(number % keys for number in self.emitted())
        assert len(counts) == keys
        for key, found in counts.items():
            assert sorted(found) == list(range(1, expected[int(key)] + 1)), f"key {key}"


def session_of(leader: int) -> list[psutil.Process]:
    """The living processes of a session, also those whose parents are gone."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _millis() -> int:
    return int(1000 * time.time())


def _descendants(process: int) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(process).children(recursive=True)
    return []


def _slots(processes: list[psutil.Process]) -> list[psutil.Process]:
    """A slot's process bears its name."""
    return [process for process in processes if _name(process).startswith("slot")]


def _name(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return process.name()
    return ""


def _arguments(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return process.cmdline()
    return []


def run_rounds(folder: Path, what: str, rounds: int, seed: int, script: str = SCRIPT) -> Victim:
    """One job through so many kills of a slot's worker, an executor or the driver."""
    chance = random.Random(seed)
    master = "local-cluster[2,2,1024]" if what == "executor" else "local[2]"
    victim = Victim(folder, master, script)
    victim.start()
    try:
        for _ in range(rounds):
            victim.round(what, chance)
        victim.finish()
    finally:
        if victim.process is not None and victim.process.poll() is None:
            victim.kill_driver()
    return victim
