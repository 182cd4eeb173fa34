"""The settings of an environment: typed, validated, and readable from a Configuration under Flink's option names."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from penstock.common.configuration import Configuration, parse_duration
from penstock.common.execution_config import ExecutionConfig
from penstock.datastream.checkpoint_config import CheckpointConfig
from penstock.datastream.execution_mode import RuntimeExecutionMode
from penstock.datastream.state_backend import StateBackend
from penstock.errors import ConfigurationError
from penstock.job.driver import EpochOptions

MASTER_VARIABLE = "PENSTOCK_MASTER"


@dataclass
class EnvironmentSettings:
    """Everything that is not a transformation."""

    config: ExecutionConfig = field(default_factory=ExecutionConfig)
    checkpoints: CheckpointConfig = field(default_factory=CheckpointConfig)
    mode: RuntimeExecutionMode = RuntimeExecutionMode.STREAMING
    buffer_timeout: int = 100
    chaining: bool = True
    master: str | None = None
    job_name: str | None = None
    max_records: int = EpochOptions.max_records
    max_millis: int = EpochOptions.max_millis
    spark: dict[str, str] = field(default_factory=dict)
    state_backend: StateBackend | None = None
    savepoint_directory: str | None = None

    def read(self, configuration: Configuration) -> None:
        """Take over every option that is known; options of other parts of Flink are left alone."""
        for name, value in configuration.to_dict().items():
            if name in _OPTIONS:
                try:
                    _OPTIONS[name](self, value)
                except (ValueError, KeyError) as error:
                    raise ConfigurationError(f"option {name} cannot be {value!r}: {error}") from None
            elif name.startswith("spark.") and name != "spark.master":
                self.spark[name] = value

    def parallelism(self) -> int:
        """The job's parallelism: as set, else the number of cores that a local master uses."""
        chosen = self.config.get_parallelism()
        return chosen if chosen > 0 else default_parallelism()

    def max_parallelism(self) -> int | None:
        chosen = self.config.get_max_parallelism()
        return chosen if chosen > 0 else None

    def spark_master(self) -> str:
        """Where to run: as set, else what PENSTOCK_MASTER says, else all local cores."""
        return self.master or os.environ.get(MASTER_VARIABLE) or "local[*]"

    def epochs(self) -> EpochOptions:
        return EpochOptions(self.max_records, self.max_millis, max(self.buffer_timeout, 0))


def default_parallelism() -> int:
    """One subtask a core."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def positive(text: str) -> int:
    """A whole number above 0."""
    number = int(text)
    if number <= 0:
        raise ValueError("it must be a whole number above 0")
    return number


def truth(text: str) -> bool:
    """'true' or 'false'."""
    return {"true": True, "false": False}[str(text).lower()]


def _master(settings: EnvironmentSettings, value: str) -> None:
    settings.master = value


def _name(settings: EnvironmentSettings, value: str) -> None:
    settings.job_name = value


def _mode(settings: EnvironmentSettings, value: str) -> None:
    settings.mode = RuntimeExecutionMode[value.upper()]


def _chaining(settings: EnvironmentSettings, value: str) -> None:
    settings.chaining = truth(value)


def _buffer_timeout(settings: EnvironmentSettings, value: str) -> None:
    settings.buffer_timeout = -1 if value.strip() == "-1" else parse_duration(value)


def _max_records(settings: EnvironmentSettings, value: str) -> None:
    settings.max_records = positive(value)


def _max_millis(settings: EnvironmentSettings, value: str) -> None:
    settings.max_millis = max(1, parse_duration(value))


def _parameters(settings: EnvironmentSettings, value: str) -> None:
    pairs = [pair.partition(":") for pair in value.strip("{}").split(",") if pair.strip()]
    settings.config.set_global_job_parameters({name.strip(): text.strip() for name, _, text in pairs})


_OPTIONS = {
    "parallelism.default": lambda s, v: s.config.set_parallelism(int(v)),
    "pipeline.max-parallelism": lambda s, v: s.config.set_max_parallelism(int(v)),
    "pipeline.auto-watermark-interval": lambda s, v: s.config.set_auto_watermark_interval(parse_duration(v)),
    "pipeline.object-reuse": lambda s, v: s.config.enable_object_reuse() if truth(v) else None,
    "pipeline.global-job-parameters": _parameters,
    "pipeline.name": _name,
    "pipeline.operator-chaining": _chaining,
    "pipeline.operator-chaining.enabled": _chaining,
    "execution.runtime-mode": _mode,
    "execution.buffer-timeout": _buffer_timeout,
    "execution.buffer-timeout.interval": _buffer_timeout,
    "execution.checkpointing.interval": lambda s, v: s.checkpoints.set_checkpoint_interval(parse_duration(v)),
    "spark.master": _master,
    "penstock.epoch.max-records": _max_records,
    "penstock.epoch.max-time": _max_millis,
}
