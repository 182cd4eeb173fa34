"""Avro: container files of generic records, and messages of one record each."""

from penstock.formats.avro.avro_format import *  # noqa: F403
from penstock.formats.avro.avro_format import __all__  # noqa: F401
