"""Runs one program in a process group of its own, from an empty folder, and reads the line of JSON it prints."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import psutil

HERE = Path(__file__).resolve().parent
TIMEOUT = 300
SAMPLE_SECONDS = 0.2
SLOT_NAME = "slot"  # the names of slots' processes begin with it


class RunFailed(Exception):
    """A program did not end well or printed no result; the message is fit for the results table."""


def run_program(python: Path, script: Path, arguments: list[str], watch_memory: bool = False) -> dict:
    """The line of JSON that a Python program prints."""
    return run_command([str(python), str(script), *arguments], python, watch_memory)


def run_command(command: list[str], python: Path, watch_memory: bool = False) -> dict:
    """The line of JSON that a command prints, with `peak_slot_megabytes` added where the memory is watched.

    `python` is the interpreter in whose environment it runs.
    """
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as errors:
        process = spawned(command, python, folder, subprocess.PIPE, errors)
        watch = SlotMemory(process.pid) if watch_memory else None
        try:
            output, _ = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            raise RunFailed(f"no result within {TIMEOUT} s") from None
        finally:
            end_group(process)
        errors.seek(0)
        result = read_result(process.returncode, output, errors.read())
        return result | ({"peak_slot_megabytes": watch.stop()} if watch else {})


def spawned(command: list[str], python: Path, folder: str, out: int | IO[str], errors: IO[str]) -> subprocess.Popen:
    """A process in a group of its own, which runs in a folder and in the environment of an interpreter."""
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment_for(python),
        stdout=out,
        stderr=errors,
        text=True,
        start_new_session=True,
    )


def lines_of(python: Path, script: Path, arguments: list[str], patience: float = TIMEOUT) -> Iterator[dict]:
    """The lines of JSON that a Python program prints, as they come; each may take `patience` seconds."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, tempfile.TemporaryFile("w+") as errors:
        process = spawned([str(python), str(script), *arguments], python, folder, subprocess.PIPE, errors)
        try:
            while (line := _next_line(process, patience)) is not None:
                yield line
            process.wait(patience)
            if process.returncode:
                errors.seek(0)
                read_result(process.returncode, "", errors.read())
        finally:
            end_group(process)


def _next_line(process: subprocess.Popen, patience: float) -> dict | None:
    late = threading.Event()

    def give_up() -> None:
        late.set()
        end_group(process)

    timer = threading.Timer(patience, give_up)
    timer.start()
    try:
        for line in process.stdout:
            if line.startswith("{"):
                return json.loads(line)
    finally:
        timer.cancel()
    if late.is_set():
        raise RunFailed(f"no result within {patience:.0f} s")
    return None


class Program:
    """A program that is running in a folder of its own."""

    def __init__(self, process: subprocess.Popen, folder: Path, errors: IO[str]) -> None:
        self.process = process
        self.folder = folder
        self.errors = errors

    def check(self) -> None:
        """Fails with what the program said if it has ended."""
        code = self.process.poll()
        if code is not None:
            self.errors.seek(0)
            read_result(code, "", self.errors.read())


@contextlib.contextmanager
def running(python: Path, program: str, settings: dict) -> Iterator[Program]:
    """Run a program in an empty folder and a process group of its own. The group is ended in any case."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, tempfile.TemporaryFile("w+") as errors:
        command = [str(python), str(HERE / "peers" / program), json.dumps(settings)]
        process = spawned(command, python, folder, errors, errors)
        try:
            yield Program(process, Path(folder), errors)
        finally:
            end_group(process)


def environment_for(python: Path) -> dict[str, str]:
    """The interpreter's own folder first on PATH, and the peers' modules importable in every worker.

    The checkout is importable for our own interpreter alone, since that of the last release has another Penstock.
    """
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "VIRTUAL_ENV")}
    ours = [str(HERE.parent)] if python == Path(sys.executable) else []
    return env | {
        "PATH": f"{python.parent}{os.pathsep}{env.get('PATH', '')}",
        "PYTHONPATH": os.pathsep.join([str(HERE / "peers"), *ours]),
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
    }


def end_group(process: subprocess.Popen) -> None:
    """End what the program may have left running; its session contains no other processes."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def read_result(returncode: int, output: str, errors: str) -> dict:
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if returncode or not lines:
        said = [line.strip() for line in errors.splitlines() if line.strip()]
        reason = next((line for line in reversed(said) if "Error" in line or "Exception" in line), (said or ["?"])[-1])
        raise RunFailed(f"exit code {returncode}: {reason[:200]}")
    return json.loads(lines[-1])


class SlotMemory:
    """The largest resident memory that any slot below a process ever had, sampled while it runs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.peak = 0.0
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.sample, daemon=True)
        self.thread.start()

    def stop(self) -> float:
        self.stopped.set()
        self.thread.join()
        return self.peak

    def sample(self) -> None:
        while not self.stopped.wait(SAMPLE_SECONDS):
            try:
                workers = psutil.Process(self.pid).children(recursive=True)
            except psutil.NoSuchProcess:
                return
            except psutil.Error:
                continue
            self.peak = max([self.peak, *(peak_megabytes(worker) for worker in workers)])


def peak_megabytes(process: psutil.Process) -> float:
    try:
        if not process.name().startswith(SLOT_NAME):
            return 0.0
        status = Path(f"/proc/{process.pid}/status")
        if status.exists():  # Linux remembers the peak, so none falls between two samples
            high_water = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
            return int(high_water.split()[1]) / 1024
        return process.memory_info().rss / 1024**2
    except (psutil.Error, OSError, StopIteration):  # the worker ended in between
        return 0.0
