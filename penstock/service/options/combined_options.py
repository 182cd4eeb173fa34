"""Values of options that only make sense together, in whatever order they are set."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from penstock.api.settings.checkpoint_storage import (
    CheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from penstock.api.settings.state_backend import EmbeddedRocksDBStateBackend, HashMapStateBackend, StateBackend
from penstock.base.options.option import Parser
from penstock.base.options.parsers import choice
from penstock.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from penstock.engine.job.restarts import DEFAULT_WITH_CHECKPOINTS
from penstock.errors import ConfigurationError


class Recovery(Enum):
    """Use that a job makes of the checkpoints of an earlier run with the same id."""

    NONE = "none"
    LATEST = "latest"
    """Continue from the newest one, and fail if that was published and is gone."""
    OLDER = "older"
    """Continue from the newest one that is left."""


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


RESTART_KINDS = choice(
    {
        **{kind: kind for kind in _STRATEGIES},
        **dict.fromkeys(["off", "disable"], "none"),
        "fixeddelay": "fixed-delay",
        "failurerate": "failure-rate",
        "exponentialdelay": "exponential-delay",
    }
)

BACKENDS: Parser[tuple[type[StateBackend], str | None]] = choice(
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
