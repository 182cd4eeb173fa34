"""The choice of a fold for each aggregate call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from penstock.errors import TableException
from penstock.table.logical.nodes import Columns
from penstock.table.logical.rex import AggregateCall
from penstock.table.operators.aggregate.functions.fold import Fold
from penstock.table.operators.aggregate.functions.json_folds import JsonArrayAgg, JsonObjectAgg, Percentile
from penstock.table.operators.aggregate.functions.number_folds import (
    Avg,
    Count,
    Extreme,
    ExtremeOfChanges,
    Spread,
    Sum,
    SumOfInserts,
    SumOrZero,
)
from penstock.table.operators.aggregate.functions.ordered_folds import (
    ArrayAgg,
    Collect,
    Distinct,
    FirstOfInserts,
    FirstValue,
    LastOfInserts,
    LastValue,
    ListAgg,
    SingleValue,
)
from penstock.table.operators.aggregate.functions.user_aggregates import ColumnsAggregate, UserAggregate
from penstock.table.types import data_types as t

Make = Callable[[AggregateCall, Sequence[t.DataType]], Fold]
_SUMS: dict[str, Callable[[AggregateCall, Sequence[t.DataType], bool], Fold]] = {
    "SUM": Sum,
    "AVG": Avg,
    "COUNT": Count,
    "$SUM0": SumOrZero,
    "SUM0": SumOrZero,
}
_BY_ROW: dict[str, Make] = {
    "LISTAGG": ListAgg,
    "STRING_AGG": ListAgg,
    "ARRAY_AGG": ArrayAgg,
    "COLLECT": Collect,
    "JSON_ARRAYAGG": JsonArrayAgg,
    "JSON_OBJECTAGG": JsonObjectAgg,
    "PERCENTILE": Percentile,
    "SINGLE_VALUE": SingleValue,
    **dict.fromkeys(("VAR_POP", "VAR_SAMP", "VARIANCE", "STDDEV_POP", "STDDEV_SAMP", "STDDEV"), Spread),
}
_WITHOUT_EFFECT = {"MIN", "MAX"}
"""Aggregates for which DISTINCT changes nothing."""


def folds_for(calls: Sequence[AggregateCall], columns: Columns, signed: bool) -> list[Fold]:
    """Return the folds of calls over an input. `signed` is True if its rows can be retracted."""
    return [fold_for(call, [columns[index].type for index in call.args], signed) for call in calls]


def fold_for(call: AggregateCall, types: Sequence[t.DataType], signed: bool) -> Fold:
    """Return the fold of a call whose arguments have these types. Raise TableException for an unknown function."""
    if call.function == "APPROX_COUNT_DISTINCT":
        call = replace(call, function="COUNT", distinct=True)
    made = _plain(call, types, signed)
    return Distinct(made) if call.distinct and call.function not in _WITHOUT_EFFECT else made


def _plain(call: AggregateCall, types: Sequence[t.DataType], signed: bool) -> Fold:
    name = call.function
    if call.udf is not None:
        return ColumnsAggregate(call, types) if call.udf.vectorised else UserAggregate(call, types)
    if name == "SUM" and not signed and not call.distinct:
        return SumOfInserts(call, types, signed)
    if name in _SUMS:
        return _SUMS[name](call, types, signed)
    if name in {"MIN", "MAX"}:
        return ExtremeOfChanges(call, types) if signed or not _has_order(types[0]) else Extreme(call, types, signed)
    if name == "FIRST_VALUE":
        return FirstValue(call, types) if signed else FirstOfInserts(call, types)
    if name == "LAST_VALUE":
        return LastValue(call, types) if signed else LastOfInserts(call, types)
    if name in _BY_ROW:
        return _BY_ROW[name](call, types)
    known = ", ".join(sorted([*_SUMS, *_BY_ROW, "MIN", "MAX", "FIRST_VALUE", "LAST_VALUE"]))
    raise TableException(f"the aggregate function {name} is not supported; allowed are {known}")


def _has_order(declared: t.DataType) -> bool:
    """Return True if Arrow finds the least and the greatest value of this type."""
    return not isinstance(declared, t.DayTimeIntervalType | t.BinaryType | t.VarBinaryType | t.NullType)
