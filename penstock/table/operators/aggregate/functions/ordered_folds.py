"""Aggregates that depend on single rows and their order: LISTAGG, COLLECT, ARRAY_AGG, FIRST_VALUE, LAST_VALUE."""

from __future__ import annotations

from typing import Any

from penstock.errors import TableException
from penstock.table.operators.aggregate.functions.fold import Fold


class Listed(Fold):
    """Keeps the values in the order of their arrival. A retraction removes the first equal value.

    The accumulator is a list of (value, further arguments...).
    """

    keeps_nulls = False

    def new(self) -> list[Any]:
        return []

    def add(self, accumulator: list[Any], args: tuple[Any, ...], sign: int) -> list[Any]:
        if args[0] is None and not self.keeps_nulls:
            return accumulator
        if sign > 0:
            accumulator.append(args)
        elif args in accumulator:
            accumulator.remove(args)
        return accumulator

    def merge(self, accumulator: list[Any], other: list[Any]) -> list[Any]:
        return accumulator + other


class ListAgg(Listed):
    """LISTAGG: texts with a separator between them, or NULL if there is no text."""

    def value(self, accumulator: list[Any]) -> str | None:
        if not accumulator:
            return None
        if len(self.call.args) > 1:
            first, *rest = accumulator
            return str(first[0]) + "".join(f"{separator}{text}" for text, separator, *_ in rest)
        separator = str(self.call.literals[0]) if self.call.literals else ","
        return separator.join(str(entry[0]) for entry in accumulator)


class ArrayAgg(Listed):
    """ARRAY_AGG: the values as an array, including NULLs, or NULL if there is no row."""

    keeps_nulls = True

    def add(self, accumulator: list[Any], args: tuple[Any, ...], sign: int) -> list[Any]:
        if self.call.ignore_nulls and args[0] is None:
            return accumulator
        return super().add(accumulator, args, sign)

    def value(self, accumulator: list[Any]) -> Any:
        return tuple(entry[0] for entry in accumulator) or None


class Collect(Fold):
    """COLLECT: the values as a multiset."""

    def new(self) -> dict[Any, int]:
        return {}

    def add(self, accumulator: dict[Any, int], args: tuple[Any, ...], sign: int) -> dict[Any, int]:
        if args[0] is not None:
            count = accumulator.get(args[0], 0) + sign
            if count:
                accumulator[args[0]] = count
            else:
                accumulator.pop(args[0], None)
        return accumulator

    def merge(self, accumulator: dict[Any, int], other: dict[Any, int]) -> dict[Any, int]:
        for value, count in other.items():
            accumulator[value] = accumulator.get(value, 0) + count
        return accumulator

    def value(self, accumulator: dict[Any, int]) -> Any:
        return tuple(accumulator.items()) or None


class FirstValue(Listed):
    """FIRST_VALUE: the first value that is not NULL."""

    def value(self, accumulator: list[Any]) -> Any:
        return accumulator[0][0] if accumulator else None


class LastValue(Listed):
    """LAST_VALUE: the last value that is not NULL."""

    def value(self, accumulator: list[Any]) -> Any:
        return accumulator[-1][0] if accumulator else None


class FirstOfInserts(Fold):
    """FIRST_VALUE of rows that are never retracted, which keeps one value. The accumulator is () or (value,)."""

    def new(self) -> tuple[Any, ...]:
        return ()

    def add(self, accumulator: tuple[Any, ...], args: tuple[Any, ...], sign: int) -> tuple[Any, ...]:
        return accumulator if accumulator or args[0] is None else (args[0],)

    def merge(self, accumulator: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        return accumulator or other

    def value(self, accumulator: tuple[Any, ...]) -> Any:
        return accumulator[0] if accumulator else None


class LastOfInserts(FirstOfInserts):
    """LAST_VALUE of rows that are never retracted."""

    def add(self, accumulator: tuple[Any, ...], args: tuple[Any, ...], sign: int) -> tuple[Any, ...]:
        return accumulator if args[0] is None else (args[0],)

    def merge(self, accumulator: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        return other or accumulator


class SingleValue(Fold):
    """The value of a subquery that may have at most one row."""

    def new(self) -> tuple[Any, int]:
        return None, 0

    def add(self, accumulator: tuple[Any, int], args: tuple[Any, ...], sign: int) -> tuple[Any, int]:
        value, count = accumulator
        if sign > 0:
            return args[0], count + 1
        return (None if count <= 1 else value), count - 1

    def value(self, accumulator: tuple[Any, int]) -> Any:
        if accumulator[1] > 1:
            raise TableException(
                "SingleValueAggFunction received more than one element: a scalar subquery returned more than one row"
            )
        return accumulator[0]


class Distinct(Fold):
    """Another aggregate over the different values alone. The accumulator is [counts of values, inner accumulator]."""

    def __init__(self, inner: Fold) -> None:
        super().__init__(inner.call, inner.types)
        self.inner = inner
        self.in_any_order = inner.in_any_order

    def open(self, context: Any) -> None:
        self.inner.open(context)

    def close(self) -> None:
        self.inner.close()

    def new(self) -> list[Any]:
        return [{}, self.inner.new()]

    def add(self, accumulator: list[Any], args: tuple[Any, ...], sign: int) -> list[Any]:
        seen: dict[Any, int] = accumulator[0]
        before = seen.get(args, 0)
        now = before + sign
        if now:
            seen[args] = now
        else:
            del seen[args]
        if (before > 0) is not (now > 0):
            accumulator[1] = self.inner.add(accumulator[1], args, sign)
        return accumulator

    def merge(self, accumulator: list[Any], other: list[Any]) -> list[Any]:
        for args, count in other[0].items():
            before = accumulator[0].get(args, 0)
            accumulator[0][args] = before + count
            if before <= 0 < before + count:
                accumulator[1] = self.inner.add(accumulator[1], args, 1)
        return accumulator

    def value(self, accumulator: list[Any]) -> Any:
        return self.inner.value(accumulator[1])

    def rows(self, batch: Any) -> list[tuple[Any, ...]]:
        return self.inner.rows(batch)

    def column(self, values: Any) -> Any:
        return self.inner.column(values)
