"""What every benchmark does: report progress, go on after a failure, describe the machine, combine numbers."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import environments
import psutil
from launch import HERE, RunFailed

RESULTS = HERE / "results"
STARTED = time.monotonic()


def say(text: str) -> None:
    print(f"[{time.monotonic() - STARTED:6.0f} s] {text}", flush=True)


def attempt(what: str, call: Callable[..., dict], *arguments: object) -> dict:
    """The call's result, or what went wrong, so that a failure has its place in the results."""
    try:
        return call(*arguments)
    except (RunFailed, environments.EnvironmentFailed) as failure:
        reason = str(failure)
    except Exception as failure:  # the measurements that follow do not depend on this one
        reason = f"{type(failure).__name__}: {failure}"
    say(f"{what} FAILED: {reason}")
    return {"error": reason}


def header(quick: bool, environment_names: Iterable[str] = ("",)) -> dict:
    """How the results of every benchmark begin: when, where, and with what."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "machine": machine(),
        "versions": versions(environment_names),
    }


def versions(environment_names: Iterable[str]) -> dict[str, dict[str, str]]:
    return {name or "penstock": environments.versions(name) for name in environment_names}


def folder_of(quick: bool, partial: bool = False) -> Path:
    """The folder for results; only those of a full run go into the one that is under version control."""
    folder = RESULTS / "quick" if quick else RESULTS / "partial" if partial else RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    return folder


# The machine.


def machine() -> dict:
    model = [line.split(":")[1].strip() for line in read("/proc/cpuinfo").splitlines() if line.startswith("model name")]
    return {
        "cores": os.cpu_count(),
        "processor": model[0] if model else platform.processor(),
        "memory_gb": round(psutil.virtual_memory().total / 1024**3),
        "system": platform.platform(),
        "python": platform.python_version(),
        "java": java_version(),
        "load_before": os.getloadavg()[0],
    }


def read(path: str) -> str:
    return Path(path).read_text() if Path(path).exists() else ""


def java_version() -> str:
    try:
        done = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "not found"
    return (done.stderr.splitlines() or ["unknown"])[0]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The slope of the line that fits the points best, by least squares."""
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / spread if spread else 0.0


# Processes.


def tree_of(pid: int) -> list[psutil.Process]:
    """A process and all below it; empty if it is gone."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
