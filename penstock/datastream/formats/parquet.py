"""Parquet files, as rows or as generic Avro records."""

from penstock.formats.parquet_files import *  # noqa: F403
from penstock.formats.parquet_files import __all__  # noqa: F401
