"""The options that a Configuration can hold: Flink's names, old and new, and a few of Penstock's own.

Each is one row of `OPTIONS`; `docs/configuration.md` shows the same rows. Some options only make sense together, in
whatever order they are set: restart strategies and checkpoint storages are built here after all options have been read.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.api.settings.checkpoint_config import ExternalizedCheckpointRetention
from penstock.api.settings.checkpoint_storage import (
    CheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from penstock.api.settings.checkpointing_mode import CheckpointingMode
from penstock.api.settings.execution_mode import RuntimeExecutionMode
from penstock.api.settings.state_backend import (
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    PredefinedOptions,
    StateBackend,
)
from penstock.common.configuration import parse_duration
from penstock.common.job import JobID
from penstock.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from penstock.common.time import Duration
from penstock.engine.job.restarts import DEFAULT_WITH_CHECKPOINTS
from penstock.errors import ConfigurationError

if TYPE_CHECKING:
    from penstock.service.launch.execution_settings import EnvironmentSettings

T = TypeVar("T")
Parser = Callable[[str], T]
Apply = Callable[["EnvironmentSettings", str], object]


class Recovery(Enum):
    """Use that a job makes of the checkpoints of an earlier run with the same id."""

    NONE = "none"
    LATEST = "latest"
    """Continue from the newest one, and fail if that was published and is gone."""
    OLDER = "older"
    """Continue from the newest one that is left."""


@dataclass(frozen=True)
class Option:
    """An option's name, the function that applies its value, and other names that mean the same, mostly from Flink 1.x.

    Applying `default` to new settings changes nothing. It is None if no value means the same as an unset option.
    """

    name: str
    apply: Apply
    default: str | None = None
    others: tuple[str, ...] = ()

    def spellings(self) -> tuple[str, ...]:
        """Return every name of the option, the preferred one first."""
        return self.name, *self.others


@dataclass(frozen=True)
class MachineOption(Option):
    """An option whose default depends on the machine."""

    machine_default: Callable[[], str] = str


# --- texts and what they mean ---
def choice(values: Mapping[str, T]) -> Parser[T]:
    """Return a parser of a few words. It ignores case and treats '-' and '_' alike."""
    known = {_plain(word): value for word, value in values.items()}

    def parse(text: str) -> T:
        if _plain(text) not in known:
            raise ValueError(f"it must be one of {', '.join(values)}")
        return known[_plain(text)]

    return parse


def _plain(word: str) -> str:
    return word.strip().lower().replace("_", "-")


truth = choice({"true": True, "false": False})


def whole(text: str) -> int:
    """Parse a whole number."""
    if not re.fullmatch(r"\s*[+-]?\d+\s*", text):
        raise ValueError("it must be a whole number")
    return int(text)


def positive(text: str) -> int:
    """Parse a whole number above 0."""
    return _check(whole(text), lambda number: number > 0, "a whole number above 0")


def not_negative(text: str) -> int:
    """Parse a whole number of at least 0."""
    return _check(whole(text), lambda number: number >= 0, "a whole number of at least 0")


def _some_time(text: str) -> int:
    return _check(parse_duration(text), lambda millis: millis > 0, "at least 1 ms")


def _number(text: str) -> float:
    try:
        return _check(float(text), math.isfinite, "a number")
    except ValueError:
        raise ValueError("it must be a number") from None


def _multiplier(text: str) -> float:
    return _check(_number(text), lambda number: number >= 1, "a number of at least 1")


def _fraction(text: str) -> float:
    return _check(_number(text), lambda number: 0 <= number <= 1, "a number from 0 to 1")


def _check(value: T, fits: Callable[[T], bool], allowed: str) -> T:
    if not fits(value):
        raise ValueError(f"it must be {allowed}")
    return value


def some_text(text: str) -> str:
    """Return the text without surrounding blanks. Raise ValueError if nothing is left."""
    return _check(text.strip(), bool, "a text that is not empty")


_MEMORY_UNITS = {
    unit: 1 << power
    for units, power in [
        ("b bytes", 0),
        ("k kb kibibytes", 10),
        ("m mb mebibytes", 20),
        ("g gb gibibytes", 30),
        ("t tb tebibytes", 40),
    ]
    for unit in units.split()
}


def parse_memory_size(text: str) -> int:
    """Return the bytes that a text such as `200 mb` or `1g` means.

    A number without a unit counts bytes. A kb has 1024 bytes.
    """
    match = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    unit = (match[2] or "b") if match else ""
    if match is None or unit not in _MEMORY_UNITS:
        raise ValueError("it must be a whole number followed by b, kb, mb, gb or tb")
    return int(match[1]) * _MEMORY_UNITS[unit]


def _some_memory(text: str) -> int:
    return _check(parse_memory_size(text), lambda size: size > 0, "at least 1 byte")


def _inline_threshold(text: str) -> int:
    most = FileSystemCheckpointStorage.MAX_FILE_STATE_THRESHOLD
    return _check(parse_memory_size(text), lambda size: size <= most, f"at most {most >> 10} kb")


def _local_directories(text: str) -> list[str]:
    """Split paths or file URLs at commas and colons."""
    return [some_text(path) for path in re.split(r",|:(?!//)", text)]


def _job_id(text: str) -> str:
    return JobID(text.strip().lower()).hex


def _parameters(text: str) -> dict[str, str]:
    pairs = [pair.partition(":") for pair in text.strip("{}").split(",") if pair.strip()]
    return {name.strip(): value.strip() for name, _, value in pairs}


def _buffer_timeout(text: str) -> int:
    return -1 if text.strip() == "-1" else parse_duration(text)


def _ports(text: str) -> tuple[int, ...]:
    """Parse the ports to try in turn, such as 9069, 9069,9070 or 9069-9079."""
    ranges = [re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", part) for part in text.split(",")]
    ports = [port for found in ranges if found for port in range(int(found[1]), int(found[2] or found[1]) + 1)]
    if None in ranges or not ports or max(ports) > 65_535:
        raise ValueError("it must be ports from 0 to 65535, such as 9069, 9069,9070 or 9069-9079; 0 means any")
    return tuple(ports)


def default_parallelism() -> int:
    """Return the number of cores that this machine gives to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# --- options that are combined ---
@dataclass
class StorageOptions:
    """Options that choose the storage of checkpoints if the program does not set one."""

    kind: str | None = None
    implied_kind: str | None = None
    """Kind that a Flink 1.x state backend implies. It applies if `kind` is not set."""
    directory: str | None = None
    inline_threshold: int | None = None

    def storage(self) -> CheckpointStorage:
        """Return the storage that these options describe."""
        kind = self.kind or self.implied_kind
        if kind == "filesystem" and self.directory is None:
            raise ConfigurationError(
                "the checkpoint storage is 'filesystem', but no directory is set: set execution.checkpointing.dir"
            )
        if kind == "jobmanager" or self.directory is None:
            return JobManagerCheckpointStorage(self.directory)
        return FileSystemCheckpointStorage(self.directory, self.inline_threshold)


_STRATEGIES: dict[str, RestartStrategyConfiguration] = {
    "none": RestartStrategies.no_restart(),
    "fixed-delay": RestartStrategies.fixed_delay_restart(1, 1_000),
    "failure-rate": RestartStrategies.failure_rate_restart(1, 60_000, 1_000),
    "exponential-delay": DEFAULT_WITH_CHECKPOINTS,
}
"""Restart strategies by kind, with Flink's default values."""


@dataclass
class RestartOptions:
    """The kind of restart strategy and, for every kind, the values that differ from the defaults."""

    kind: str | None = None
    values: dict[str, dict[str, Any]] = field(default_factory=dict)

    def strategy(self) -> RestartStrategyConfiguration | None:
        """Return the strategy, or None if no kind is set. Values of other kinds are ignored."""
        if self.kind is None:
            return None
        try:
            return replace(_STRATEGIES[self.kind], **self.values.get(self.kind, {}))
        except ValueError as error:
            raise ConfigurationError(
                f"the options restart-strategy.{self.kind}.* contradict each other: {error}"
            ) from None


_RESTART_KINDS = choice(
    {
        **{kind: kind for kind in _STRATEGIES},
        **dict.fromkeys(["off", "disable"], "none"),
        "fixeddelay": "fixed-delay",
        "failurerate": "failure-rate",
        "exponentialdelay": "exponential-delay",
    }
)

_BACKENDS = choice(
    {
        "hashmap": (HashMapStateBackend, None),
        "rocksdb": (EmbeddedRocksDBStateBackend, None),
        "filesystem": (HashMapStateBackend, "filesystem"),
        "jobmanager": (HashMapStateBackend, "jobmanager"),
        "memory": (HashMapStateBackend, "jobmanager"),
    }
)
"""State backends by name, each with the kind of checkpoint storage that it implies.

The last three names are Flink 1.x's. They mean state in memory and a kind of storage.
"""


def _state_backend(settings: EnvironmentSettings, value: str) -> None:
    backend: type[StateBackend]
    backend, settings.storage.implied_kind = _BACKENDS(value)
    settings.state_backend = backend()


def _keep(path: str, parse: Parser[Any]) -> Apply:
    """Return a function that sets a field of the settings. A path with a dot names a field of one of their parts."""
    owner, _, name = path.rpartition(".")

    def apply(settings: EnvironmentSettings, value: str) -> None:
        setattr(attrgetter(owner)(settings) if owner else settings, name, parse(value))

    return apply


def _restart(option: str, name: str, parse: Parser[Any], default: str) -> Option:
    """Return an option that sets the field `name` of the restart strategy that its name's second part names."""
    kind = option.split(".")[1]

    def apply(settings: EnvironmentSettings, value: str) -> None:
        settings.restart_options.values.setdefault(kind, {})[name] = parse(value)

    return Option(option, apply, default)


def _adaptivity(name: str) -> Apply:
    """Return a function that sets a waiting time of an adaptive job; the time is above zero."""

    def apply(settings: EnvironmentSettings, value: str) -> None:
        settings.adaptivity = replace(settings.adaptivity, **{name: _some_time(value)})

    return apply


def _patience(name: str) -> Apply:
    """Return a function that sets a time that the driver waits for slots; the time is above zero."""

    def apply(settings: EnvironmentSettings, value: str) -> None:
        settings.patience = replace(settings.patience, **{name: _some_time(value)})

    return apply


def _for_spark(name: str) -> Apply:
    """Return a function that sets Spark's setting with this name."""

    def apply(settings: EnvironmentSettings, value: str) -> None:
        settings.spark[name] = some_text(value)

    return apply


# --- the table ---
_JOB = [
    MachineOption(
        "parallelism.default",
        lambda s, v: s.config.set_parallelism(whole(v)),
        machine_default=lambda: str(default_parallelism()),
    ),
    Option("pipeline.max-parallelism", lambda s, v: s.config.set_max_parallelism(whole(v))),
    Option("pipeline.name", _keep("job_name", str)),
    Option("pipeline.job-id", _keep("job_id", _job_id), others=("$internal.pipeline.job-id",)),
    Option(
        "pipeline.auto-watermark-interval",
        lambda s, v: s.config.set_auto_watermark_interval(parse_duration(v)),
        "200 ms",
    ),
    Option(
        "pipeline.operator-chaining.enabled",
        _keep("chaining", truth),
        "true",
        others=("pipeline.operator-chaining", "python.operator-chaining.enabled"),
    ),
    Option("pipeline.global-job-parameters", lambda s, v: s.config.set_global_job_parameters(_parameters(v))),
    Option(
        "pipeline.object-reuse",
        lambda s, v: s.config.enable_object_reuse() if truth(v) else s.config.disable_object_reuse(),
        "false",
    ),
    Option(
        "jobmanager.scheduler", _keep("scheduler", choice({"default": "default", "adaptive": "adaptive"})), "default"
    ),
    Option("scheduler-mode", _keep("scheduler_mode", choice({"reactive": "reactive"}))),
    Option(
        "jobmanager.adaptive-scheduler.submission.resource-wait-timeout",
        _adaptivity("resource_wait_timeout"),
        "5 min",
        others=("jobmanager.adaptive-scheduler.resource-wait-timeout",),
    ),
    Option(
        "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout",
        _adaptivity("resource_stabilization_timeout"),
        "10 s",
        others=("jobmanager.adaptive-scheduler.resource-stabilization-timeout",),
    ),
    Option("slot.request.timeout", _patience("slot_request_timeout"), "5 min"),
    Option("heartbeat.interval", _patience("heartbeat_interval"), "10 s"),
    Option("heartbeat.timeout", _patience("heartbeat_timeout"), "50 s"),
    Option("security.kerberos.login.keytab", _for_spark("spark.kerberos.keytab")),
    Option("security.kerberos.login.principal", _for_spark("spark.kerberos.principal")),
    Option("security.ssl.internal.enabled", _keep("encrypts", truth), "false"),
    Option("execution.runtime-mode", _keep("mode", choice(RuntimeExecutionMode.__members__)), "STREAMING"),
    Option("execution.sorted-inputs.memory", _keep("sort_memory", _some_memory), "128 mb"),
    Option(
        "execution.buffer-timeout.interval",
        _keep("buffer_timeout", _buffer_timeout),
        "100 ms",
        others=("execution.buffer-timeout",),
    ),
    Option("execution.buffer-timeout.enabled", _keep("gathers", truth), "true"),
    Option("penstock.epoch.max-records", _keep("max_records", positive), "1000000"),
    Option("penstock.epoch.max-time", _keep("max_millis", lambda v: max(1, parse_duration(v))), "1 s"),
    Option("spark.master", _keep("master", some_text)),
]

_CHECKPOINTS = [
    Option("execution.checkpointing.interval", lambda s, v: s.checkpoints.set_checkpoint_interval(parse_duration(v))),
    Option(
        "execution.checkpointing.mode",
        lambda s, v: s.checkpoints.set_checkpointing_mode(choice(CheckpointingMode.__members__)(v)),
        "EXACTLY_ONCE",
    ),
    Option(
        "execution.checkpointing.timeout",
        lambda s, v: s.checkpoints.set_checkpoint_timeout(parse_duration(v)),
        "10 min",
    ),
    Option(
        "execution.checkpointing.min-pause",
        lambda s, v: s.checkpoints.set_min_pause_between_checkpoints(parse_duration(v)),
        "0 ms",
    ),
    Option(
        "execution.checkpointing.max-concurrent-checkpoints",
        lambda s, v: s.checkpoints.set_max_concurrent_checkpoints(whole(v)),
        "1",
    ),
    Option(
        "execution.checkpointing.tolerable-failed-checkpoints",
        lambda s, v: s.checkpoints.set_tolerable_checkpoint_failure_number(whole(v)),
        "0",
    ),
    Option(
        "execution.checkpointing.externalized-checkpoint-retention",
        lambda s, v: s.checkpoints.set_externalized_checkpoint_retention(
            choice(ExternalizedCheckpointRetention.__members__)(v)
        ),
        "NO_EXTERNALIZED_CHECKPOINTS",
    ),
    Option(
        "execution.checkpointing.num-retained",
        lambda s, v: s.checkpoints.set_max_retained_checkpoints(whole(v)),
        "1",
        others=("state.checkpoints.num-retained",),
    ),
    Option(
        "execution.checkpointing.incremental",
        lambda s, v: s.checkpoints.set_incremental_checkpoints(truth(v)),
        "true",
        others=("state.backend.incremental",),
    ),
    Option(
        "execution.checkpointing.snapshot-compression",
        lambda s, v: s.config.set_use_snapshot_compression(truth(v)),
        "false",
    ),
    Option(
        "execution.checkpointing.local-backup.enabled",
        lambda s, v: s.checkpoints.set_local_recovery(truth(v)),
        "false",
        others=("execution.state-recovery.from-local", "state.backend.local-recovery"),
    ),
    Option(
        "execution.checkpointing.unaligned.enabled",
        lambda s, v: s.checkpoints.enable_unaligned_checkpoints(truth(v)),
        "false",
        others=("execution.checkpointing.unaligned",),
    ),
    Option(
        "execution.checkpointing.aligned-checkpoint-timeout",
        lambda s, v: s.checkpoints.set_aligned_checkpoint_timeout(Duration.of_millis(parse_duration(v))),
        "0 ms",
        others=("execution.checkpointing.alignment-timeout",),
    ),
]

_STORAGE = [
    Option(
        "execution.checkpointing.storage",
        _keep("storage.kind", choice({"jobmanager": "jobmanager", "filesystem": "filesystem"})),
        others=("state.checkpoint-storage",),
    ),
    Option(
        "execution.checkpointing.dir",
        _keep("storage.directory", some_text),
        others=("state.checkpoints.dir", "state.backend.fs.checkpointdir"),
    ),
    Option(
        "execution.checkpointing.savepoint-dir",
        _keep("savepoint_directory", some_text),
        others=("state.savepoints.dir", "savepoints.state.backend.fs.dir"),
    ),
    Option(
        "execution.checkpointing.data-inline-threshold",
        _keep("storage.inline_threshold", _inline_threshold),
        "20 kb",
        others=("state.storage.fs.memory-threshold", "state.backend.fs.memory-threshold"),
    ),
]

_STATE = [
    Option("state.backend.type", _state_backend, "hashmap", others=("state.backend",)),
    Option("state.backend.async", _keep("asynchronous_snapshots", truth), "true"),
    Option("state.backend.rocksdb.localdir", lambda s, v: s.rocksdb.set_db_storage_paths(*_local_directories(v))),
    Option("state.backend.rocksdb.memory.fixed-per-slot", lambda s, v: s.rocksdb.set_memory_per_slot(_some_memory(v))),
    Option("state.backend.rocksdb.memory.managed", lambda _, v: truth(v), "true"),
    Option(
        "state.backend.rocksdb.predefined-options",
        lambda s, v: s.rocksdb.set_predefined_options(choice(PredefinedOptions.__members__)(v)),
        "DEFAULT",
    ),
    Option("state.backend.rocksdb.options-factory", lambda s, v: s.rocksdb.set_options(some_text(v))),
    Option(
        "state.backend.rocksdb.checkpoint.transfer.thread.num",
        lambda s, v: s.rocksdb.set_number_of_transfer_threads(positive(v)),
        "4",
    ),
]

_QUERYABLE = [
    Option("queryable-state.enable", _keep("queryable.enabled", truth), "false"),
    Option("queryable-state.proxy.ports", _keep("queryable.ports", _ports), "9069"),
    Option("queryable-state.bind-host", _keep("queryable.host", some_text), "127.0.0.1"),
    Option("queryable-state.token", _keep("queryable.token", some_text)),
    Option("queryable-state.ssl.enabled", _keep("queryable.tls.enabled", truth), "false"),
    Option("queryable-state.ssl.certificate", _keep("queryable.tls.certificate", some_text)),
    Option("queryable-state.ssl.key", _keep("queryable.tls.key", some_text)),
    Option("queryable-state.ssl.key-password", _keep("queryable.tls.key_password", some_text)),
]

_RESTARTS = [
    Option("restart-strategy.type", _keep("restart_options.kind", _RESTART_KINDS), others=("restart-strategy",)),
    _restart("restart-strategy.fixed-delay.attempts", "restart_attempts", not_negative, "1"),
    _restart("restart-strategy.fixed-delay.delay", "delay_between_attempts_interval", parse_duration, "1 s"),
    _restart("restart-strategy.failure-rate.max-failures-per-interval", "max_failure_rate", positive, "1"),
    _restart("restart-strategy.failure-rate.failure-rate-interval", "failure_interval", _some_time, "1 min"),
    _restart("restart-strategy.failure-rate.delay", "delay_between_attempts_interval", parse_duration, "1 s"),
    _restart("restart-strategy.exponential-delay.initial-backoff", "initial_backoff", _some_time, "1 s"),
    _restart("restart-strategy.exponential-delay.max-backoff", "max_backoff", _some_time, "1 min"),
    _restart("restart-strategy.exponential-delay.backoff-multiplier", "backoff_multiplier", _multiplier, "1.5"),
    _restart(
        "restart-strategy.exponential-delay.reset-backoff-threshold", "reset_backoff_threshold", _some_time, "1 h"
    ),
    _restart("restart-strategy.exponential-delay.jitter-factor", "jitter_factor", _fraction, "0.1"),
    _restart(
        "restart-strategy.exponential-delay.attempts-before-reset-backoff",
        "attempts_before_reset_backoff",
        positive,
        "2147483647",
    ),
]

_RECOVERY = [
    Option("execution.state-recovery.path", _keep("restore_path", some_text), others=("execution.savepoint.path",)),
    Option(
        "execution.state-recovery.ignore-unclaimed-state",
        _keep("allow_non_restored", truth),
        "false",
        others=("execution.savepoint.ignore-unclaimed-state",),
    ),
    Option(
        "execution.state-recovery.claim-mode",
        _keep("claim", choice({"NO_CLAIM": False, "CLAIM": True, "LEGACY": False})),
        "NO_CLAIM",
        others=("execution.savepoint-restore-mode",),
    ),
    Option("execution.recover", _keep("recovery", choice({one.value: one for one in Recovery})), "none"),
    Option("execution.takeover", _keep("takeover", truth), "false"),
    Option("execution.single-driver", _keep("single_driver", truth), "false"),
]

OPTIONS = [*_JOB, *_CHECKPOINTS, *_STORAGE, *_STATE, *_QUERYABLE, *_RESTARTS, *_RECOVERY]
"""Every option that an environment reads."""
