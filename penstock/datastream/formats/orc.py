"""ORC files, as rows."""

from penstock.formats.orc_files import *  # noqa: F403
from penstock.formats.orc_files import __all__  # noqa: F401
