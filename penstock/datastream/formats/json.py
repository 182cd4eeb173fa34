"""JSON: messages of one object each, and files with one value in each line."""

from penstock.formats.json.json_format import *  # noqa: F403
from penstock.formats.json.json_format import __all__  # noqa: F401
