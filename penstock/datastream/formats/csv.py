"""CSV: files and messages whose records are lines of fields."""

from penstock.formats.csv.csv_format import *  # noqa: F403
from penstock.formats.csv.csv_format import __all__  # noqa: F401
