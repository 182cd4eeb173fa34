"""The settings of checkpoints: their times and their retention."""

from penstock.api.settings.checkpoint_config import (
    SHORTEST_MILLIS,
    UNLIMITED_FAILURES,
    CheckpointConfig,
    ExternalizedCheckpointCleanup,
    ExternalizedCheckpointRetention,
)

__all__ = [
    "SHORTEST_MILLIS",
    "UNLIMITED_FAILURES",
    "CheckpointConfig",
    "ExternalizedCheckpointCleanup",
    "ExternalizedCheckpointRetention",
]
