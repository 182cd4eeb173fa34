"""The state of functions, and its descriptors."""

from penstock.api.state.descriptors import *  # noqa: F403
from penstock.api.state.descriptors import __all__  # noqa: F401
