"""Settings for the way in which state is kept while a job runs.

The engine's state package has the tables themselves.
"""

from __future__ import annotations

from copy import copy
from enum import Enum
from typing import Any, Self
from urllib.parse import urlsplit

from penstock.api.settings.checkpoint_storage import (
    CheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from penstock.api.settings.values import Settings, at_least, instance_of
from penstock.base.arguments import check_arguments
from penstock.common.configuration import Configuration


class StateBackend(Settings):
    """Base of the state backends.

    In Flink 1.x a backend also set the places of checkpoints and savepoints. Both are None unless the program uses such
    a constructor of Flink 1.x.
    """

    checkpoint_storage: CheckpointStorage | None = None
    savepoint_path: str | None = None
    asynchronous_snapshots: bool = True

    @check_arguments
    def configure(self, configuration: Configuration, class_loader: Any = None) -> Self:
        """Return a copy with the places and the kind of snapshots that a configuration sets."""
        changed = copy(self)
        folder = configuration.get_string("state.savepoints.dir", "") or None
        changed.savepoint_path = self.savepoint_path if folder is None else folder
        changed.asynchronous_snapshots = configuration.get_boolean("state.backend.async", self.asynchronous_snapshots)
        return changed


class HashMapStateBackend(StateBackend):
    """Keeps state as live Python objects in the memory of the slots."""


class PredefinedOptions(Enum):
    """Settings of RocksDB for different kinds of disks."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


@check_arguments
class EmbeddedRocksDBStateBackend(StateBackend):
    """Keeps state in RocksDB on the local disks of the slots, for state larger than memory."""

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        if enable_incremental_checkpointing not in (True, False, None):
            found = repr(enable_incremental_checkpointing)
            raise TypeError(f"enable_incremental_checkpointing must be True, False or None, not {found}")
        self._incremental = enable_incremental_checkpointing
        self._db_storage_paths: list[str] | None = None
        self._predefined_options = PredefinedOptions.DEFAULT
        self._options_factory: str | None = None
        self._number_of_transfer_threads = 4
        self._memory_per_slot: int | None = None

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Return True if a checkpoint holds only the changes since the one before."""
        return bool(self._incremental)

    def get_incremental_checkpoints(self) -> bool | None:
        """Return the setting for incremental checkpoints. None leaves the choice to the CheckpointConfig."""
        return self._incremental

    def set_db_storage_paths(self, *paths: str) -> None:
        """Set the local directories for the files of RocksDB. Without any, it uses the temporary directory."""
        self._db_storage_paths = [_local_path(path) for path in paths] or None

    def get_db_storage_paths(self) -> list[str] | None:
        """Return the local directories, or None for the temporary directory."""
        return self._db_storage_paths

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        """Choose the settings for a kind of disk."""
        self._predefined_options = instance_of("options", options, PredefinedOptions)

    def get_predefined_options(self) -> PredefinedOptions:
        """Return the chosen settings for a kind of disk."""
        return self._predefined_options

    def set_options(self, options_factory_class_name: str) -> None:
        """Name a class, by its import path, that refines the settings."""
        self._options_factory = options_factory_class_name

    def get_options(self) -> str | None:
        """Return the import path of the class that refines the settings, if one was named."""
        return self._options_factory

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """Set the number of threads that move files to and from the checkpoint storage."""
        self._number_of_transfer_threads = at_least("number_of_transfering_threads", number_of_transfering_threads, 1)

    def get_number_of_transfer_threads(self) -> int:
        """Return the number of threads that move files to and from the checkpoint storage."""
        return self._number_of_transfer_threads

    def set_memory_per_slot(self, memory_per_slot: int | None) -> None:
        """Set the memory, in bytes, that RocksDB's caches and the live objects of one slot share. None means 256 MB."""
        self._memory_per_slot = None if memory_per_slot is None else at_least("memory_per_slot", memory_per_slot, 1)

    def get_memory_per_slot(self) -> int | None:
        """Return the memory of one slot for RocksDB's caches and live objects, in bytes, or None if it was not set."""
        return self._memory_per_slot

    def completed_by(self, options: EmbeddedRocksDBStateBackend) -> Self:
        """Return a copy that has the settings of `options` wherever this one still has the default."""
        completed = copy(self)
        for name, default in vars(EmbeddedRocksDBStateBackend()).items():
            if getattr(self, name) == default:
                setattr(completed, name, getattr(options, name))
        return completed


@check_arguments
class CustomStateBackend(StateBackend):
    """Names a backend that is not one of Penstock's by the import path of its class."""

    def __init__(self, class_name: str) -> None:
        self.class_name = class_name


@check_arguments
class MemoryStateBackend(HashMapStateBackend):
    """The Flink 1.x spelling of state in memory with checkpoints in the memory of the driver."""

    def __init__(
        self,
        checkpoint_path: str | int | bool | None = None,
        savepoint_path: str | bool | None = None,
        max_state_size: int | None = None,
        using_asynchronous_snapshots: bool | None = None,
    ) -> None:
        """Accept Java's constructors too: (size), (asynchronous) and (size, asynchronous)."""
        if isinstance(savepoint_path, bool):
            savepoint_path, using_asynchronous_snapshots = None, savepoint_path
        if isinstance(checkpoint_path, bool):
            checkpoint_path, using_asynchronous_snapshots = None, checkpoint_path
        elif isinstance(checkpoint_path, int):
            checkpoint_path, max_state_size = None, checkpoint_path
        self.checkpoint_storage = JobManagerCheckpointStorage(checkpoint_path, max_state_size)
        self.savepoint_path = savepoint_path
        self.asynchronous_snapshots = using_asynchronous_snapshots is not False


@check_arguments
class FsStateBackend(HashMapStateBackend):
    """The Flink 1.x spelling of state in memory with checkpoints in a file system."""

    def __init__(
        self,
        checkpoint_directory_uri: str,
        default_savepoint_directory_uri: str | bool | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int | None = None,
        using_asynchronous_snapshots: bool | None = None,
    ) -> None:
        """Accept Java's constructor (uri, asynchronous) too."""
        if isinstance(default_savepoint_directory_uri, bool):
            default_savepoint_directory_uri, using_asynchronous_snapshots = None, default_savepoint_directory_uri
        self.checkpoint_storage = FileSystemCheckpointStorage(
            checkpoint_directory_uri, file_state_size_threshold, write_buffer_size
        )
        self.savepoint_path = default_savepoint_directory_uri
        self.asynchronous_snapshots = using_asynchronous_snapshots is not False


@check_arguments
class RocksDBStateBackend(EmbeddedRocksDBStateBackend):
    """The Flink 1.x spelling of state in RocksDB with checkpoints where a URL or another 1.x backend puts them."""

    def __init__(
        self,
        checkpoint_data_uri: str | StateBackend | None = None,
        enable_incremental_checkpointing: bool | None = None,
        checkpoint_stream_backend: StateBackend | None = None,
    ) -> None:
        """Accept Java's constructor (backend, incremental) too."""
        if isinstance(checkpoint_data_uri, StateBackend) and checkpoint_stream_backend is None:
            checkpoint_data_uri, checkpoint_stream_backend = None, checkpoint_data_uri
        super().__init__(enable_incremental_checkpointing)
        if isinstance(checkpoint_data_uri, str) and checkpoint_stream_backend is None:
            self.checkpoint_storage = FileSystemCheckpointStorage(checkpoint_data_uri)
        elif checkpoint_stream_backend is not None and checkpoint_data_uri is None:
            self.checkpoint_storage = checkpoint_stream_backend.checkpoint_storage
            self.savepoint_path = checkpoint_stream_backend.savepoint_path
        else:
            raise ValueError("RocksDBStateBackend needs either checkpoint_data_uri or checkpoint_stream_backend")

    def enable_ttl_compaction_filter(self) -> None:
        """Do nothing: RocksDB drops expired entries whenever a state's time to live says so."""


def _local_path(path: str) -> str:
    """Return a folder without its scheme and final slash, as Flink keeps it."""
    local = urlsplit(path).path if path.startswith("file:") else path
    return local.rstrip("/") or "/"
