"""When checkpoints are taken and what becomes of them."""

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
