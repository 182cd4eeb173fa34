"""Treatment of checkpoints after a job, under the name of PyFlink's module."""

from penstock.api.settings.checkpoint_config import ExternalizedCheckpointRetention

__all__ = ["ExternalizedCheckpointRetention"]
