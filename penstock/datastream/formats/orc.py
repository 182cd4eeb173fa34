"""ORC files, as rows."""

from penstock.formats.orc import *  # noqa: F403
from penstock.formats.orc import __all__  # noqa: F401
