"""The libraries that formats need. They are imported at first use."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

from penstock.base.libraries import optional_library


def pyarrow(module: str = "pyarrow") -> Any:
    """Import pyarrow or one of its modules."""
    return optional_library(module, "Parquet and ORC files need pyarrow", "files")


def pandas() -> Any:
    """Import pandas."""
    return optional_library("pandas", "functions of DataFrames need pandas", "table")


def fastavro() -> Any:
    """Import fastavro."""
    return optional_library("fastavro", "Avro needs fastavro", "avro")


@cache
def has_arrow() -> bool:
    """Return True if the libraries for columns are installed."""
    return all(find_spec(name) is not None for name in ("pyarrow", "numpy"))
