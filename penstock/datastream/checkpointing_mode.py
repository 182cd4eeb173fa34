"""What state guarantees after a recovery."""

from penstock.vocabulary.settings.checkpointing_mode import CheckpointingMode

__all__ = ["CheckpointingMode"]
