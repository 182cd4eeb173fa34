"""Packages that only some connectors and formats need: imported at first use, and named if they are not installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from penstock.errors import MissingDependency


def optional_library(module: str, need: str, extra: str) -> Any:
    """A module. Without it, the error says who needs what, and the extra of Penstock that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependency(f'{need}: pip install "penstock[{extra}]"') from error
