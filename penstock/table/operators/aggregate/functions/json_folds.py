"""The folds of JSON_ARRAYAGG, JSON_OBJECTAGG and PERCENTILE, which keep all values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.errors import TableException
from penstock.table.functions.library.json_functions import json_member, writer
from penstock.table.operators.aggregate.functions.ordered_folds import Listed
from penstock.table.types.arrow_forms import values_of


class JsonArrayAgg(Listed):
    """The values as a JSON array. NULLs are left out unless the call says NULL ON NULL."""

    keeps_nulls = True
    usual = "ABSENT ON NULL"

    def rows(self, batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
        """Return the arguments with the last one as JSON text, so that the accumulator needs no types."""
        *keys, last = [
            values_of(batch.column(index), kind) for index, kind in zip(self.call.args, self.types, strict=True)
        ]
        write = writer(self.types[-1])
        texts = [None if value is None else write(value) for value in last]
        return list(zip(*keys, texts, strict=True))

    def add(self, accumulator: list[Any], args: tuple[Any, ...], sign: int) -> list[Any]:
        absent = (self.call.literals[0] if self.call.literals else self.usual) == "ABSENT ON NULL"
        return accumulator if absent and args[-1] is None else super().add(accumulator, args, sign)

    def value(self, accumulator: list[Any]) -> str:
        return "[" + ",".join(text or "null" for (text,) in accumulator) + "]"


class JsonObjectAgg(JsonArrayAgg):
    """Keys and values as a JSON object, in the order of the keys."""

    usual = "NULL ON NULL"

    def add(self, accumulator: list[Any], args: tuple[Any, ...], sign: int) -> list[Any]:
        if args[0] is None:
            raise TableException("JSON_OBJECTAGG: a key is NULL")
        return super().add(accumulator, args, sign)

    def value(self, accumulator: list[Any]) -> str:
        members = dict(accumulator)
        return "{" + ",".join(json_member(key, members[key] or "null") for key in sorted(members)) + "}"


class Percentile(Listed):
    """The value below which a given share of the values lies, interpolated between two values.

    An array of shares gives an array of values.
    """

    def value(self, accumulator: list[Any]) -> Any:
        if not accumulator:
            return None
        last = accumulator[-1]
        fixed = self.call.literals
        share = fixed[0] if fixed and len(last) == 1 else last[1]
        values = sorted(float(entry[0]) for entry in accumulator for _ in range(self._count(entry)))
        if isinstance(share, Sequence):
            return tuple(_at(values, float(one)) for one in share)
        return _at(values, float(share))

    def _count(self, entry: tuple[Any, ...]) -> int:
        """Return the number of times that a value counts: the third argument."""
        if len(entry) > 2:
            return int(entry[2] or 0)
        return int(self.call.literals[-1]) if len(entry) + len(self.call.literals) > 2 else 1


def _at(values: list[float], share: float) -> float | None:
    if not values:
        return None
    if not 0 <= share <= 1:
        raise TableException(f"PERCENTILE: the percentage must be between 0 and 1, not {share}")
    position = share * (len(values) - 1)
    low, high = math.floor(position), math.ceil(position)
    return values[low] + (values[high] - values[low]) * (position - low)
