"""Catalogs and modules of other packages, which register functions that make them as entry points."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from penstock.errors import ValidationException

CATALOGS = "penstock.table.catalogs"
"""Group of entry points whose names are values of the option 'type' of CREATE CATALOG."""
MODULES = "penstock.table.modules"
"""Group of entry points whose names are those of LOAD MODULE."""

T = TypeVar("T")


@cache
def offers(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by name."""
    return {point.name: point for point in entry_points(group=group)}


def make(group: str, name: str, options: Mapping[str, str], kind: type[T]) -> T:
    """Call what an entry point names with the options of the statement. The result is an object of `kind`."""
    made = offers(group)[name].load()(dict(options))
    if not isinstance(made, kind):
        raise ValidationException(f"the entry point '{name}' of {group} makes a {kind.__name__}, not {made!r}")
    return made
