"""The retention of checkpoints, under the name of PyFlink's module."""

from penstock.api.settings.externalized_checkpoint_retention import ExternalizedCheckpointRetention

__all__ = ["ExternalizedCheckpointRetention"]
