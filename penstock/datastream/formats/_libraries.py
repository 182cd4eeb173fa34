"""The libraries that formats need, imported at first use."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from penstock.errors import MissingDependency


def pyarrow(module: str = "pyarrow") -> ModuleType:
    try:
        return import_module(module)
    except ImportError:
        raise MissingDependency('Parquet and ORC files need pyarrow: pip install "penstock[files]"') from None


def fastavro() -> ModuleType:
    try:
        return import_module("fastavro")
    except ImportError:
        raise MissingDependency('Avro needs fastavro: pip install "penstock[avro]"') from None
