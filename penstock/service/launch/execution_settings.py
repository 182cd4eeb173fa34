"""The settings of an environment: typed, validated, and readable from a Configuration under Flink's option names."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from penstock.api.settings.checkpoint_config import CheckpointConfig
from penstock.api.settings.checkpoint_storage import (
    FLINKS_FILE_STATE_THRESHOLD,
    CheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from penstock.api.settings.execution_mode import RuntimeExecutionMode
from penstock.api.settings.state_backend import EmbeddedRocksDBStateBackend, HashMapStateBackend, StateBackend
from penstock.common.configuration import Configuration
from penstock.common.execution_config import ExecutionConfig
from penstock.common.restart_strategy import RestartStrategyConfiguration
from penstock.engine.job.adaptive import Adaptivity
from penstock.engine.job.cluster_protocol import Patience
from penstock.engine.job.epochs import EpochOptions
from penstock.engine.messages.commands_and_reports import MeasuringSettings
from penstock.errors import ConfigurationError, InvalidParallelism
from penstock.service.launch.known_options import new_warnings
from penstock.service.launch.metric_options import OPTIONS as METRIC_OPTIONS
from penstock.service.launch.options import (
    OPTIONS,
    Option,
    Recovery,
    RestartOptions,
    StorageOptions,
    default_parallelism,
)
from penstock.service.launch.queryable_serving import QueryableOptions
from penstock.service.launch.spark_settings import submitted_master
from penstock.service.launch.translated_options import HADOOP, Translation
from penstock.service.launch.translated_options import OPTIONS as TRANSLATED_OPTIONS
from penstock.spark.sessions.connect_session import remote_url

MASTER_VARIABLE = "PENSTOCK_MASTER"

_OPTIONS = {
    spelling: option for option in (*OPTIONS, *METRIC_OPTIONS, *TRANSLATED_OPTIONS) for spelling in option.spellings()
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
    """Whether the buffer timeout holds; without it, input is gathered as long as an epoch may read."""
    asynchronous_snapshots: bool = True
    chaining: bool = True
    master: str | None = None
    job_name: str | None = None
    job_id: str | None = None
    max_records: int = EpochOptions.max_records
    max_millis: int = EpochOptions.max_millis
    spark: dict[str, str] = field(default_factory=dict)
    """Settings of Spark, as they were given."""
    translation: Translation = field(default_factory=Translation)
    reads_frames: bool = False
    """Whether the program has frames of the active Spark session, which would be lost with it."""
    patience: Patience = field(default_factory=Patience)
    scheduler: str = "default"
    """`adaptive` lets the parallelism follow the cores that there are."""
    scheduler_mode: str = ""
    adaptivity: Adaptivity = field(default_factory=Adaptivity)
    encrypts: bool = False
    """Whether what goes between machines is encrypted."""
    state_backend: StateBackend | None = None
    rocksdb: EmbeddedRocksDBStateBackend = field(default_factory=EmbeddedRocksDBStateBackend)
    """What the state.backend.rocksdb.* options say, for whichever RocksDB backend is used in the end."""
    storage: StorageOptions = field(default_factory=StorageOptions)
    queryable: QueryableOptions = field(default_factory=QueryableOptions)
    measuring: MeasuringSettings = field(default_factory=MeasuringSettings)
    """What slots measure, beside the interval of latency markers, which is in `config`."""
    savepoint_directory: str | None = None
    restart: RestartStrategyConfiguration | None = None
    """The strategy, by a program or by options; None leaves it to whether there are checkpoints."""
    restart_options: RestartOptions = field(default_factory=RestartOptions)
    restore_path: str | None = None
    allow_non_restored: bool = False
    claim: bool = False
    recovery: Recovery = Recovery.NONE
    takeover: bool = False
    """Whether to take the job from a driver that still runs it."""
    given: Configuration = field(default_factory=Configuration, compare=False)
    """Every option as it was given, including options that have no meaning here."""

    def read(self, configuration: Configuration) -> None:
        """Take over every option that is known; options of other parts of Flink are left alone."""
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

    def _read(self, option: Option, name: str, values: Mapping[str, str]) -> None:
        """Apply an option, unless it is also set under its preferred name."""
        if name != next(spelling for spelling in option.spellings() if spelling in values):
            return
        try:
            option.apply(self, values[name])
        except (ValueError, ConfigurationError, InvalidParallelism) as error:
            raise ConfigurationError(f"option {name} cannot be {values[name]!r}: {error}") from None

    def forget(self, name: str) -> None:
        """Take an option back: it has its default again, and a job starts from nothing."""
        self.given.remove_config(name)
        option = _OPTIONS.get(name)
        if option is not None and option.name == "execution.state-recovery.path":
            self.restore_path = None
        elif option is not None and option.default is not None:
            option.apply(self, option.default)

    def parallelism(self) -> int:
        """The job's parallelism: as set, else the number of cores that a local master uses."""
        chosen = self.config.get_parallelism()
        return chosen if chosen > 0 else default_parallelism()

    def max_parallelism(self) -> int | None:
        chosen = self.config.get_max_parallelism()
        return chosen if chosen > 0 else None

    def spark_master(self) -> str:
        """Where to run: as set, as `spark-submit`, PENSTOCK_MASTER or Spark's own settings say, or all local cores."""
        named = self.master or submitted_master() or os.environ.get(MASTER_VARIABLE)
        return named or remote_url(self.spark) or "local[*]"

    def spark_settings(self) -> dict[str, str]:
        """Return the settings of a new Spark session: those that options of Flink became, and over them the given."""
        return {**self.translation.spark_settings(), **self.spark}

    def prepare_process(self) -> None:
        """Set the environment variables of this process that options of Flink became."""
        os.environ.update(self.translation.process)

    def epochs(self) -> EpochOptions:
        gathering = self.buffer_timeout if self.gathers and self.buffer_timeout >= 0 else self.max_millis
        return EpochOptions(self.max_records, self.max_millis, gathering)


def measuring(settings: EnvironmentSettings) -> MeasuringSettings:
    """What slots measure: as the options say, and with latency markers as often as the ExecutionConfig says."""
    return replace(settings.measuring, latency_interval=settings.config.get_latency_tracking_interval())


def state_backend(settings: EnvironmentSettings) -> StateBackend:
    """How state is kept: as set, else in memory. Options fill in what the program left open in a RocksDB backend."""
    chosen = settings.state_backend or HashMapStateBackend()
    return chosen.completed_by(settings.rocksdb) if isinstance(chosen, EmbeddedRocksDBStateBackend) else chosen


def incremental_checkpoints(settings: EnvironmentSettings) -> bool:
    """Whether a checkpoint holds only what changed: as the RocksDB backend says, else as the CheckpointConfig does."""
    backend = settings.state_backend
    said = backend.get_incremental_checkpoints() if isinstance(backend, EmbeddedRocksDBStateBackend) else None
    return settings.checkpoints.is_incremental_checkpoints_enabled() if said is None else said


def checkpoint_storage(settings: EnvironmentSettings) -> CheckpointStorage:
    """Where checkpoints go: as the CheckpointConfig says, else a Flink 1.x state backend, else the options."""
    of_backend = settings.state_backend.checkpoint_storage if settings.state_backend else None
    return settings.checkpoints.get_checkpoint_storage() or of_backend or settings.storage.storage()


def checkpoint_directory(settings: EnvironmentSettings) -> str | None:
    """The directory or URL of the checkpoints; None keeps them in the memory of the driver."""
    storage = checkpoint_storage(settings)
    if isinstance(storage, (FileSystemCheckpointStorage, JobManagerCheckpointStorage)):
        return storage.get_checkpoint_path()
    raise ConfigurationError(f"checkpoints are written to a directory or kept by the driver, and not by {storage!r}")


def inline_threshold(settings: EnvironmentSettings) -> int:
    """The size in bytes below which state is written into the metadata: as the storage says, else the option."""
    storage = checkpoint_storage(settings)
    own = storage.get_min_file_size_threshold() if isinstance(storage, FileSystemCheckpointStorage) else None
    if own not in (None, FLINKS_FILE_STATE_THRESHOLD):
        return own
    option = settings.storage.inline_threshold
    return FLINKS_FILE_STATE_THRESHOLD if option is None else option


def savepoint_directory(settings: EnvironmentSettings) -> str | None:
    """Where savepoints go that name no place: as set, else as a Flink 1.x state backend says; None if nothing does."""
    of_backend = settings.state_backend.savepoint_path if settings.state_backend else None
    return settings.savepoint_directory or of_backend
