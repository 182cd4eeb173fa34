"""Arrow files, as rows."""

from penstock.formats.arrow import *  # noqa: F403
from penstock.formats.arrow import __all__  # noqa: F401
