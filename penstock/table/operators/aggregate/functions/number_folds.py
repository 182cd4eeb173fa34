"""The folds of COUNT, SUM, AVG, MIN, MAX, variance and standard deviation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from operator import add
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.table.operators.aggregate.functions.fold import Fold, Part, VectorFold
from penstock.table.operators.base.query_batches import column_of
from penstock.table.types import data_types as t
from penstock.table.types.arrow_forms import arrow_type

_EXACT = Context(prec=76, rounding=ROUND_HALF_UP)
_BITS: dict[type[t.DataType], int] = {t.TinyIntType: 8, t.SmallIntType: 16, t.IntType: 32, t.BigIntType: 64}


def wrap_number(number: int, declared: t.DataType) -> int:
    """Return a whole number in the range of its type. A number that is too large wraps around."""
    half = 1 << (_BITS.get(type(declared), 64) - 1)
    return (number + half) % (2 * half) - half


def is_whole(declared: t.DataType) -> bool:
    """Return True for TINYINT, SMALLINT, INT and BIGINT."""
    return type(declared) in _BITS


class Count(VectorFold):
    """COUNT(*) and COUNT(x)."""

    def new(self) -> int:
        return 0

    def parts(self, batch: pa.RecordBatch, signs: pa.Array | None) -> list[Part]:
        counted = self._column_to_count(batch)
        if signs is None:
            return [Part(counted, "count_all" if counted is None else "count")]
        if counted is None:
            return [Part(signs, "sum")]
        return [Part(pc.if_else(counted.is_valid(), signs, 0), "sum")]

    def _column_to_count(self, batch: pa.RecordBatch) -> pa.Array | None:
        """Return a column that is NULL in rows that do not count, or None if all rows count."""
        columns = [batch.column(index) for index in self.call.args]
        if self.call.filter is not None:
            kept = batch.column(self.call.filter).fill_null(False)
            columns.append(pc.if_else(kept, kept, pa.scalar(None, pa.bool_())))
        if len(columns) <= 1:
            return columns[0] if columns else None
        whole = columns[0].is_valid()
        for column in columns[1:]:
            whole = pc.and_(whole, column.is_valid())
        return pc.if_else(whole, whole, pa.scalar(None, pa.bool_()))

    def part_types(self) -> list[pa.DataType]:
        return [pa.int64()]

    def fold_all(self, accumulators: Sequence[int], parts: Sequence[Sequence[Any]]) -> list[int]:
        return list(map(add, accumulators, parts[0]))

    def unfold(self, accumulators: Sequence[int]) -> list[pa.Array]:
        return [pa.array(accumulators, pa.int64())]

    def result(self, parts: Sequence[pa.Array]) -> pa.Array:
        return parts[0]

    def begin_all(self, parts: Sequence[Sequence[Any]], count: int) -> list[int]:
        return list(parts[0])

    def values(self, accumulators: Sequence[int]) -> list[int]:
        return list(accumulators)

    def add(self, accumulator: int, args: tuple[Any, ...], sign: int) -> int:
        return accumulator if None in args else accumulator + sign

    def merge(self, accumulator: int, other: int) -> int:
        return accumulator + other

    def value(self, accumulator: int) -> int:
        return accumulator


class Sum(VectorFold):
    """SUM, which is NULL until a row has a value. The accumulator is (sum, number of values)."""

    def new(self) -> tuple[Any, int]:
        return 0, 0

    def parts(self, batch: pa.RecordBatch, signs: pa.Array | None) -> list[Part]:
        column = self.argument(batch)
        if pa.types.is_duration(column.type):
            column = column.cast(pa.int64())
        if signs is None:
            return [Part(column, "sum"), Part(column, "count")]
        taken = pc.equal(signs, -1)
        wide = column if pa.types.is_decimal(column.type) else column.cast(_wide(column.type))
        return [
            Part(pc.if_else(taken, pc.negate(wide), wide), "sum"),
            Part(pc.if_else(column.is_valid(), signs, 0), "sum"),
        ]

    def part_types(self) -> list[pa.DataType]:
        kind = arrow_type(self.types[0])
        if pa.types.is_decimal(kind):
            return [pa.decimal128(38, kind.scale), pa.int64()]
        return [_wide(kind), pa.int64()]

    def fold_all(self, accumulators: Sequence[Any], parts: Sequence[Sequence[Any]]) -> list[Any]:
        return [
            (own[0] if total is None else own[0] + total, own[1] + count)
            for own, total, count in zip(accumulators, *parts, strict=True)
        ]

    def unfold(self, accumulators: Sequence[tuple[Any, int]]) -> list[pa.Array]:
        totals, counts = self.part_types()
        return [
            totals_of([own[0] for own in accumulators], totals),
            pa.array([own[1] for own in accumulators], counts),
        ]

    def result(self, parts: Sequence[pa.Array]) -> pa.Array:
        there = pc.not_equal(parts[1], 0)
        return as_declared(pc.if_else(there, parts[0], pa.scalar(None, parts[0].type)), self.arrow_type)

    def begin_all(self, parts: Sequence[Sequence[Any]], count: int) -> list[Any]:
        totals = parts[0] if None not in parts[0] else [0 if total is None else total for total in parts[0]]
        return list(zip(totals, parts[1], strict=True))

    def add(self, accumulator: tuple[Any, int], args: tuple[Any, ...], sign: int) -> tuple[Any, int]:
        value = args[0]
        return accumulator if value is None else (accumulator[0] + sign * value, accumulator[1] + sign)

    def merge(self, accumulator: tuple[Any, int], other: tuple[Any, int]) -> tuple[Any, int]:
        return accumulator[0] + other[0], accumulator[1] + other[1]

    def value(self, accumulator: tuple[Any, int]) -> Any:
        total, count = accumulator
        if not count:
            return None
        return wrap_number(int(total), self.call.type) if is_whole(self.call.type) else total

    def values(self, accumulators: Sequence[tuple[Any, int]]) -> list[Any]:
        found = [own[0] if own[1] else None for own in accumulators]
        return wrap_numbers(found, self.call.type) if is_whole(self.call.type) else found


class SumOfInserts(VectorFold):
    """SUM of rows that are never retracted. The accumulator is the sum, or None until a row has a value."""

    def new(self) -> Any:
        return None

    def parts(self, batch: pa.RecordBatch, signs: pa.Array | None) -> list[Part]:
        column = self.argument(batch)
        return [Part(column.cast(pa.int64()) if pa.types.is_duration(column.type) else column, "sum")]

    def part_types(self) -> list[pa.DataType]:
        kind = arrow_type(self.types[0])
        return [pa.decimal128(38, kind.scale) if pa.types.is_decimal(kind) else _wide(kind)]

    def fold_all(self, accumulators: Sequence[Any], parts: Sequence[Sequence[Any]]) -> list[Any]:
        return [
            own if part is None else part if own is None else own + part
            for own, part in zip(accumulators, parts[0], strict=True)
        ]

    def unfold(self, accumulators: Sequence[Any]) -> list[pa.Array]:
        return [totals_of(accumulators, self.part_types()[0])]

    def result(self, parts: Sequence[pa.Array]) -> pa.Array:
        return as_declared(parts[0], self.arrow_type)

    def begin_all(self, parts: Sequence[Sequence[Any]], count: int) -> list[Any]:
        return list(parts[0])

    def add(self, accumulator: Any, args: tuple[Any, ...], sign: int) -> Any:
        return accumulator if args[0] is None else args[0] if accumulator is None else accumulator + args[0]

    def merge(self, accumulator: Any, other: Any) -> Any:
        return self.add(accumulator, (other,), 1)

    def value(self, accumulator: Any) -> Any:
        return self.values([accumulator])[0]

    def values(self, accumulators: Sequence[Any]) -> list[Any]:
        return wrap_numbers(accumulators, self.call.type) if is_whole(self.call.type) else list(accumulators)


def wrap_numbers(numbers: Sequence[Any], declared: t.DataType) -> list[Any]:
    """Return whole numbers, or None, in the range of their type. In most cases they fit already."""
    half = 1 << (_BITS[type(declared)] - 1)
    there = [number for number in numbers if number is not None]
    if not there or (min(there) >= -half and max(there) < half):
        return list(numbers)
    return [None if number is None else wrap_number(int(number), declared) for number in numbers]


def totals_of(sums: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return sums as a column. Whole numbers that are too large wrap around, as they do in Arrow."""
    return pa.array(wrap_numbers(sums, t.BigIntType()) if pa.types.is_integer(kind) else sums, kind)


def as_declared(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return sums or quotients in the type of the result. Whole numbers wrap around."""
    return column if column.type == kind else column.cast(kind, safe=False)


class SumOrZero(Sum):
    """A sum that is 0 if no row has a value."""

    def value(self, accumulator: tuple[Any, int]) -> Any:
        found = super().value(accumulator)
        return 0 if found is None else found

    def values(self, accumulators: Sequence[tuple[Any, int]]) -> list[Any]:
        return [0 if found is None else found for found in super().values(accumulators)]

    def result(self, parts: Sequence[pa.Array]) -> pa.Array:
        found = super().result(parts)
        return found.fill_null(pa.scalar(0).cast(found.type)) if found.null_count else found


class Avg(Sum):
    """AVG in the type of its argument. Quotients of whole numbers are truncated."""

    def value(self, accumulator: tuple[Any, int]) -> Any:
        total, count = accumulator
        return None if not count else _quotient(total, count, self.call.type)

    def values(self, accumulators: Sequence[tuple[Any, int]]) -> list[Any]:
        return [self.value(accumulator) for accumulator in accumulators]

    def result(self, parts: Sequence[pa.Array]) -> pa.Array:
        if isinstance(self.call.type, t.DecimalType):  # Arrow's division has fewer decimal places
            return VectorFold.result(self, parts)
        counts = pc.if_else(pc.not_equal(parts[1], 0), parts[1], pa.scalar(None, parts[1].type))
        return as_declared(pc.divide(parts[0], counts.cast(parts[0].type)), self.arrow_type)


def _quotient(total: Any, count: Any, declared: t.DataType) -> Any:
    if is_whole(declared):
        return wrap_number(_divide(int(total), int(count)), declared)
    if isinstance(declared, t.DecimalType):
        return scale_decimal(_EXACT.divide(Decimal(total), Decimal(count)), declared)
    return total / count


def _divide(number: int, by: int) -> int:
    """Divide, and truncate toward zero."""
    result = abs(number) // abs(by)
    return result if (number < 0) == (by < 0) else -result


def scale_decimal(number: Decimal, declared: t.DecimalType, rounding: str = ROUND_HALF_UP) -> Decimal:
    """Round a decimal to the scale of its type."""
    return number.quantize(Decimal(1).scaleb(-declared.scale), rounding, _EXACT)


def _wide(kind: pa.DataType) -> pa.DataType:
    return pa.float64() if pa.types.is_floating(kind) else pa.int64()


class Spread(Fold):
    """VAR_POP, VAR_SAMP, STDDEV_POP and STDDEV_SAMP, in the arithmetic of the argument's type."""

    in_any_order = True

    def new(self) -> tuple[Any, Any, int]:
        return 0, 0, 0

    def add(self, accumulator: Any, args: tuple[Any, ...], sign: int) -> Any:
        value = args[0]
        if value is None:
            return accumulator
        total, squares, count = accumulator
        return total + sign * value, squares + sign * value * value, count + sign

    def merge(self, accumulator: Any, other: Any) -> Any:
        return tuple(one + two for one, two in zip(accumulator, other, strict=True))

    def value(self, accumulator: Any) -> Any:
        total, squares, count = accumulator
        declared, name = self.call.type, self.call.function
        divisor = count - 1 if name in {"VAR_SAMP", "VARIANCE", "STDDEV_SAMP", "STDDEV"} else count
        if count < 1 or divisor < 1:
            return None
        if is_whole(declared):
            variance: Any = _divide(squares * count - total * total, count * divisor)
            return wrap_number(int(math.sqrt(max(variance, 0))) if name.startswith("STDDEV") else variance, declared)
        if isinstance(declared, t.DecimalType):
            exact = _EXACT.divide(squares - _EXACT.divide(total * total, Decimal(count)), Decimal(divisor))
            return scale_decimal(exact.sqrt(_EXACT) if name.startswith("STDDEV") else exact, declared)
        variance = max((squares - total * total / count) / divisor, 0.0)
        return math.sqrt(variance) if name.startswith("STDDEV") else variance


class Extreme(VectorFold):
    """MIN and MAX of rows that are never retracted."""

    @property
    def _better(self) -> Any:
        return min if self.call.function == "MIN" else max

    def new(self) -> Any:
        return None

    def parts(self, batch: pa.RecordBatch, signs: pa.Array | None) -> list[Part]:
        return [Part(self.argument(batch), "min" if self.call.function == "MIN" else "max")]

    def part_types(self) -> list[pa.DataType]:
        return [arrow_type(self.types[0])]

    def functions(self) -> list[str]:
        return [self.call.function.lower()]

    def fold_all(self, accumulators: Sequence[Any], parts: Sequence[Sequence[Any]]) -> list[Any]:
        better = self._better
        return [
            own if part is None else part if own is None else better(own, part)
            for own, part in zip(accumulators, parts[0], strict=True)
        ]

    def begin_all(self, parts: Sequence[Sequence[Any]], count: int) -> list[Any]:
        return list(parts[0])

    def add(self, accumulator: Any, args: tuple[Any, ...], sign: int) -> Any:
        value = args[0]
        if value is None:
            return accumulator
        return value if accumulator is None else self._better(accumulator, value)

    def unfold(self, accumulators: Sequence[Any]) -> list[pa.Array]:
        return [column_of(accumulators, self.part_types()[0])]

    def result(self, parts: Sequence[pa.Array]) -> pa.Array:
        return as_declared(parts[0], self.arrow_type)

    def values(self, accumulators: Sequence[Any]) -> list[Any]:
        return list(accumulators)

    def merge(self, accumulator: Any, other: Any) -> Any:
        return self.add(accumulator, (other,), 1)

    def value(self, accumulator: Any) -> Any:
        return accumulator


class ExtremeOfChanges(Fold):
    """MIN and MAX of rows that can be retracted. The accumulator keeps all values and their counts."""

    in_any_order = True

    def new(self) -> dict[Any, int]:
        return {}

    def add(self, accumulator: dict[Any, int], args: tuple[Any, ...], sign: int) -> dict[Any, int]:
        value = args[0]
        if value is not None:
            count = accumulator.get(value, 0) + sign
            if count:
                accumulator[value] = count
            else:
                del accumulator[value]
        return accumulator

    def merge(self, accumulator: dict[Any, int], other: dict[Any, int]) -> dict[Any, int]:
        for value, count in other.items():
            left = accumulator.get(value, 0) + count
            if left:
                accumulator[value] = left
            else:
                del accumulator[value]
        return accumulator

    def value(self, accumulator: dict[Any, int]) -> Any:
        there = [value for value, count in accumulator.items() if count > 0]
        if not there:
            return None
        return min(there) if self.call.function == "MIN" else max(there)
