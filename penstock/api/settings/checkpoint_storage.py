"""Settings for the places where checkpoints are written."""

from __future__ import annotations

from penstock.api.settings.values import Settings, at_least
from penstock.base.arguments import check_arguments

FLINKS_FILE_STATE_THRESHOLD = 20 * 1024
SMALLEST_WRITE_BUFFER = 4096


class CheckpointStorage(Settings):
    """Base of the places where checkpoints can be written."""


@check_arguments
class JobManagerCheckpointStorage(CheckpointStorage):
    """Keeps checkpoints in the memory of the driver, for tests and small state. They are lost when the driver ends.

    With a path, metadata is written there as well.
    """

    DEFAULT_MAX_STATE_SIZE = 5 * 1024 * 1024

    def __init__(self, checkpoint_path: str | None = None, max_state_size: int | None = None) -> None:
        self._checkpoint_path = checkpoint_path
        self._max_state_size = at_least(
            "max_state_size", self.DEFAULT_MAX_STATE_SIZE if max_state_size is None else max_state_size, 1
        )

    def get_checkpoint_path(self) -> str | None:
        """Return the place where metadata is written, if it is set."""
        return self._checkpoint_path

    def get_savepoint_path(self) -> str | None:
        """Return the default place of savepoints; this storage does not set one."""
        return None

    def get_max_state_size(self) -> int:
        """Return the maximum size of one state, in bytes."""
        return self._max_state_size


@check_arguments
class FileSystemCheckpointStorage(CheckpointStorage):
    """Writes checkpoints under a path or URL that fsspec understands."""

    MAX_FILE_STATE_THRESHOLD = 1024 * 1024

    def __init__(
        self,
        checkpoint_path: str,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int | None = None,
    ) -> None:
        if not isinstance(checkpoint_path, str) or not checkpoint_path:
            raise ValueError(f"checkpoint_path must be a path or URL, not {checkpoint_path!r}")
        self._checkpoint_path = checkpoint_path.rstrip("/") if checkpoint_path.strip("/") else checkpoint_path
        self._file_state_size_threshold = self._valid_threshold(file_state_size_threshold)
        self._write_buffer_size = (
            None if write_buffer_size is None else at_least("write_buffer_size", write_buffer_size, 1)
        )

    def get_checkpoint_path(self) -> str:
        """Return the place where checkpoints are written."""
        return self._checkpoint_path

    def get_savepoint_path(self) -> str | None:
        """Return the default place of savepoints; this storage does not set one."""
        return None

    def get_min_file_size_threshold(self) -> int:
        """Return the size in bytes below which state is written into the metadata instead of a separate file."""
        return self._file_state_size_threshold

    def get_write_buffer_size(self) -> int:
        """Return the size of the write buffer, which is never smaller than the threshold."""
        return max(self._write_buffer_size or SMALLEST_WRITE_BUFFER, self._file_state_size_threshold)

    def _valid_threshold(self, threshold: int | None) -> int:
        if threshold is None:
            return FLINKS_FILE_STATE_THRESHOLD
        if at_least("file_state_size_threshold", threshold, 0) > self.MAX_FILE_STATE_THRESHOLD:
            raise ValueError(
                f"file_state_size_threshold must be at most {self.MAX_FILE_STATE_THRESHOLD}, not {threshold}"
            )
        return threshold


@check_arguments
class CustomCheckpointStorage(CheckpointStorage):
    """Names a storage that is not one of Penstock's by the import path of its class."""

    def __init__(self, class_name: str) -> None:
        self.class_name = class_name
