"""The guarantee that state has after a recovery."""

from penstock.api.settings.checkpointing_mode import CheckpointingMode

__all__ = ["CheckpointingMode"]
