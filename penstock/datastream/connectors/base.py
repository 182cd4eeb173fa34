"""What every connector is made of."""

from penstock.connectors.base import *  # noqa: F403
from penstock.connectors.base import __all__  # noqa: F401
