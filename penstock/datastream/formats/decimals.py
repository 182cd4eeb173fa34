"""Decimals with a fixed number of digits, for the columns of files."""

from penstock.formats.decimals import *  # noqa: F403
from penstock.formats.decimals import __all__  # noqa: F401
