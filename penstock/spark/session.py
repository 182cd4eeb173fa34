"""The Spark session that hosts the slots: the user's own, unchanged, or one that is created here."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from importlib import resources
from typing import Any
from weakref import WeakSet

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from penstock.errors import ConfigurationError, JavaMissing

OLDEST_JAVA = 17

_OWN = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.worker.faulthandler.enabled": "false",
    "spark.cleaner.periodicGC.interval": "1min",
    # Spark looks this often, instead of every 15 s, whether there are cores for all slots, and for as long in all.
    "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "600",
}
_ON_THIS_MACHINE = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


SPARE_THREADS = 2
"""Threads of a local session beyond one per slot: for `from_spark` and the state processor."""


TASK_FAILURES = 4
"""How often a task may fail in a local session before Spark gives up; on a cluster that is `spark.task.maxFailures`."""


class _Made:
    """The local session that Penstock created, if any: how many threads it has, and which jobs run in it."""

    session: SparkSession | None = None
    threads = 0
    jobs: WeakSet[Any] = WeakSet()


def session(master: str, app_name: str, options: dict[str, str], slots: int = 0, keep: bool = False) -> SparkSession:
    """The active session, as it is, or a new one on `master`; a local one has threads for this many slots.

    A local session that was created here and has too few threads for a job is replaced, unless another job runs in it
    or it must be kept because of its DataFrames.
    """
    active = active_session()
    if active is not None and (active is not _Made.session or slots <= _Made.threads or keep or _in_use()):
        return active
    if active is not None:
        active.stop()
    check_java()
    threads = _threads(master, slots)
    created = _created(master if threads is None else f"local[{threads},{TASK_FAILURES}]", app_name, options)
    if threads is not None:
        _Made.session, _Made.threads = created, threads
    return created


def in_session(job: Any) -> None:
    """A job, which has `is_running`, is about to run in the session."""
    _Made.jobs.add(job)


def _in_use() -> bool:
    return any(job.is_running for job in list(_Made.jobs))


def _threads(master: str, slots: int) -> int | None:
    """How many threads a local session gets; None for a master that is not local."""
    found = re.fullmatch(r"local(?:\[(\*|\d+)\])?", master)
    if found is None:
        return None
    asked = len(os.sched_getaffinity(0)) if found[1] == "*" else int(found[1] or 1)
    return max(asked, slots) + SPARE_THREADS


def java_gateway() -> Any:
    """py4j's way into the driver's JVM; None if there is no session here, or Spark is behind Spark Connect."""
    return SparkContext._gateway if active_session() is not None else None


def active_session() -> SparkSession | None:
    """The session that is running in this process, whichever thread made it."""
    found: SparkSession | None = SparkSession.getActiveSession()
    if found is None:
        found = SparkSession._instantiatedSession
    if found is None or found.sparkContext._jsc is None:
        return None
    return found


def check_java() -> None:
    """A clear word before Spark's launcher fails on its own."""
    java = _java()
    advice = (
        f"Spark needs Java {OLDEST_JAVA} or newer. Install one (Debian, Ubuntu: apt install openjdk-17-jre-headless; "
        "macOS: brew install openjdk@17) and put it on PATH or into JAVA_HOME."
    )
    if java is None:
        raise JavaMissing(f"no Java was found. {advice}")
    version = _java_version(java)
    if version is not None and version < OLDEST_JAVA:
        raise JavaMissing(f"{java} is Java {version}. {advice}")


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")


def _java_version(java: str) -> int | None:
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)(?:\.(\d+))?', said)
    if found is None:
        return None
    major = int(found.group(1))
    return int(found.group(2) or 0) if major == 1 else major


def _created(master: str, app_name: str, options: dict[str, str]) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    local = master.startswith("local")
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([_package_root(), *_paths("PYTHONPATH")]))
    builder: Any = SparkSession.builder.master(master).appName(app_name)
    log_settings = resources.files("penstock.spark").joinpath("log4j2.properties")
    quiet = f"-Dlog4j2.configurationFile=file:{log_settings}"
    settings = {
        **_OWN,
        **(_ON_THIS_MACHINE if local else {}),
        "spark.driver.extraJavaOptions": quiet,
        "spark.executor.extraJavaOptions": quiet,
        **options,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    _launch_quietly({"spark.master": master, **settings})
    try:
        created: SparkSession = builder.getOrCreate()
    except Exception as error:
        raise ConfigurationError(
            f"Spark could not be started with the master '{master}': {_said(error)}. Look whether the address is "
            "right, the cluster runs and the options for Spark are such as it knows"
        ) from None
    logging.getLogger("py4j").setLevel(logging.WARNING)
    _restore_interrupt()
    return created


def _said(error: Exception) -> str:
    """What Spark says in one line. It stops its context when no master answers, and then complains of that."""
    text = str(error)
    if "stopped SparkContext" in text or "All masters are unresponsive" in text:
        return "it does not answer"
    found = re.search(r"[\w.]+(?:Exception|Error): (.+)", text)
    return found[1] if found else text.partition("\n")[0]


_NOISE = ("WARNING: Using incubator modules", "WARNING: package ", "NOTE: Picked up JDK_JAVA_OPTIONS")


def _launch_quietly(settings: dict[str, str]) -> None:
    """Start the JVM with its standard error passed on line by line, less what the JVM itself remarks at its start.

    What user functions print in the slots arrives this way too.
    """
    if SparkContext._gateway is not None:
        return
    configuration = SparkConf()
    configuration.setAll(list(settings.items()))
    gateway = launch_gateway(configuration, {"stderr": subprocess.PIPE})
    threading.Thread(target=_pass_on, args=(gateway.proc.stderr,), name="jvm stderr", daemon=True).start()
    SparkContext._ensure_initialized(gateway=gateway, conf=configuration)


def _pass_on(stream: Any) -> None:
    for line in stream:
        text = line.decode("utf-8", "replace")
        if not text.startswith(_NOISE):
            sys.stderr.write(text)
            sys.stderr.flush()


def _restore_interrupt() -> None:
    """pyspark makes Ctrl-C cancel every Spark job of the context; Penstock's own cancelling is more orderly."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _package_root() -> str:
    import penstock

    return os.path.dirname(os.path.dirname(os.path.abspath(penstock.__file__)))


def _paths(variable: str) -> list[str]:
    return [path for path in os.environ.get(variable, "").split(os.pathsep) if path]
