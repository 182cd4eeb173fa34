"""Sinks into systems without transactions, whose records wait in checkpoints until those are complete."""

from penstock.connectors.committing.write_ahead import (
    CheckpointCommitter,
    DatabaseCheckpointCommitter,
    FileCheckpointCommitter,
    GenericWriteAheadSink,
)

__all__ = [
    "CheckpointCommitter",
    "DatabaseCheckpointCommitter",
    "FileCheckpointCommitter",
    "GenericWriteAheadSink",
]
