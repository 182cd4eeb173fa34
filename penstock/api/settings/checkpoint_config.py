"""Settings for the times at which checkpoints are taken and for how long they are kept."""

from __future__ import annotations

from enum import Enum

from penstock.api.settings.checkpoint_storage import CheckpointStorage, FileSystemCheckpointStorage
from penstock.api.settings.checkpointing_mode import CheckpointingMode
from penstock.api.settings.values import Settings, at_least, instance_of
from penstock.base.arguments import check_arguments
from penstock.common.time import Duration, to_millis

SHORTEST_MILLIS = 10
"""Flink's lower limit for the interval and the timeout."""

UNLIMITED_FAILURES = 2**31 - 1


class ExternalizedCheckpointRetention(Enum):
    """Treatment of the last checkpoint when a job is cancelled. A job that fails always keeps it."""

    DELETE_ON_CANCELLATION = 0
    RETAIN_ON_CANCELLATION = 1
    NO_EXTERNALIZED_CHECKPOINTS = 2


ExternalizedCheckpointCleanup = ExternalizedCheckpointRetention
"""The Flink 1.x spelling."""


@check_arguments
class CheckpointConfig(Settings):
    """The checkpoint settings of a job. Checkpointing is off until an interval is set.

    The defaults are Flink's, except that incremental checkpoints are on: a checkpoint consists of the changes since
    the one before. Incremental checkpoints cost less than full ones and have no disadvantage.

    >>> CheckpointConfig().set_checkpoint_interval(1000).is_checkpointing_enabled()
    True
    """

    ExternalizedCheckpointCleanup = ExternalizedCheckpointCleanup

    DEFAULT_MODE = CheckpointingMode.EXACTLY_ONCE
    DEFAULT_TIMEOUT = 10 * 60 * 1000
    DEFAULT_MIN_PAUSE_BETWEEN_CHECKPOINTS = 0
    DEFAULT_MAX_CONCURRENT_CHECKPOINTS = 1
    DEFAULT_MAX_RETAINED_CHECKPOINTS = 1

    def __init__(self) -> None:
        self._mode = self.DEFAULT_MODE
        self._interval = -1
        self._timeout = self.DEFAULT_TIMEOUT
        self._min_pause = self.DEFAULT_MIN_PAUSE_BETWEEN_CHECKPOINTS
        self._max_concurrent = self.DEFAULT_MAX_CONCURRENT_CHECKPOINTS
        self._tolerable_failures = 0
        self._retention = ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
        self._max_retained = self.DEFAULT_MAX_RETAINED_CHECKPOINTS
        self._incremental = True
        self._local_recovery = False
        self._unaligned = False
        self._force_unaligned = False
        self._alignment_timeout = Duration.of_millis(0)
        self._storage: CheckpointStorage | None = None

    def is_checkpointing_enabled(self) -> bool:
        """Return True if an interval is set."""
        return self._interval > 0

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return the guarantee after a recovery."""
        return self._mode

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        """Set the guarantee after a recovery."""
        self._mode = instance_of("checkpointing_mode", checkpointing_mode, CheckpointingMode)
        return self

    def get_checkpoint_interval(self) -> int:
        """Return the milliseconds from the start of one checkpoint to the next, -1 if checkpointing is off."""
        return self._interval

    def set_checkpoint_interval(self, checkpoint_interval: int) -> CheckpointConfig:
        """Set the milliseconds from the start of one checkpoint to the next. It is a base value; pauses may defer."""
        self._interval = at_least("checkpoint_interval", checkpoint_interval, SHORTEST_MILLIS)
        return self

    def get_checkpoint_timeout(self) -> int:
        """Return the time in milliseconds after which an incomplete checkpoint is given up."""
        return self._timeout

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        """Set the time in milliseconds after which an incomplete checkpoint is given up."""
        self._timeout = at_least("checkpoint_timeout", checkpoint_timeout, SHORTEST_MILLIS)
        return self

    def get_min_pause_between_checkpoints(self) -> int:
        """Return the least milliseconds from the end of one checkpoint to the start of the next."""
        return self._min_pause

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int) -> CheckpointConfig:
        """Set the least milliseconds from the end of one checkpoint to the start of the next."""
        self._min_pause = at_least("min_pause_between_checkpoints", min_pause_between_checkpoints, 0)
        return self

    def get_max_concurrent_checkpoints(self) -> int:
        """Return the number of checkpoints that may be under way at once."""
        return self._max_concurrent

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """Set the number of checkpoints that may be under way at once."""
        self._max_concurrent = at_least("max_concurrent_checkpoints", max_concurrent_checkpoints, 1)
        return self

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """Return the number of checkpoints in a row that may fail before the job fails."""
        return self._tolerable_failures

    def set_tolerable_checkpoint_failure_number(self, tolerable_checkpoint_failure_number: int) -> CheckpointConfig:
        """Set the number of checkpoints in a row that may fail before the job fails."""
        self._tolerable_failures = at_least(
            "tolerable_checkpoint_failure_number", tolerable_checkpoint_failure_number, 0
        )
        return self

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Return True if the first failed checkpoint fails the job."""
        return self._tolerable_failures == 0

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> CheckpointConfig:
        """Tolerate no failed checkpoint, or any number of them."""
        return self.set_tolerable_checkpoint_failure_number(0 if fail_on_checkpointing_errors else UNLIMITED_FAILURES)

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """Return the treatment of the last checkpoint when the job is cancelled."""
        return self._retention

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """Set the treatment of the last checkpoint when the job is cancelled."""
        self._retention = instance_of("retention_mode", retention_mode, ExternalizedCheckpointRetention)
        return self

    def enable_externalized_checkpoints(self, cleanup_mode: ExternalizedCheckpointRetention) -> CheckpointConfig:
        """Call `set_externalized_checkpoint_retention`, under its Flink 1.x name."""
        return self.set_externalized_checkpoint_retention(cleanup_mode)

    def set_prefer_checkpoint_for_recovery(self, prefer_checkpoint_for_recovery: bool) -> CheckpointConfig:
        """Do nothing: as in Flink since 1.15, a job recovers from checkpoints and never from savepoints by itself."""
        return self

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Return True if checkpoints are kept to start a job from them by hand."""
        return self._retention is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS

    def get_max_retained_checkpoints(self) -> int:
        """Return the number of completed checkpoints to keep. Older ones are deleted."""
        return self._max_retained

    def set_max_retained_checkpoints(self, max_retained_checkpoints: int) -> CheckpointConfig:
        """Set the number of completed checkpoints to keep. Older ones are deleted."""
        self._max_retained = at_least("max_retained_checkpoints", max_retained_checkpoints, 1)
        return self

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Return True if a checkpoint holds only the changes since the one before, and refers to it for the rest."""
        return self._incremental

    def set_incremental_checkpoints(self, incremental_checkpoints: bool) -> CheckpointConfig:
        """Set whether a checkpoint holds only the changes since the one before, and refers to it for the rest."""
        self._incremental = instance_of("incremental_checkpoints", incremental_checkpoints, bool)
        return self

    def is_local_recovery_enabled(self) -> bool:
        """Return True if slots keep a local copy of their last checkpoint, to recover without the storage."""
        return self._local_recovery

    def set_local_recovery(self, local_recovery: bool) -> CheckpointConfig:
        """Set whether slots keep a local copy of their last checkpoint, to recover without the storage."""
        self._local_recovery = instance_of("local_recovery", local_recovery, bool)
        return self

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Return the setting. It has no effect, because an epoch needs no alignment."""
        return self._unaligned

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Accept the setting of a Flink program. It has no effect, because an epoch needs no alignment."""
        self._unaligned = bool(enabled)
        return self

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        """Take back `enable_unaligned_checkpoints`."""
        return self.enable_unaligned_checkpoints(False)

    def is_force_unaligned_checkpoints(self) -> bool:
        """Return the setting. It has no effect, because an epoch needs no alignment."""
        return self._force_unaligned

    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> CheckpointConfig:
        """Accept the setting of a Flink program. It has no effect, because an epoch needs no alignment."""
        self._force_unaligned = bool(force_unaligned_checkpoints)
        return self

    def get_aligned_checkpoint_timeout(self) -> Duration:
        """Return the setting. It has no effect, because an epoch needs no alignment."""
        return self._alignment_timeout

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """Accept the setting of a Flink program. It has no effect, because an epoch needs no alignment."""
        if to_millis(alignment_timeout) < 0:
            raise ValueError(f"alignment_timeout must not be negative, not {alignment_timeout!r}")
        self._alignment_timeout = alignment_timeout
        return self

    def get_alignment_timeout(self) -> Duration:
        """Call `get_aligned_checkpoint_timeout`, under its older name."""
        return self.get_aligned_checkpoint_timeout()

    def set_alignment_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """Call `set_aligned_checkpoint_timeout`, under its older name."""
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def get_checkpoint_storage(self) -> CheckpointStorage | None:
        """Return the place where checkpoints are written, or None if no place was set."""
        return self._storage

    def set_checkpoint_storage(self, storage: CheckpointStorage) -> CheckpointConfig:
        """Set the place where checkpoints are written."""
        self._storage = instance_of("storage", storage, CheckpointStorage)
        return self

    def set_checkpoint_storage_dir(self, checkpoint_path: str) -> CheckpointConfig:
        """Write checkpoints under a path or URL that fsspec understands."""
        return self.set_checkpoint_storage(FileSystemCheckpointStorage(checkpoint_path))
