"""Options of Flink that become settings of Spark, or of the processes that run a job.

Each is one row of `OPTIONS`; `docs/flink-options.md` shows the same rows. A setting `spark.*` of the user takes
precedence over what an option becomes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.base.options.option import Apply, Effect, Option, Parser, enter, keep
from penstock.base.options.parsers import parse_duration, parse_memory_size, positive, some_text

if TYPE_CHECKING:
    from penstock.service.launch.execution_settings import EnvironmentSettings

_MEGABYTE = 1 << 20
_LEAST_HEAP = 512
"""Least heap of an executor's JVM, in megabytes. Spark refuses less than 450."""
_LEAST_OVERHEAD = 384
_DRIVER_JAVA, _EXECUTOR_JAVA = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"
_ALL_JAVA = ("env.java.default-opts.all", "env.java.opts.all")
_JAVA_PARTS = {
    _DRIVER_JAVA: (*_ALL_JAVA, "env.java.default-opts.jobmanager", "env.java.opts.jobmanager", "krb5.conf"),
    _EXECUTOR_JAVA: (*_ALL_JAVA, "env.java.default-opts.taskmanager", "env.java.opts.taskmanager", "krb5.conf"),
}
"""Options whose texts make up a setting of Spark, in their order, by that setting."""


@dataclass
class Translation:
    """The settings that options of Flink have become."""

    spark: dict[str, str] = field(default_factory=dict)
    process: dict[str, str] = field(default_factory=dict)
    """Environment variables of the driver."""
    java: dict[str, str] = field(default_factory=dict)
    """Command-line options for Java, by the option of Flink that holds them."""
    local_folders: tuple[str, ...] = ()
    """Folders for local copies of checkpoints."""
    python_files: list[str] = field(default_factory=list)
    python_archives: list[tuple[str, str | None]] = field(default_factory=list)
    python_requirements: tuple[str, str | None] | None = None

    def spark_settings(self) -> dict[str, str]:
        """Return the settings of Spark."""
        joined = {name: " ".join(self.java[o] for o in parts if o in self.java) for name, parts in _JAVA_PARTS.items()}
        return {**self.spark, **{name: text for name, text in joined.items() if text}}


# --- values ---
def _megabytes(text: str) -> str:
    return f"{max(1, parse_memory_size(text) // _MEGABYTE)}m"


def _millis(text: str) -> str:
    return f"{parse_duration(text)}ms"


def _names(text: str) -> str:
    """Return a list that is separated by semicolons, as in Flink, with commas instead."""
    return ",".join(part.strip() for part in some_text(text).split(";") if part.strip())


def _folders(text: str) -> tuple[str, ...]:
    """Split paths at commas, bars or colons."""
    return tuple(path.strip() for path in re.split(r"[,|:]", some_text(text)) if path.strip())


def _pairs(text: str) -> dict[str, str]:
    """Parse the pairs of `name:value,name:value`."""
    pairs = [pair.partition(":") for pair in text.split(",") if pair.strip()]
    if not pairs or not all(name.strip() and separator for name, separator, _ in pairs):
        raise ValueError("it must be name:value,name:value")
    return {name.strip(): value.strip() for name, _, value in pairs}


# --- what options become ---
def _translated(name: str, parse: Parser[Any], target: str, apply: Apply, *others: str) -> Option[Any]:
    return Option(name, parse, others=others, apply=apply, effect=Effect.TRANSLATED, note=target)


def _becomes(name: str, target: str, parse: Parser[Any] = some_text, *others: str) -> Option[Any]:
    return _translated(name, lambda text: str(parse(text)), f"`{target}`", enter("translation.spark", target), *others)


def _labels(name: str, prefix: str) -> Option[Any]:
    """Return an option that holds pairs. Each pair becomes a setting."""

    def apply(settings: EnvironmentSettings, pairs: dict[str, str]) -> None:
        settings.translation.spark.update({f"{prefix}{key}": text for key, text in pairs.items()})

    return _translated(name, _pairs, f"`{prefix}*`", apply)


def _java(name: str, target: str, *others: str) -> Option[Any]:
    return _translated(name, some_text, target, enter("translation.java", name), *others)


def _variable(name: str, variable: str, *others: str) -> Option[Any]:
    target = f"`{variable}` of the driver's process"
    return _translated(name, some_text, target, enter("translation.process", variable), *others)


def _executor_memory(settings: EnvironmentSettings, size: int) -> None:
    """Give a quarter of the memory to the JVM, which has little to do, and the rest to the slots' Python processes."""
    total = size // _MEGABYTE
    heap = max(_LEAST_HEAP, total // 4)
    settings.translation.spark.setdefault("spark.executor.memory", f"{heap}m")
    settings.translation.spark.setdefault("spark.executor.memoryOverhead", f"{max(_LEAST_OVERHEAD, total - heap)}m")


def _temporary(settings: EnvironmentSettings, folders: tuple[str, ...]) -> None:
    settings.translation.spark["spark.local.dir"] = ",".join(folders)
    settings.translation.spark["spark.executorEnv.TMPDIR"] = folders[0]


def _kerberos_file(settings: EnvironmentSettings, path: str) -> None:
    settings.translation.java["krb5.conf"] = f"-Djava.security.krb5.conf={path}"
    settings.translation.process["KRB5_CONFIG"] = path


def _files(text: str) -> list[str]:
    return some_text(text).split(",")


def _archives(text: str) -> list[tuple[str, str | None]]:
    parts = [part.partition("#") for part in some_text(text).split(",")]
    return [(path, target or None) for path, _, target in parts]


def _requirements(text: str) -> tuple[str, str | None]:
    path, _, cache = some_text(text).partition("#")
    return path, cache or None


_EXECUTOR = "`spark.executor.memory` (a quarter, at least 512 MB) and `spark.executor.memoryOverhead` (the rest)"
_PROCESSES = [
    _becomes("taskmanager.numberOfTaskSlots", "spark.executor.cores", positive),
    _translated(
        "taskmanager.memory.process.size",
        parse_memory_size,
        _EXECUTOR,
        _executor_memory,
        "taskmanager.memory.flink.size",
        "taskmanager.heap.size",
    ),
    _becomes("taskmanager.memory.task.heap.size", "spark.executor.memory", _megabytes),
    _becomes("taskmanager.memory.managed.size", "spark.executor.memoryOverhead", _megabytes),
    _becomes(
        "jobmanager.memory.process.size",
        "spark.driver.memory",
        _megabytes,
        "jobmanager.memory.flink.size",
        "jobmanager.memory.heap.size",
        "jobmanager.heap.size",
    ),
    _becomes("jobmanager.bind-host", "spark.driver.bindAddress"),
    _becomes("resourcemanager.taskmanager-timeout", "spark.dynamicAllocation.executorIdleTimeout", _millis),
    _translated(
        "io.tmp.dirs",
        _folders,
        "`spark.local.dir`; the first folder also `TMPDIR` of the slots, where RocksDB, sorting and local copies write",
        _temporary,
    ),
    _translated(
        "execution.checkpointing.local-backup.dirs",
        _folders,
        "the folders of the slots' local copies of checkpoints",
        keep("translation.local_folders"),
        "taskmanager.state.local.root-dirs",
    ),
]
_JAVA = [
    _java("env.java.opts.all", f"`{_DRIVER_JAVA}` and `{_EXECUTOR_JAVA}`", "env.java.opts"),
    _java("env.java.opts.jobmanager", f"`{_DRIVER_JAVA}`"),
    _java("env.java.opts.taskmanager", f"`{_EXECUTOR_JAVA}`"),
    _java("env.java.default-opts.all", f"the beginning of `{_DRIVER_JAVA}` and `{_EXECUTOR_JAVA}`"),
    _java("env.java.default-opts.jobmanager", f"the beginning of `{_DRIVER_JAVA}`"),
    _java("env.java.default-opts.taskmanager", f"the beginning of `{_EXECUTOR_JAVA}`"),
    _variable("env.java.home", "JAVA_HOME"),
    _variable("env.hadoop.conf.dir", "HADOOP_CONF_DIR", "fs.hdfs.hadoopconf"),
    _variable("env.yarn.conf.dir", "YARN_CONF_DIR"),
]
_PYTHON = [
    _translated("python.files", _files, "`env.add_python_file`, for each", keep("translation.python_files")),
    _translated(
        "python.archives", _archives, "`env.add_python_archive`, for each", keep("translation.python_archives")
    ),
    _translated(
        "python.requirements",
        _requirements,
        "`env.set_python_requirements`; on a server, an environment for the job",
        keep("translation.python_requirements"),
    ),
    _becomes("python.executable", "spark.pyspark.python", some_text, "python.client.executable"),
]
_SECURITY = [
    _translated(
        "security.kerberos.krb5-conf.path",
        some_text,
        "`-Djava.security.krb5.conf` of all JVMs, and `KRB5_CONFIG` of the driver's process",
        _kerberos_file,
    ),
    _becomes("security.kerberos.access.hadoopFileSystems", "spark.kerberos.access.hadoopFileSystems", _names),
    _becomes("security.kerberos.relogin.period", "spark.kerberos.relogin.period", _millis),
]
_YARN = [
    _becomes("yarn.application.name", "spark.app.name"),
    _becomes("yarn.application.queue", "spark.yarn.queue"),
    _becomes("yarn.application.priority", "spark.yarn.priority"),
    _becomes("yarn.application-attempts", "spark.yarn.maxAppAttempts", positive),
    _becomes(
        "yarn.application-attempt-failures-validity-interval",
        "spark.yarn.am.attemptFailuresValidityInterval",
        _millis,
    ),
    _becomes("yarn.application.node-label", "spark.yarn.am.nodeLabelExpression"),
    _becomes("yarn.taskmanager.node-label", "spark.yarn.executor.nodeLabelExpression"),
    _becomes("yarn.appmaster.vcores", "spark.yarn.am.cores", positive),
    _becomes("yarn.containers.vcores", "spark.executor.cores", positive),
    _becomes("yarn.file-replication", "spark.yarn.submit.file.replication"),
    _becomes("yarn.maximum-failed-containers", "spark.yarn.max.executor.failures"),
    _becomes("yarn.modify.acls", "spark.modify.acls"),
    _becomes("yarn.view.acls", "spark.ui.view.acls"),
    _becomes("yarn.rolled-logs.exclude-pattern", "spark.yarn.rolledLog.excludePattern"),
    _becomes("yarn.rolled-logs.include-pattern", "spark.yarn.rolledLog.includePattern"),
    _becomes("yarn.ship-archives", "spark.yarn.dist.archives", _names),
    _becomes("yarn.ship-files", "spark.yarn.dist.files", _names),
    _becomes("yarn.staging-directory", "spark.yarn.stagingDir"),
    _becomes("yarn.tags", "spark.yarn.tags"),
]
_KUBERNETES = [
    _becomes("kubernetes.namespace", "spark.kubernetes.namespace"),
    _becomes("kubernetes.context", "spark.kubernetes.context"),
    _becomes("kubernetes.container.image.ref", "spark.kubernetes.container.image"),
    _becomes("kubernetes.container.image.pull-policy", "spark.kubernetes.container.image.pullPolicy"),
    _becomes("kubernetes.container.image.pull-secrets", "spark.kubernetes.container.image.pullSecrets", _names),
    _becomes("kubernetes.pod-template-file.taskmanager", "spark.kubernetes.executor.podTemplateFile"),
    _becomes("kubernetes.taskmanager.cpu.amount", "spark.kubernetes.executor.request.cores"),
    _becomes("kubernetes.taskmanager.service-account", "spark.kubernetes.authenticate.executor.serviceAccountName"),
    _labels("kubernetes.taskmanager.annotations", "spark.kubernetes.executor.annotation."),
    _labels("kubernetes.taskmanager.labels", "spark.kubernetes.executor.label."),
    _labels("kubernetes.taskmanager.node-selector", "spark.kubernetes.executor.node.selector."),
]

OPTIONS = [*_PROCESSES, *_JAVA, *_PYTHON, *_SECURITY, *_YARN, *_KUBERNETES]
"""Every translated option."""
HADOOP = "flink.hadoop."
"""Prefix of settings of Hadoop, which Spark calls `spark.hadoop.*`."""
