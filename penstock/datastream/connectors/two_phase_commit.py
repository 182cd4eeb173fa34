"""Sinks into systems with transactions that can be prepared now and committed later, perhaps by another process."""

from penstock.connectors.committing.two_phase_sink import *  # noqa: F403
from penstock.connectors.committing.two_phase_sink import __all__  # noqa: F401
