"""The settings of an environment: typed, validated, and readable from a Configuration under Flink's option names."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.api.settings.checkpoint_config import CheckpointConfig
from penstock.api.settings.checkpoint_storage import (
    FLINKS_FILE_STATE_THRESHOLD,
    CheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from penstock.api.settings.execution_mode import RuntimeExecutionMode
from penstock.api.settings.state_backend import EmbeddedRocksDBStateBackend, HashMapStateBackend, StateBackend
from penstock.base.hdfs.kerberos_login import log_in
from penstock.base.options.option import Option
from penstock.common.configuration import Configuration
from penstock.common.execution_config import ExecutionConfig
from penstock.common.restart_strategy import RestartStrategyConfiguration
from penstock.engine.job.adaptive import Adaptivity
from penstock.engine.job.cluster_protocol import Patience
from penstock.engine.job.epochs import EpochOptions
from penstock.engine.messages.commands_and_reports import MeasuringSettings
from penstock.errors import ConfigurationError, InvalidParallelism
from penstock.service.launch.queryable_serving import QueryableOptions
from penstock.service.launch.spark_settings import settings_of_spark, spark_submit_master
from penstock.service.options.combined_options import Recovery, RestartOptions, StorageOptions
from penstock.service.options.environment_options import OPTIONS, default_parallelism
from penstock.service.options.known_options import new_warnings
from penstock.service.options.metric_options import OPTIONS as METRIC_OPTIONS
from penstock.service.options.translated_options import HADOOP, Translation
from penstock.service.options.translated_options import OPTIONS as TRANSLATED_OPTIONS
from penstock.spark.sessions.connect_session import remote_url

MASTER_VARIABLE = "PENSTOCK_MASTER"

_OPTIONS = {
    spelling: option for option in (*OPTIONS, *METRIC_OPTIONS, *TRANSLATED_OPTIONS) for spelling in option.spellings
}


@dataclass
class EnvironmentSettings:
    """Everything in an environment that is not a transformation.

    Where several options, or the program and an option, decide together, the functions below give the answer: where
    checkpoints and savepoints go, and how state is kept.
    """

    config: ExecutionConfig = field(default_factory=ExecutionConfig)
    checkpoints: CheckpointConfig = field(default_factory=CheckpointConfig)
    mode: RuntimeExecutionMode = RuntimeExecutionMode.STREAMING
    sort_memory: int = 128 << 20
    buffer_timeout: int = 100
    gathers: bool = True
    """Whether the buffer timeout applies. If not, an epoch gathers input for as long as it may read."""
    asynchronous_snapshots: bool = True
    chaining: bool = True
    master: str | None = None
    job_name: str | None = None
    job_id: str | None = None
    max_records: int = EpochOptions.max_records
    max_millis: int = EpochOptions.max_millis
    spark: dict[str, str] = field(default_factory=dict)
    """Given settings of Spark, by name."""
    translation: Translation = field(default_factory=Translation)
    reads_frames: bool = False
    """Whether the program uses DataFrames of the active Spark session. They would be lost with the session."""
    patience: Patience = field(default_factory=Patience)
    scheduler: str = "default"
    """Kind of scheduler; `adaptive` lets the parallelism follow the available cores."""
    scheduler_mode: str = ""
    adaptivity: Adaptivity = field(default_factory=Adaptivity)
    encrypts: bool = False
    """Whether connections between machines are encrypted."""
    state_backend: StateBackend | None = None
    rocksdb: EmbeddedRocksDBStateBackend = field(default_factory=EmbeddedRocksDBStateBackend)
    """Values of the state.backend.rocksdb.* options. They complete the RocksDB backend that the job uses."""
    storage: StorageOptions = field(default_factory=StorageOptions)
    queryable: QueryableOptions = field(default_factory=QueryableOptions)
    measuring: MeasuringSettings = field(default_factory=MeasuringSettings)
    """Measurements of slots. The interval of latency markers is in `config` instead."""
    savepoint_directory: str | None = None
    restart: RestartStrategyConfiguration | None = None
    """Restart strategy of the program or the options. If it is None, it depends on whether there are checkpoints."""
    restart_options: RestartOptions = field(default_factory=RestartOptions)
    restore_path: str | None = None
    allow_non_restored: bool = False
    claim: bool = False
    recovery: Recovery = Recovery.NONE
    takeover: bool = False
    """Whether to take over the job from a driver that still runs it."""
    single_driver: bool = False
    """Whether the user makes sure that only one driver runs the job at any time."""
    given: Configuration = field(default_factory=Configuration, compare=False)
    """Every given option with its text, including options that have no meaning here."""

    def read(self, configuration: Configuration) -> None:
        """Apply every known option. Options of other parts of Flink are only kept in `given`."""
        self.given.add_all(configuration)
        values = configuration.to_dict()
        for warning in new_warnings(dict.fromkeys(values)):
            sys.stderr.write(f"warning: {warning}\n")
        for name, value in values.items():
            if name in _OPTIONS:
                self._read(_OPTIONS[name], name, values)
            elif name.startswith("spark."):
                self.spark[name] = value
            elif name.startswith(HADOOP):
                self.translation.spark[f"spark.hadoop.{name.removeprefix(HADOOP)}"] = value
        if any(name.startswith("restart-strategy") for name in values):
            self.restart = self.restart_options.strategy() or self.restart

    def _read(self, option: Option[Any], name: str, values: Mapping[str, str]) -> None:
        """Apply an option, unless it is also set under its preferred name."""
        if name != option.spelling(values):
            return
        try:
            option.apply(self, option.parse(values[name]))
        except (ValueError, ConfigurationError, InvalidParallelism) as error:
            raise ConfigurationError(f"option {name} cannot be {values[name]!r}: {error}") from None

    def forget(self, name: str) -> None:
        """Reset an option to its default. If the option names a snapshot to start from, the job starts without one."""
        self.given.remove_config(name)
        option = _OPTIONS.get(name)
        if option is not None and option.name == "execution.state-recovery.path":
            self.restore_path = None
        elif option is not None and option.default is not None:
            option.apply(self, option.parse(option.default))

    def parallelism(self) -> int:
        """Return the job's parallelism: the set one, else the number of cores that a local master uses."""
        chosen = self.config.get_parallelism()
        return chosen if chosen > 0 else default_parallelism()

    def max_parallelism(self) -> int | None:
        """Return the set max parallelism, or None."""
        chosen = self.config.get_max_parallelism()
        return chosen if chosen > 0 else None

    def spark_master(self) -> str:
        """Return the master: the set one, else that of `spark-submit`, PENSTOCK_MASTER or Spark, else local[*]."""
        named = self.master or spark_submit_master() or os.environ.get(MASTER_VARIABLE)
        return named or remote_url(self.spark) or "local[*]"

    def spark_settings(self) -> dict[str, str]:
        """Return the settings of a new Spark session. Given settings win over those that options of Flink became."""
        return {**self.translation.spark_settings(), **self.spark}

    def prepare_process(self) -> None:
        """Set the environment variables of this process that options of Flink became, and log in to Kerberos."""
        os.environ.update(self.translation.process)
        log_in({**settings_of_spark(), **self.spark_settings()})

    def epochs(self) -> EpochOptions:
        """Return the limits of an epoch."""
        gathering = self.buffer_timeout if self.gathers and self.buffer_timeout >= 0 else self.max_millis
        return EpochOptions(self.max_records, self.max_millis, gathering)


def measuring(settings: EnvironmentSettings) -> MeasuringSettings:
    """Return the measurements of slots. The ExecutionConfig gives the interval of latency markers."""
    return replace(settings.measuring, latency_interval=settings.config.get_latency_tracking_interval())


def state_backend(settings: EnvironmentSettings) -> StateBackend:
    """Return the set state backend, else one in memory. Options complete a RocksDB backend of the program."""
    chosen = settings.state_backend or HashMapStateBackend()
    return chosen.completed_by(settings.rocksdb) if isinstance(chosen, EmbeddedRocksDBStateBackend) else chosen


def incremental_checkpoints(settings: EnvironmentSettings) -> bool:
    """Return True if checkpoints hold only changes. The RocksDB backend decides, else the CheckpointConfig."""
    backend = settings.state_backend
    said = backend.get_incremental_checkpoints() if isinstance(backend, EmbeddedRocksDBStateBackend) else None
    return settings.checkpoints.is_incremental_checkpoints_enabled() if said is None else said


def checkpoint_storage(settings: EnvironmentSettings) -> CheckpointStorage:
    """Return the storage of checkpoints: of the CheckpointConfig, else of a Flink 1.x backend, else of the options."""
    of_backend = settings.state_backend.checkpoint_storage if settings.state_backend else None
    return settings.checkpoints.get_checkpoint_storage() or of_backend or settings.storage.storage()


def checkpoint_directory(settings: EnvironmentSettings) -> str | None:
    """Return the directory or URL of the checkpoints, or None if the driver keeps them in memory."""
    storage = checkpoint_storage(settings)
    if isinstance(storage, (FileSystemCheckpointStorage, JobManagerCheckpointStorage)):
        return storage.get_checkpoint_path()
    raise ConfigurationError(f"checkpoints can be written to a directory or kept by the driver, not by {storage!r}")


def inline_threshold(settings: EnvironmentSettings) -> int:
    """Return the size, in bytes, below which state goes into the metadata. The storage decides, else the option."""
    storage = checkpoint_storage(settings)
    own = storage.get_min_file_size_threshold() if isinstance(storage, FileSystemCheckpointStorage) else None
    if own not in (None, FLINKS_FILE_STATE_THRESHOLD):
        return own
    option = settings.storage.inline_threshold
    return FLINKS_FILE_STATE_THRESHOLD if option is None else option


def savepoint_directory(settings: EnvironmentSettings) -> str | None:
    """Return the default directory of savepoints: the set one, else that of a Flink 1.x state backend, else None."""
    of_backend = settings.state_backend.savepoint_path if settings.state_backend else None
    return settings.savepoint_directory or of_backend
