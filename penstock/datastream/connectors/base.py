"""What every connector is made of."""

from penstock.connectors.source_api import *  # noqa: F403
from penstock.connectors.source_api import __all__  # noqa: F401
