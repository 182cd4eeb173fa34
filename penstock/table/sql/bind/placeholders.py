"""Placeholders in expressions for values that separate nodes compute. A bound query has none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.table.logical.rex import Frame, Rex


@dataclass(frozen=True)
class Keyed:
    """An expression of a sort order."""

    value: Rex
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class Aggregated(Rex):
    """The value of an aggregate function over a group."""

    function: str
    args: tuple[Rex, ...]
    distinct: bool = False
    filter: Rex | None = None
    literals: tuple[Any, ...] = ()
    order: tuple[Keyed, ...] = ()
    ignore_nulls: bool | None = None
    udf: Any = None


@dataclass(frozen=True)
class Spanned(Rex):
    """The value of a function over a window of OVER."""

    call: Aggregated
    partition: tuple[Rex, ...]
    order: tuple[Keyed, ...]
    frame: Frame


@dataclass(frozen=True)
class Grouping(Rex):
    """GROUPING and GROUPING_ID: the keys that are not in the grouping set, as bits."""

    keys: tuple[Rex, ...]


@dataclass(frozen=True)
class WindowProperty(Rex):
    """The start, end, rowtime or proctime of a group window, such as TUMBLE_START."""

    kind: str
    property: str
    args: tuple[Any, ...]


def everything(rex: Rex) -> Iterator[Rex]:
    """Yield an expression and all its parts, including the arguments of placeholders."""
    yield rex
    for part in _inside(rex):
        yield from everything(part)


def _inside(rex: Rex) -> tuple[Rex, ...]:
    if isinstance(rex, Aggregated):
        return (*rex.args, *((rex.filter,) if rex.filter else ()), *(one.value for one in rex.order))
    if isinstance(rex, Spanned):
        return (*_inside(rex.call), *rex.partition, *(one.value for one in rex.order))
    return rex.parts()
