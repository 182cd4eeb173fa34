"""Sinks into systems without transactions, whose records wait in checkpoints until those are complete."""

from penstock.connectors.committing.write_ahead_sink import *  # noqa: F403
from penstock.connectors.committing.write_ahead_sink import __all__  # noqa: F401
