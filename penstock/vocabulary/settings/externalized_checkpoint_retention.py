"""What becomes of checkpoints, under the name of PyFlink's module."""

from penstock.vocabulary.settings.checkpoint_config import ExternalizedCheckpointRetention

__all__ = ["ExternalizedCheckpointRetention"]
