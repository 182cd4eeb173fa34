"""Packages that only some connectors and formats need: imported at first use, and named if they are not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from penstock.errors import MissingDependency


def optional_library(module: str, need: str, extra: str) -> Any:
    """Import a module.

    If it is missing, raise an error that names `need` and the extra of Penstock that installs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependency(f'{need}: pip install "penstock[{extra}]"') from error


@contextmanager
def explain_missing(who: str, extra: str) -> Iterator[None]:
    """Turn a failed import within this block into an error that names the extra which installs the library."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "penstock").partition(".")[0]
        if library == "penstock":
            raise
        raise MissingDependency(f'{who} needs {library}: pip install "penstock[{extra}]"') from error
