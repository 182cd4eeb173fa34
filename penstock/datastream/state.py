"""State as functions see it, and the descriptors by which they ask for it."""

from penstock.api.state.descriptors import *  # noqa: F403
from penstock.api.state.descriptors import __all__  # noqa: F401
