"""The difference of two moments: in whole units (TIMESTAMPDIFF), or as an interval, written (a - b) DAY."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.table.functions.library.temporal import MILLIS, MONTHS, as_numpy, later_months
from penstock.table.functions.library.zones import local
from penstock.table.functions.moment import Moment
from penstock.table.functions.typing.registry import Kernel, Unfit, Value, register
from penstock.table.functions.typing.result_types import MOMENT, WORD, signature
from penstock.table.logical.rex import Call, Literal, Rex
from penstock.table.types import data_types as t
from penstock.table.types.arrow_forms import arrow_type

Inferred = tuple[tuple[Rex, ...], t.DataType]


def _unit(args: tuple[Rex, ...]) -> str:
    first = args[0]
    assert isinstance(first, Literal)
    return str(first.value).upper()


def _check(args: tuple[Rex, ...], result: t.DataType, *more: str) -> Inferred:
    fitted, kind = signature(WORD, MOMENT, MOMENT, result=result)(args)
    if _unit(fitted) not in (*MONTHS, *MILLIS, *more):
        raise Unfit(f"a unit of time: {', '.join([*MONTHS, *MILLIS])}")
    return fitted, kind


def _count_types(args: tuple[Rex, ...]) -> Inferred:
    return _check(args, t.IntType(), "MICROSECOND")


def _count(call: Call) -> Kernel:
    """Return the kernel for whole units from the first moment to the second."""
    unit = _unit(call.args)
    size = MONTHS.get(unit) or (1 if unit == "MICROSECOND" else MILLIS[unit] * 1000)

    def kernel(rows: int, moment: Moment, word: str, first: Value, second: Value) -> Value:
        missing, passed = _between(first, second, rows, moment, unit in MONTHS)
        return _fill(missing, np.sign(passed) * (np.abs(passed) // size), pa.int32())

    return kernel


def _interval_types(args: tuple[Rex, ...]) -> Inferred:
    months = len(args) == 3 and _unit(args) in MONTHS
    return _check(args, t.YearMonthIntervalType() if months else t.DayTimeIntervalType())


def _interval(call: Call) -> Kernel:
    """Return the kernel for the interval from the second moment to the first: full months, or milliseconds.

    The unit decides only between months and milliseconds.
    """
    months = _unit(call.args) in MONTHS
    size, form = 1 if months else 1000, arrow_type(call.type)

    def kernel(rows: int, moment: Moment, word: str, first: Value, second: Value) -> Value:
        missing, passed = _between(second, first, rows, moment, months)
        return _fill(missing, passed // size, form)

    return kernel


def _between(first: Value, second: Value, rows: int, moment: Moment, months: bool) -> tuple[Value, Any]:
    """Return a mask of missing moments, and full months or microseconds from the first moment to the second."""
    columns = [value if isinstance(value, pa.Array) else pa.repeat(value, rows) for value in (first, second)]
    missing = pc.or_(pc.is_null(columns[0]), pc.is_null(columns[1]))
    start, end = (as_numpy(local(column, moment.zone)) for column in columns)
    return missing, _months(start, end) if months else (end - start).astype("timedelta64[us]").astype(np.int64)


def _months(start: Any, end: Any) -> Any:
    """Return full months.

    The last month is not full if the earlier moment plus all months is after the later moment.
    """
    backward = start > end
    first, last = np.where(backward, end, start), np.where(backward, start, end)
    months = (last.astype("datetime64[M]") - first.astype("datetime64[M]")).astype(np.int64)
    months -= later_months(first, months) > last
    return np.where(backward, -months, months)


def _fill(missing: Value, numbers: Any, form: pa.DataType) -> Value:
    whole = pa.array(numbers, pa.int64())
    narrow = whole.cast(pa.int32(), safe=False) if form == pa.int32() else whole.cast(form)
    return pc.if_else(missing, pa.scalar(None, form), narrow)


def register_all() -> None:
    """Register the functions of this module."""
    register("TIMESTAMPDIFF", _count_types, _count, moment=True)
    register("INTERVAL BETWEEN", _interval_types, _interval, moment=True)
