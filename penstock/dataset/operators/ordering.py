"""The order of elements that are sorted: None first, then values in their own order, turned round where it descends."""

from __future__ import annotations

from typing import Any

from penstock.common.types import Row
from penstock.engine.operators.batch.batch_operator import key_order


class Descending:
    """A value that sorts before lesser ones."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Descending) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)


def rank(value: Any) -> Any:
    """Return something that sorts as the value does, with None, also inside of tuples and rows, before all others."""
    if value is None:
        return (0,)
    if isinstance(value, (tuple, list, Row)):
        return 1, tuple(map(rank, value))
    return 1, value


class SortOrder:
    """Ranks of sort keys. Each part of a key has a direction of its own."""

    def __init__(self, descends: tuple[bool, ...]) -> None:
        self.descends = descends

    def __call__(self, parts: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            Descending(rank(part)) if down else rank(part) for part, down in zip(parts, self.descends, strict=True)
        )


class GroupOrder:
    """The order of elements of several inputs: by key, then by input, then by the sort keys of the input.

    The key that is ordered is (key, input, sort keys).
    """

    def __init__(self, orders: tuple[SortOrder | None, ...]) -> None:
        self.orders = orders

    def __call__(self, key: tuple[Any, int, tuple[Any, ...]]) -> tuple[Any, ...]:
        group, side, parts = key
        order = self.orders[side]
        return (*key_order(group), side, *(order(parts) if order is not None else ()))
