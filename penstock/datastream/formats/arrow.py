"""Arrow files, as rows."""

from penstock.formats.arrow_files import *  # noqa: F403
from penstock.formats.arrow_files import __all__  # noqa: F401
