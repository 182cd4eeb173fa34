"""The options that a Configuration can hold: Flink's names, old and new, and a few of Penstock's own.

Each is one row of `OPTIONS`; `docs/configuration.md` shows the same rows.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from penstock.api.settings.checkpoint_config import ExternalizedCheckpointRetention
from penstock.api.settings.checkpoint_storage import FileSystemCheckpointStorage
from penstock.api.settings.checkpointing_mode import CheckpointingMode
from penstock.api.settings.execution_mode import RuntimeExecutionMode
from penstock.api.settings.state_backend import PredefinedOptions, StateBackend
from penstock.base.options.option import Option, Parser, call, enter, keep
from penstock.base.options.parsers import (
    check,
    choice,
    not_negative,
    number,
    parse_duration,
    parse_memory_size,
    positive,
    some_text,
    some_time,
    truth,
    whole,
    words,
)
from penstock.common.job import JobID
from penstock.common.time import Duration
from penstock.service.options.combined_options import BACKENDS, RESTART_KINDS, Recovery

if TYPE_CHECKING:
    from penstock.service.launch.execution_settings import EnvironmentSettings


# --- texts ---
def _multiplier(text: str) -> float:
    return check(number(text), lambda factor: factor >= 1, "a number of at least 1")


def _fraction(text: str) -> float:
    return check(number(text), lambda share: 0 <= share <= 1, "a number from 0 to 1")


def _some_memory(text: str) -> int:
    return check(parse_memory_size(text), lambda size: size > 0, "at least 1 byte")


def _inline_threshold(text: str) -> int:
    most = FileSystemCheckpointStorage.MAX_FILE_STATE_THRESHOLD
    return check(parse_memory_size(text), lambda size: size <= most, f"at most {most >> 10} kb")


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


def _duration(text: str) -> Duration:
    return Duration.of_millis(parse_duration(text))


# --- where values go ---
def _object_reuse(settings: EnvironmentSettings, value: bool) -> None:
    if value:
        settings.config.enable_object_reuse()
    else:
        settings.config.disable_object_reuse()


def _state_backend(settings: EnvironmentSettings, value: tuple[type[StateBackend], str | None]) -> None:
    backend, settings.storage.implied_kind = value
    settings.state_backend = backend()


def _restart(name: str, field: str, parse: Parser[Any], default: str) -> Option[Any]:
    """Return an option that sets a field of the restart strategy that its name's second part names."""
    kind = name.split(".")[1]

    def apply(settings: EnvironmentSettings, value: Any) -> None:
        settings.restart_options.values.setdefault(kind, {})[field] = value

    return Option(name, parse, default, apply=apply)


# --- the table ---
_JOB: list[Option[Any]] = [
    Option(
        "parallelism.default",
        whole,
        apply=call("config.set_parallelism"),
        of_machine=lambda: str(default_parallelism()),
    ),
    Option("pipeline.max-parallelism", whole, apply=call("config.set_max_parallelism")),
    Option("pipeline.name", str, apply=keep("job_name")),
    Option("pipeline.job-id", _job_id, others=("$internal.pipeline.job-id",), apply=keep("job_id")),
    Option(
        "pipeline.auto-watermark-interval", parse_duration, "200 ms", apply=call("config.set_auto_watermark_interval")
    ),
    Option(
        "pipeline.operator-chaining.enabled",
        truth,
        "true",
        others=("pipeline.operator-chaining", "python.operator-chaining.enabled"),
        apply=keep("chaining"),
    ),
    Option("pipeline.global-job-parameters", _parameters, apply=call("config.set_global_job_parameters")),
    Option("pipeline.object-reuse", truth, "false", apply=_object_reuse),
    Option("jobmanager.scheduler", words("default", "adaptive"), "default", apply=keep("scheduler")),
    Option("scheduler-mode", words("reactive"), apply=keep("scheduler_mode")),
    Option(
        "jobmanager.adaptive-scheduler.submission.resource-wait-timeout",
        some_time,
        "5 min",
        others=("jobmanager.adaptive-scheduler.resource-wait-timeout",),
        apply=keep("adaptivity.resource_wait_timeout"),
    ),
    Option(
        "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout",
        some_time,
        "10 s",
        others=("jobmanager.adaptive-scheduler.resource-stabilization-timeout",),
        apply=keep("adaptivity.resource_stabilization_timeout"),
    ),
    Option("slot.request.timeout", some_time, "5 min", apply=keep("patience.slot_request_timeout")),
    Option("heartbeat.interval", some_time, "10 s", apply=keep("patience.heartbeat_interval")),
    Option("heartbeat.timeout", some_time, "50 s", apply=keep("patience.heartbeat_timeout")),
    Option("security.kerberos.login.keytab", some_text, apply=enter("spark", "spark.kerberos.keytab")),
    Option("security.kerberos.login.principal", some_text, apply=enter("spark", "spark.kerberos.principal")),
    Option("security.ssl.internal.enabled", truth, "false", apply=keep("encrypts")),
    Option("execution.runtime-mode", choice(RuntimeExecutionMode.__members__), "STREAMING", apply=keep("mode")),
    Option("execution.sorted-inputs.memory", _some_memory, "128 mb", apply=keep("sort_memory")),
    Option(
        "execution.buffer-timeout.interval",
        _buffer_timeout,
        "100 ms",
        others=("execution.buffer-timeout",),
        apply=keep("buffer_timeout"),
    ),
    Option("execution.buffer-timeout.enabled", truth, "true", apply=keep("gathers")),
    Option("penstock.epoch.max-records", positive, "1000000", apply=keep("max_records")),
    Option("penstock.epoch.max-time", lambda text: max(1, parse_duration(text)), "1 s", apply=keep("max_millis")),
    Option("spark.master", some_text, apply=keep("master")),
]

_CHECKPOINTS: list[Option[Any]] = [
    Option("execution.checkpointing.interval", parse_duration, apply=call("checkpoints.set_checkpoint_interval")),
    Option(
        "execution.checkpointing.mode",
        choice(CheckpointingMode.__members__),
        "EXACTLY_ONCE",
        apply=call("checkpoints.set_checkpointing_mode"),
    ),
    Option(
        "execution.checkpointing.timeout", parse_duration, "10 min", apply=call("checkpoints.set_checkpoint_timeout")
    ),
    Option(
        "execution.checkpointing.min-pause",
        parse_duration,
        "0 ms",
        apply=call("checkpoints.set_min_pause_between_checkpoints"),
    ),
    Option(
        "execution.checkpointing.max-concurrent-checkpoints",
        whole,
        "1",
        apply=call("checkpoints.set_max_concurrent_checkpoints"),
    ),
    Option(
        "execution.checkpointing.tolerable-failed-checkpoints",
        whole,
        "0",
        apply=call("checkpoints.set_tolerable_checkpoint_failure_number"),
    ),
    Option(
        "execution.checkpointing.externalized-checkpoint-retention",
        choice(ExternalizedCheckpointRetention.__members__),
        "NO_EXTERNALIZED_CHECKPOINTS",
        apply=call("checkpoints.set_externalized_checkpoint_retention"),
    ),
    Option(
        "execution.checkpointing.num-retained",
        whole,
        "1",
        others=("state.checkpoints.num-retained",),
        apply=call("checkpoints.set_max_retained_checkpoints"),
    ),
    Option(
        "execution.checkpointing.incremental",
        truth,
        "true",
        others=("state.backend.incremental",),
        apply=call("checkpoints.set_incremental_checkpoints"),
    ),
    Option(
        "execution.checkpointing.snapshot-compression",
        truth,
        "false",
        apply=call("config.set_use_snapshot_compression"),
    ),
    Option(
        "execution.checkpointing.local-backup.enabled",
        truth,
        "false",
        others=("execution.state-recovery.from-local", "state.backend.local-recovery"),
        apply=call("checkpoints.set_local_recovery"),
    ),
    Option(
        "execution.checkpointing.unaligned.enabled",
        truth,
        "false",
        others=("execution.checkpointing.unaligned",),
        apply=call("checkpoints.enable_unaligned_checkpoints"),
    ),
    Option(
        "execution.checkpointing.aligned-checkpoint-timeout",
        _duration,
        "0 ms",
        others=("execution.checkpointing.alignment-timeout",),
        apply=call("checkpoints.set_aligned_checkpoint_timeout"),
    ),
]

_STORAGE: list[Option[Any]] = [
    Option(
        "execution.checkpointing.storage",
        words("jobmanager", "filesystem"),
        others=("state.checkpoint-storage",),
        apply=keep("storage.kind"),
    ),
    Option(
        "execution.checkpointing.dir",
        some_text,
        others=("state.checkpoints.dir", "state.backend.fs.checkpointdir"),
        apply=keep("storage.directory"),
    ),
    Option(
        "execution.checkpointing.savepoint-dir",
        some_text,
        others=("state.savepoints.dir", "savepoints.state.backend.fs.dir"),
        apply=keep("savepoint_directory"),
    ),
    Option(
        "execution.checkpointing.data-inline-threshold",
        _inline_threshold,
        "20 kb",
        others=("state.storage.fs.memory-threshold", "state.backend.fs.memory-threshold"),
        apply=keep("storage.inline_threshold"),
    ),
]

_STATE: list[Option[Any]] = [
    Option("state.backend.type", BACKENDS, "hashmap", others=("state.backend",), apply=_state_backend),
    Option("state.backend.async", truth, "true", apply=keep("asynchronous_snapshots")),
    Option("state.backend.rocksdb.localdir", _local_directories, apply=lambda s, v: s.rocksdb.set_db_storage_paths(*v)),
    Option("state.backend.rocksdb.memory.fixed-per-slot", _some_memory, apply=call("rocksdb.set_memory_per_slot")),
    Option("state.backend.rocksdb.memory.managed", truth, "true"),
    Option(
        "state.backend.rocksdb.predefined-options",
        choice(PredefinedOptions.__members__),
        "DEFAULT",
        apply=call("rocksdb.set_predefined_options"),
    ),
    Option("state.backend.rocksdb.options-factory", some_text, apply=call("rocksdb.set_options")),
    Option(
        "state.backend.rocksdb.checkpoint.transfer.thread.num",
        positive,
        "4",
        apply=call("rocksdb.set_number_of_transfer_threads"),
    ),
]

_QUERYABLE: list[Option[Any]] = [
    Option("queryable-state.enable", truth, "false", apply=keep("queryable.enabled")),
    Option("queryable-state.proxy.ports", _ports, "9069", apply=keep("queryable.ports")),
    Option("queryable-state.bind-host", some_text, "127.0.0.1", apply=keep("queryable.host")),
    Option("queryable-state.token", some_text, apply=keep("queryable.token")),
    Option("queryable-state.ssl.enabled", truth, "false", apply=keep("queryable.tls.enabled")),
    Option("queryable-state.ssl.certificate", some_text, apply=keep("queryable.tls.certificate")),
    Option("queryable-state.ssl.key", some_text, apply=keep("queryable.tls.key")),
    Option("queryable-state.ssl.key-password", some_text, apply=keep("queryable.tls.key_password")),
]

_RESTARTS: list[Option[Any]] = [
    Option("restart-strategy.type", RESTART_KINDS, others=("restart-strategy",), apply=keep("restart_options.kind")),
    _restart("restart-strategy.fixed-delay.attempts", "restart_attempts", not_negative, "1"),
    _restart("restart-strategy.fixed-delay.delay", "delay_between_attempts_interval", parse_duration, "1 s"),
    _restart("restart-strategy.failure-rate.max-failures-per-interval", "max_failure_rate", positive, "1"),
    _restart("restart-strategy.failure-rate.failure-rate-interval", "failure_interval", some_time, "1 min"),
    _restart("restart-strategy.failure-rate.delay", "delay_between_attempts_interval", parse_duration, "1 s"),
    _restart("restart-strategy.exponential-delay.initial-backoff", "initial_backoff", some_time, "1 s"),
    _restart("restart-strategy.exponential-delay.max-backoff", "max_backoff", some_time, "1 min"),
    _restart("restart-strategy.exponential-delay.backoff-multiplier", "backoff_multiplier", _multiplier, "1.5"),
    _restart("restart-strategy.exponential-delay.reset-backoff-threshold", "reset_backoff_threshold", some_time, "1 h"),
    _restart("restart-strategy.exponential-delay.jitter-factor", "jitter_factor", _fraction, "0.1"),
    _restart(
        "restart-strategy.exponential-delay.attempts-before-reset-backoff",
        "attempts_before_reset_backoff",
        positive,
        "2147483647",
    ),
]

_RECOVERY: list[Option[Any]] = [
    Option(
        "execution.state-recovery.path", some_text, others=("execution.savepoint.path",), apply=keep("restore_path")
    ),
    Option(
        "execution.state-recovery.ignore-unclaimed-state",
        truth,
        "false",
        others=("execution.savepoint.ignore-unclaimed-state",),
        apply=keep("allow_non_restored"),
    ),
    Option(
        "execution.state-recovery.claim-mode",
        choice({"NO_CLAIM": False, "CLAIM": True, "LEGACY": False}),
        "NO_CLAIM",
        others=("execution.savepoint-restore-mode",),
        apply=keep("claim"),
    ),
    Option("execution.recover", choice({one.value: one for one in Recovery}), "none", apply=keep("recovery")),
    Option("execution.takeover", truth, "false", apply=keep("takeover")),
    Option("execution.single-driver", truth, "false", apply=keep("single_driver")),
]

OPTIONS = [*_JOB, *_CHECKPOINTS, *_STORAGE, *_STATE, *_QUERYABLE, *_RESTARTS, *_RECOVERY]
"""Every option that an environment reads."""
