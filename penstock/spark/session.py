"""The Spark session that hosts the slots: made with the settings that stickiness needs, or checked for them."""

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

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from penstock.errors import JavaMissing, SparkSettings

OLDEST_JAVA = 17

REQUIRED = {
    "spark.task.maxFailures": ("1", "a failed task must fail the epoch, not run again beside live state"),
    "spark.locality.wait": ("60s", "a slot must wait for the executor that holds its state"),
    "spark.shuffle.reduceLocality.enabled": ("false", "data must come to a slot, not move it"),
    "spark.speculation": ("false", "a second copy of a task would be a second slot"),
    "spark.dynamicAllocation.enabled": ("false", "an executor that is taken away takes its slots along"),
    "spark.python.worker.reuse": ("true", "a slot is a Python worker that stays alive"),
    "spark.python.unix.domain.socket.enabled": ("true", "over TCP every Python task stalls for about 40 ms"),
}
_DEFAULTS = {
    "spark.speculation": "false",
    "spark.dynamicAllocation.enabled": "false",
    "spark.python.worker.reuse": "true",
}

_OWN = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.worker.faulthandler.enabled": "false",
    "spark.cleaner.periodicGC.interval": "1min",
}
_ON_THIS_MACHINE = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


def session(master: str, app_name: str, options: dict[str, str]) -> SparkSession:
    """The active session if there is one and it is fit, else a new one on `master`."""
    active = active_session()
    if active is not None:
        check(active)
        return active
    _check_options(options)
    check_java()
    return _created(master, app_name, options)


def active_session() -> SparkSession | None:
    """The session that is running in this process, whichever thread made it."""
    found: SparkSession | None = SparkSession.getActiveSession()
    if found is None:
        found = SparkSession._instantiatedSession
    if found is None or found.sparkContext._jsc is None:
        return None
    return found


def check(spark: SparkSession) -> None:
    """Refuse a session in which slots would not be sticky, and say what to set."""
    configuration = spark.sparkContext.getConf()
    wrong = []
    for name, (wanted, why) in REQUIRED.items():
        found = configuration.get(name, _DEFAULTS.get(name, "not set"))
        if _seconds(found) != _seconds(wanted):
            wrong.append(f"  {name} is {found}; it must be {wanted}: {why}")
    if wrong:
        lines = "\n".join(wrong)
        raise SparkSettings(
            f"the active Spark session cannot host sticky slots:\n{lines}\nStop it and let Penstock create it, "
            "or create it with the settings in penstock.spark.session.REQUIRED."
        )


def _check_options(options: dict[str, str]) -> None:
    for name, (wanted, why) in REQUIRED.items():
        if _seconds(options.get(name, wanted)) != _seconds(wanted):
            raise SparkSettings(f"{name} cannot be {options[name]}; it must be {wanted}: {why}")


def _seconds(text: str) -> str:
    return {"1m": "60s", "1min": "60s", "60": "60s", "60000ms": "60s"}.get(text.lower(), text.lower())


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
        **{name: wanted for name, (wanted, _) in REQUIRED.items()},
        **options,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    _launch_quietly({"spark.master": master, **settings})
    created: SparkSession = builder.getOrCreate()
    logging.getLogger("py4j").setLevel(logging.WARNING)
    _restore_interrupt()
    return created


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
