"""The storage of checkpoints."""

from penstock.api.settings.checkpoint_storage import (
    FLINKS_FILE_STATE_THRESHOLD,
    SMALLEST_WRITE_BUFFER,
    CheckpointStorage,
    CustomCheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)

__all__ = [
    "FLINKS_FILE_STATE_THRESHOLD",
    "SMALLEST_WRITE_BUFFER",
    "CheckpointStorage",
    "CustomCheckpointStorage",
    "FileSystemCheckpointStorage",
    "JobManagerCheckpointStorage",
]
