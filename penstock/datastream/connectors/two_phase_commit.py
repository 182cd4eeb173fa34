"""Sinks into systems that can prepare a transaction now and commit it later, perhaps from another process."""

from penstock.connectors.committing.two_phase_sink import *  # noqa: F403
from penstock.connectors.committing.two_phase_sink import __all__  # noqa: F401
