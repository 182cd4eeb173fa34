"""The interfaces that every connector implements."""

from penstock.connectors.source_api import *  # noqa: F403
from penstock.connectors.source_api import __all__  # noqa: F401
