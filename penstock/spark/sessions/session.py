"""The Spark session that hosts the slots: the user's own, unchanged, or one that Penstock creates."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import WeakSet

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from penstock.errors import ConfigurationError
from penstock.spark.sessions.connect_session import (
    SCHEME,
    active_connect_session,
    check_no_remote,
    connect_session,
    is_connect,
)
from penstock.spark.sessions.interpreters import use_own_interpreter
from penstock.spark.sessions.jvm import approve_archive, is_submitted, launch, leave_before_jvm
from penstock.spark.sessions.kubernetes import driver_settings, pod_client
from penstock.spark.sessions.preloading import VARIABLE, modules_to_import
from penstock.spark.sessions.versions import check_spark

_QUIET = {"spark.ui.enabled": "false"}
"""Defaults of a session in a JVM that Penstock started. Under `spark-submit`, Spark's own defaults apply."""
_UNNAMED = "pyspark-shell"
"""Name of an application in a JVM that Penstock started, if the user has set none."""
_FOR_SLOTS = {
    "spark.python.worker.faulthandler.enabled": "false",
    "spark.cleaner.periodicGC.interval": "1min",
    # Spark checks this often, instead of every 15 s, whether there are cores for all slots, for the same total time.
    "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "600",
}
DAEMON = "penstock.spark.hosts.python_daemon"
_ON_THIS_MACHINE = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


log = logging.getLogger("penstock.job")

SPARE_THREADS = 2
"""Number of threads of a local session beyond one per slot, for `from_spark` and the state processor."""


TASK_FAILURES = 4
"""Number of failures of a task after which a local session gives up. On a cluster, `spark.task.maxFailures` says it."""


class _Made:
    """Sessions that Penstock created, the threads of the local one, and the jobs that run in it."""

    session: SparkSession | None = None
    threads = 0
    jobs: WeakSet[Any] = WeakSet()
    all: WeakSet[SparkSession] = WeakSet()
    """All sessions that Penstock created, including those on clusters."""
    discarded: WeakSet[SparkSession] = WeakSet()
    lock = threading.RLock()


SERVER_SECONDS = 30.0
"""Time, in seconds, in which a Spark Connect server must answer, unless a job waits less for its slots."""


def session(
    master: str,
    app_name: str,
    options: dict[str, str],
    slots: int = 0,
    keep: bool = False,
    seconds: float = SERVER_SECONDS,
) -> SparkSession:
    """Return the active session, unchanged, or a new one on `master`. A local one has threads for `slots` slots.

    A local session of Penstock's that has too few threads for a job is replaced, unless another job runs in it or
    `keep` asks to preserve its DataFrames. A Spark Connect server must answer within `seconds`.
    """
    check_spark()
    found = _session(master, app_name, options, slots, keep, seconds)
    leave_before_jvm()
    if not is_connect(found) and is_on_this_machine(found.sparkContext.master):
        use_own_interpreter(found.sparkContext)
    return found


def _session(
    master: str, app_name: str, options: dict[str, str], slots: int, keep: bool, seconds: float
) -> SparkSession:
    active = active_session()
    if active is not None and (active is not _Made.session or slots <= _Made.threads or keep or _in_use()):
        return active
    if active is not None:
        active.stop()
    if master.startswith(SCHEME):
        return connect_session(master, app_name, options, min(seconds, SERVER_SECONDS))
    check_no_remote(master, options)
    threads = _threads(master, slots)
    created = _create_session(master if threads is None else f"local[{threads},{TASK_FAILURES}]", app_name, options)
    _Made.all.add(created)
    if threads is not None:
        _Made.session, _Made.threads = created, threads
    return created


def is_own(one: SparkSession) -> bool:
    """Return True if Penstock has created a session and may replace it."""
    return one in _Made.all


def has_ended(context: SparkContext) -> bool:
    """Return True if the cluster manager or the program has ended an application, or its JVM has died."""
    try:
        return context._jsc is None or bool(scala_context(context).isStopped())
    except (Py4JError, OSError):
        return True


def replace_session(lost: SparkSession, create: Callable[[], SparkSession]) -> SparkSession:
    """Return the replacement of a session that has ended: a new one, or one that another job has created."""
    with _Made.lock:
        if lost not in _Made.discarded:
            _Made.discarded.add(lost)
            _discard(lost)
        return create()


def _discard(lost: SparkSession) -> None:
    """Make PySpark forget a session, even if its JVM does not answer."""
    for _ in range(2):  # a call that fails leaves a half-stopped context, which a second call stops
        with suppress(Exception):
            lost.sparkContext.stop()
    try:
        SparkContext._gateway.jvm.System.currentTimeMillis()
    except (AttributeError, Py4JError, OSError):
        SparkContext._gateway = SparkContext._jvm = None


def in_session(job: Any) -> None:
    """Note that a job, which has `is_running`, is about to run in the session."""
    _Made.jobs.add(job)


def _in_use() -> bool:
    return any(job.is_running for job in list(_Made.jobs))


def _threads(master: str, slots: int) -> int | None:
    """Return the number of threads of a local session, or None for a master that is not local."""
    found = re.fullmatch(r"local(?:\[(\*|\d+)\])?", master)
    if found is None:
        return None
    asked = len(os.sched_getaffinity(0)) if found[1] == "*" else int(found[1] or 1)
    return max(asked, slots) + SPARE_THREADS


def enter_group(spark: SparkSession, group: str, name: str) -> None:
    """Put the Spark jobs of this thread into a group, which can be cancelled. Spark shows them under `name`."""
    if is_connect(spark):
        spark.addTag(group)  # the tags of a client belong to its threads
    else:
        spark.sparkContext.setJobGroup(group, name, interruptOnCancel=False)


def cancel_group(spark: SparkSession, group: str) -> None:
    """Cancel the Spark jobs of a group that Spark knows of so far. Any thread may call this, and repeatedly."""
    if is_connect(spark):
        with suppress(Exception):  # a server that is gone, or has forgotten the session, runs nothing
            spark.interruptTag(group)
    else:
        spark.sparkContext.cancelJobGroup(group)


def java_gateway() -> Any:
    """Return py4j's gateway to the driver's JVM; None without a session or with Spark Connect."""
    active = active_session()
    return None if active is None or is_connect(active) else SparkContext._gateway


def scala_context(context: SparkContext) -> Any:
    """Return Spark's own context in the JVM, which tells more than Python's."""
    return context._jsc.sc()


def is_on_this_machine(master: str) -> bool:
    """Return True if driver and executors are one process."""
    return master.startswith("local") and not master.startswith("local-cluster")


def current_settings() -> dict[str, str]:
    """Return the settings of the running session, else those given to `spark-submit`, else none."""
    active = active_session()
    if active is not None:
        # A session of Spark Connect would have to ask its server for every new environment.
        return {} if is_connect(active) else dict(active.sparkContext.getConf().getAll())
    if not is_submitted():
        return {}
    launch({})
    return dict(SparkConf().getAll())


def active_session() -> SparkSession | None:
    """Return the running session of this process, classic or of Spark Connect, whichever thread made it."""
    remote: SparkSession | None = active_connect_session()
    if remote is not None:
        return remote
    found: SparkSession | None = SparkSession.getActiveSession()
    if found is None:
        found = SparkSession._instantiatedSession
    if found is None or found.sparkContext._jsc is None:
        return None
    return found


def _create_session(master: str, app_name: str, options: dict[str, str]) -> SparkSession:
    if not is_submitted():
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([_package_root(), *_paths("PYTHONPATH")]))
    launch({"spark.master": master, **options})
    configuration = _configuration(master, app_name, options)
    _warn_of_uploads(configuration)
    builder: Any = SparkSession.builder.config(conf=configuration)
    try:
        created: SparkSession = builder.getOrCreate()
    except Exception as error:
        raise ConfigurationError(
            f"Spark could not be started with the master '{master}': {_cause(error)}. {_advice(error, configuration)}"
        ) from None
    approve_archive()
    python = created.sparkContext.getConf().get("spark.pyspark.python")
    if python is not None:
        created.sparkContext.pythonExec = python  # Spark itself reads the setting only under `spark-submit`
    logging.getLogger("py4j").setLevel(logging.WARNING)
    _restore_interrupt()
    return created


def _configuration(master: str, app_name: str, options: dict[str, str]) -> SparkConf:
    """Return the settings of a new session. The user's settings replace Penstock's defaults.

    The user's settings are those of `spark-submit`, of spark-defaults.conf and of the job, in this order.
    """
    configuration = SparkConf()
    configuration.setMaster(master)
    configuration.setAll(list(options.items()))
    local = master.startswith("local")
    defaults = {**_FOR_SLOTS, **(_ON_THIS_MACHINE if local else {}), **({} if is_submitted() else _QUIET)}
    defaults.update(_daemon_settings(configuration))
    if not is_submitted():
        defaults.update(driver_settings(master, dict(configuration.getAll()), pod_client()))
    for name, value in defaults.items():
        configuration.setIfMissing(name, value)
    if configuration.get("spark.app.name", _UNNAMED) == _UNNAMED:
        configuration.setAppName(app_name)
    return configuration


def _daemon_settings(configuration: SparkConf) -> dict[str, str]:
    """Return settings with which executors import Penstock before they fork Python processes.

    A Penstock that every task gets with `--py-files` cannot be imported that early.
    """
    if "penstock" in configuration.get("spark.submit.pyFiles", ""):
        return {}
    return {"spark.python.daemon.module": DAEMON, f"spark.executorEnv.{VARIABLE}": ",".join(modules_to_import())}


def _cause(error: Exception) -> str:
    """Return Spark's error in one line. If no master answers, Spark stops its context and reports only that."""
    text = str(error)
    if "stopped SparkContext" in text or "All masters are unresponsive" in text:
        return "it does not answer"
    found = re.search(r"[\w.]+(?:Exception|Error): (.+)", text)
    return found[1] if found else text.partition("\n")[0]


def _advice(error: Exception, configuration: SparkConf) -> str:
    queue = configuration.get("spark.yarn.queue", "default")
    if re.search(rf"queue\W+(?:\S+\W+)?{re.escape(str(queue))}", str(error), re.IGNORECASE):
        return f"The setting spark.yarn.queue is '{queue}': name a queue of the cluster that takes your applications"
    return "Check that the address is right, that the cluster runs, and that Spark knows all its options"


def _warn_of_uploads(configuration: SparkConf) -> None:
    """Warn that every job uploads Spark's jars. Spark's own log, which says so, is off here."""
    brought = any(configuration.get(name, "") for name in ("spark.yarn.jars", "spark.yarn.archive"))
    if configuration.get("spark.master", "") == "yarn" and not brought and not is_submitted():
        log.warning(
            "neither spark.yarn.jars nor spark.yarn.archive is set, so Spark uploads all of its jars, some 460 "
            "MB, for this application. Copy them to HDFS once, and name that place in spark.yarn.archive or "
            "spark.yarn.jars"
        )


def _restore_interrupt() -> None:
    """Restore Python's handler of Ctrl-C. PySpark's handler cancels every Spark job, less orderly than Penstock."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _package_root() -> str:
    import penstock

    return os.path.dirname(os.path.dirname(os.path.abspath(penstock.__file__)))


def _paths(variable: str) -> list[str]:
    return [path for path in os.environ.get(variable, "").split(os.pathsep) if path]
