"""Decimals with a fixed number of digits, for the columns of files."""

from penstock.formats.decimal_values import *  # noqa: F403
from penstock.formats.decimal_values import __all__  # noqa: F401
