"""Avro: container files of generic records, and messages of one record each."""

from penstock.formats.avro import *  # noqa: F403
from penstock.formats.avro import __all__  # noqa: F401
