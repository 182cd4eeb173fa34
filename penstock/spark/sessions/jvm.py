"""The JVM of the driver: one that Penstock starts with a quiet standard error, or the one of `spark-submit`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from py4j.protocol import INPUT_CONVERTER
from pyspark import SparkConf, SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway

from penstock.errors import ConfigurationError, JavaMissing
from penstock.spark.sessions.class_archive import Jvm, approve, discard, is_about_archive, java_options

OLDEST_JAVA = 17
PROGRESS = "spark.ui.showConsoleProgress"
"""Setting that Spark turns on for a JVM that Python starts, as for an interactive shell."""
KEPT_LINES = 200
"""Number of lines of the JVM's standard error that are kept to explain a failed start."""
LEAVE_SECONDS = 4
"""Time, in seconds, in which this process may suspend its jobs when the JVM of `spark-submit` is told to end."""

_NOISE = ("WARNING: Using incubator modules", "WARNING: package ", "NOTE: Picked up JDK_JAVA_OPTIONS")
_EPILOGUE = (
    "Error: Could not create the Java Virtual Machine",
    "Error: A fatal exception has occurred",
    "Error occurred during initialization of VM",
)
_ADVICE = (
    (
        "HADOOP_CONF_DIR",
        "Set HADOOP_CONF_DIR to the folder with the cluster's core-site.xml and yarn-site.xml, or choose another "
        "master with spark.master",
    ),
    ("eytab", "Name an existing file that this user can read in spark.kerberos.keytab"),
    (
        r"KDC|\brealm\b",
        "The krb5.conf that security.kerberos.krb5-conf.path names, else /etc/krb5.conf, must name the realm's KDC",
    ),
    (
        "Checksum failed|Kerberos database|Pre-authentication|LoginException|Unable to obtain password",
        "Correct security.kerberos.login.principal and security.kerberos.login.keytab, which must hold the principal's "
        "current key",
    ),
    (
        "Could not reserve",
        "Lower spark.driver.memory: it is more than the memory of this machine",
    ),
    (
        "heap size|memory|-Xm|byte string|NumberFormatException",
        "Write spark.driver.memory and spark.executor.memory as a number and a unit, such as 2g or 512m",
    ),
    ("nrecognized (?:VM )?option", "Correct spark.driver.extraJavaOptions"),
    ("aster must|aster URL", "Correct the master: -m, spark.master or PENSTOCK_MASTER"),
)
"""Patterns in the output of a JVM that did not start, each with fitting advice."""
ERRORS_OF_VM = "-XX:+DisplayVMOutputToStderr"
"""Option with which Java's own errors, such as those about its memory, go where Spark's go, and not to the output."""
_LATER_COMPILATION = (
    "-XX:Tier4InvocationThreshold=25000 -XX:Tier4MinInvocationThreshold=3000 "
    "-XX:Tier4CompileThreshold=75000 -XX:Tier4BackEdgeThreshold=200000"
)
"""Options that let Java's slow compiler compile a method only after five times as many calls.

A start is over by then, and a query that runs for a second has passed the limits. The user's options come later and
take precedence.
"""
_archive_options: list[str] = []
"""Options about an archive of classes with which the JVM was started, until they are approved."""


def is_submitted() -> bool:
    """Return True if `spark-submit` started this process, so that there is a JVM with the user's settings."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def launch(settings: dict[str, str]) -> None:
    """Connect to the JVM of `spark-submit`, or start a JVM with these settings. A process has only one JVM."""
    if SparkContext._gateway is not None:
        return
    if is_submitted():
        SparkContext._ensure_initialized()
        return
    java, version = check_java()
    configuration = SparkConf(loadDefaults=False)
    if not _is_set_by_user(PROGRESS):
        configuration.set(PROGRESS, "false")
    configuration.setAll(list(settings.items()))
    SparkContext._ensure_initialized(gateway=_start(configuration, java, version), conf=configuration)


def _start(configuration: SparkConf, java: str, version: str) -> Any:
    """Start a JVM with an archive of classes. If it does not start, try without an archive."""
    _guard_numpy_converters()
    place = Jvm(java, version, Path(_find_spark_home()), _configuration_folder(), dict(configuration.getAll()))
    options = java_options(place, os.environ)
    try:
        gateway = _try_to_start(configuration, f"{_LATER_COMPILATION} {options}")
        _archive_options.append(options)
        return gateway
    except ConfigurationError as error:
        if not (is_about_archive(str(error)) or "Tier4" in str(error)):
            raise
        discard(options)
    return _try_to_start(configuration, "")


def approve_archive() -> None:
    """Allow later JVMs to use the classes that this process's JVM has loaded, since Spark runs in it."""
    if _archive_options:
        approve(_archive_options.pop())


def _try_to_start(configuration: SparkConf, java_options: str) -> Any:
    with _quiet(java_options):
        return _launch_gateway(configuration)


def _launch_gateway(configuration: SparkConf) -> Any:
    errors = ErrorStream()
    try:
        gateway = launch_gateway(configuration, {"stderr": errors.sink})
    except Exception as error:
        raise ConfigurationError(explain(errors.text() or str(error))) from None
    finally:
        errors.seal()
    errors.pass_on()
    return gateway


def _guard_numpy_converters() -> None:
    """Restrict PySpark's numpy converters to numpy values, because they import pandas to look at a value."""
    for index, converter in enumerate(INPUT_CONVERTER):
        if type(converter).__name__.startswith("Numpy"):
            INPUT_CONVERTER[index] = _NumpyOnly(converter)


class _NumpyOnly:
    """A converter of py4j that accepts only values of numpy's classes."""

    def __init__(self, converter: Any) -> None:
        self._converter = converter
        self.convert = converter.convert

    def can_convert(self, value: object) -> bool:
        from_numpy = any(base.__module__.partition(".")[0] == "numpy" for base in type(value).__mro__)
        return from_numpy and bool(self._converter.can_convert(value))


@contextmanager
def _quiet(java_options: str) -> Iterator[None]:
    """Give a JVM that starts in this block these options. Turn its log off unless the user has configured it.

    Java options of the user come later and take precedence.
    """
    own = os.environ.get("SPARK_SUBMIT_OPTS")
    options = [ERRORS_OF_VM, java_options, own or ""]
    if not any(_configuration_folder().glob("log4j2.*")):
        settings = resources.files("penstock.spark.sessions").joinpath("log4j2.properties")
        options.insert(0, f"-Dlog4j2.configurationFile=file:{settings}")
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join(option for option in options if option)
    try:
        yield
    finally:
        if own is None:
            os.environ.pop("SPARK_SUBMIT_OPTS", None)
        else:
            os.environ["SPARK_SUBMIT_OPTS"] = own


def _configuration_folder() -> Path:
    return Path(os.environ.get("SPARK_CONF_DIR") or Path(_find_spark_home(), "conf"))


def _is_set_by_user(name: str) -> bool:
    """Return True if the user's files or variables for Spark contain a setting."""
    file = _configuration_folder() / "spark-defaults.conf"
    text = file.read_text(errors="replace") if file.is_file() else ""
    return re.search(rf"^\s*{re.escape(name)}\b", text, re.MULTILINE) is not None or name in os.environ.get(
        "PYSPARK_SUBMIT_ARGS", ""
    )


class ErrorStream:
    """Standard error of a JVM. It is held back until the JVM runs, then passed on line by line.

    Remarks that the JVM makes at each start are left out. Output of user functions in local slots arrives here, too.
    """

    def __init__(self) -> None:
        source, self.sink = os.pipe()
        self._source = os.fdopen(source, "rb")
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._passes_on = False
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, name="jvm stderr", daemon=True)
        self._reader.start()

    def seal(self) -> None:
        """Close this process's end of the pipe, so that only the JVM writes."""
        if self.sink >= 0:
            os.close(self.sink)
            self.sink = -1

    def text(self) -> str:
        """Return the kept lines of a JVM that has ended."""
        self.seal()
        self._reader.join(5)
        return "\n".join(line.rstrip("\n") for line in self._lines)

    def pass_on(self) -> None:
        """Write the held-back lines to this process's standard error, and all later lines as they come."""
        with self._lock:
            self._passes_on = True
            while self._lines:
                self._write(self._lines.popleft())

    def _read(self) -> None:
        for line in self._source:
            text = line.decode("utf-8", "replace")
            if text.startswith(_NOISE):
                continue
            with self._lock:
                if self._passes_on:
                    self._write(text)
                else:
                    self._lines.append(text)

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def explain(output: str) -> str:
    """Describe why the JVM did not start: its own sentence, and fitting advice or the settings to check."""
    cause = telling_line(output)
    advice = next((advice for pattern, advice in _ADVICE if re.search(pattern, cause)), None)
    return f"Spark's JVM did not start: {cause}. " + (
        advice or "Check the options for Spark (spark.*), SPARK_HOME, SPARK_CONF_DIR and JAVA_HOME"
    )


def telling_line(output: str) -> str:
    """Return the cause in the output of Spark or Java, without stack frames and names of exception classes."""
    lines = [line.strip() for line in output.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("at ", "... ", *_NOISE, *_EPILOGUE))]
    causes = [line for line in lines if line.startswith("Caused by:")]
    errors = [line for line in lines if re.search(r"Exception|Error", line)]
    line = (causes[-1:] or errors[:1] or lines[-1:] or ["it printed nothing"])[0]
    line = re.sub(r'^(?:Caused by: |Exception in thread "\S+" |Error: )+', "", line)
    return re.sub(r"^(?:[\w.$]+(?:Exception|Error): )+", "", line).rstrip(".")


def take_interrupt(context: SparkContext) -> bool:
    """Clear the interrupt of the JVM's thread that calls this Python thread. Return True if there was an interrupt."""
    return bool(context._jvm.java.lang.Thread.interrupted())


def check_java() -> tuple[str, str]:
    """Return Java's path and the output of `java -version`.

    Raise JavaMissing if there is no suitable Java, before Spark's launcher fails with a message of its own.
    """
    java = _java()
    advice = (
        f"Spark needs Java {OLDEST_JAVA} or newer. Install one (Debian, Ubuntu: apt install openjdk-17-jre-headless; "
        "macOS: brew install openjdk@17) and put it on PATH or into JAVA_HOME."
    )
    if java is None:
        raise JavaMissing(f"no Java was found. {advice}")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = _java_version(said)
    if version is not None and version < OLDEST_JAVA:
        raise JavaMissing(f"{java} is Java {version}. {advice}")
    return java, said


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")


def _java_version(said: str) -> int | None:
    found = re.search(r'version "(\d+)(?:\.(\d+))?', said)
    if found is None:
        return None
    major = int(found.group(1))
    return int(found.group(2) or 0) if major == 1 else major


@cache
def leave_before_jvm() -> None:
    """Make the JVM of `spark-submit` send SIGTERM to this process and wait for its end before it ends itself.

    Without this, the JVM would stop Spark under a running job, and this process would never learn why. Hadoop runs
    hooks of a higher priority earlier, and Spark's own hook has the priority 40.
    """
    if not is_submitted() or SparkContext._gateway is None:
        return
    jvm = SparkContext._gateway.jvm
    process = jvm.java.lang.ProcessHandle.of(os.getpid()).get()
    runnable = jvm.java.lang.Class.forName("java.lang.Runnable")
    handler, seconds = jvm.java.beans.EventHandler, jvm.java.util.concurrent.TimeUnit.SECONDS
    hooks = jvm.org.apache.hadoop.util.ShutdownHookManager.get()
    hooks.addShutdownHook(handler.create(runnable, process, "destroy"), 1001, LEAVE_SECONDS, seconds)
    hooks.addShutdownHook(handler.create(runnable, process.onExit(), "get"), 1000, LEAVE_SECONDS, seconds)
