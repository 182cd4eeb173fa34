"""Translation of aggregates and OVER windows to Spark SQL, if Spark gives them the same meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.spark.sql.spark_expressions import FLOATS, is_same, type_name
from penstock.table.functions.typing.coercion import INTEGERS
from penstock.table.logical.rex import AggregateCall, OverSpec, SortKey
from penstock.table.operators.base.sort_order import nulls_first
from penstock.table.types import data_types as t

ADDED_DIGITS = 10
"""Number of digits that Spark's SUM adds to a DECIMAL argument. The extra digits prevent a silent overflow."""
RANKS = {"ROW_NUMBER": "row_number()", "RANK": "rank()", "DENSE_RANK": "dense_rank()"}

Around = Callable[[str], str]
"""Function that completes the call of an aggregate with its FILTER or OVER clause."""


def aggregate_text(call: AggregateCall, names: Sequence[str], types: Sequence[t.DataType]) -> str | None:
    """Return an aggregate of groups in Spark SQL, or None if Spark's aggregate differs.

    `names` and `types` are those of the input's columns.
    """
    if call.udf is not None or call.order or call.ignore_nulls is not None or call.literals:
        return None
    if call.distinct and not all(is_same(types[index]) for index in call.args):
        return None
    kept = "" if call.filter is None else f" FILTER (WHERE {names[call.filter]})"
    return _text(call, [names[index] for index in call.args], types, lambda made: made + kept)


def _text(call: AggregateCall, args: list[str], types: Sequence[t.DataType], around: Around) -> str | None:
    distinct = "DISTINCT " if call.distinct else ""
    if call.function == "COUNT":
        return around(f"count({distinct}{', '.join(args) or '1'})")
    make = _OF_ONE.get(call.function)
    if make is None or len(args) != 1:
        return None
    return make(call, distinct + args[0], types[call.args[0]], around)


def _sum(call: AggregateCall, arg: str, kind: t.DataType, around: Around) -> str | None:
    exact = isinstance(kind, t.DecimalType) and kind.precision + ADDED_DIGITS <= 38
    if not exact and not isinstance(kind, (*INTEGERS, *FLOATS)):
        return None
    return f"CAST({around(f'sum({arg})')} AS {type_name(call.type)})"


def _sum_or_zero(call: AggregateCall, arg: str, kind: t.DataType, around: Around) -> str | None:
    found = _sum(call, arg, kind, around)
    return None if found is None else f"coalesce({found}, CAST(0 AS {type_name(call.type)}))"


def _average(call: AggregateCall, arg: str, kind: t.DataType, around: Around) -> str | None:
    if isinstance(kind, INTEGERS):
        return f"CAST({around(f'sum({arg})')} div {around(f'count({arg})')} AS {type_name(call.type)})"
    if isinstance(kind, FLOATS):
        return f"CAST({around(f'avg({arg})')} AS {type_name(call.type)})"
    return None


def _extreme(call: AggregateCall, arg: str, kind: t.DataType, around: Around) -> str | None:
    name, arg = call.function.lower(), arg.removeprefix("DISTINCT ")
    if isinstance(kind, FLOATS):
        # For Flink, NaN is an extreme only if there are no other values. For Spark, it is the largest number.
        number = around(f"{name}(CASE WHEN isnan({arg}) THEN NULL ELSE {arg} END)")
        return f"coalesce({number}, {around(f'{name}({arg})')})"
    return around(f"{name}({arg})") if is_same(kind) else None


_OF_ONE: dict[str, Callable[[AggregateCall, str, t.DataType, Around], str | None]] = {
    "SUM": _sum,
    "$SUM0": _sum_or_zero,
    "SUM0": _sum_or_zero,
    "AVG": _average,
    "MIN": _extreme,
    "MAX": _extreme,
}


# --- OVER ---
def over_texts(window: OverSpec, names: Sequence[str], types: Sequence[t.DataType]) -> list[str] | None:
    """Return the calls of an OVER window in Spark SQL, or None if Spark cannot express one of them."""
    sorts = [types[key.index] for key in window.order]
    if not all(is_same(types[index]) for index in window.partition) or not all(map(is_same, sorts)):
        return None
    found = [_over_text(window, call, names, types) for call in window.calls]
    known = [one for one in found if one is not None]
    return known if len(known) == len(found) else None


def _over_text(window: OverSpec, call: AggregateCall, names: Sequence[str], types: Sequence[t.DataType]) -> str | None:
    if call.udf is not None or call.distinct or call.filter is not None or call.literals or call.order:
        return None
    by = f"PARTITION BY {', '.join(names[index] for index in window.partition)} " if window.partition else ""
    order = f"ORDER BY {', '.join(order_item(key, names) for key in window.order)}" if window.order else ""
    if call.function in RANKS:
        return f"CAST({RANKS[call.function]} OVER ({by}{order}) AS BIGINT)" if order else None
    frame = _frame(window)
    if frame is None or call.ignore_nulls is not None:
        return None
    over = f" OVER ({by}{order}{frame})"
    return _text(call, [names[index] for index in call.args], types, lambda made: made + over)


def order_item(key: SortKey, names: Sequence[str]) -> str:
    """Return an ORDER BY item for a sort key."""
    nulls = "FIRST" if nulls_first(key) else "LAST"
    return f"{names[key.index]} {'DESC' if key.descending else 'ASC'} NULLS {nulls}"


def _frame(window: OverSpec) -> str | None:
    frame = window.frame
    if not window.order:
        whole = frame.start is None and (frame.end is None or (frame.end == 0 and not frame.rows))
        return "" if whole else None
    if not frame.rows and any(bound for bound in (frame.start, frame.end)):
        return None  # the bounds are distances in values, which depend on the type of the sort key
    start, end = _text_of_bound(frame.start, "PRECEDING"), _text_of_bound(frame.end, "FOLLOWING")
    return f" {'ROWS' if frame.rows else 'RANGE'} BETWEEN {start} AND {end}"


def _text_of_bound(bound: int | None, open_end: str) -> str:
    if bound is None:
        return f"UNBOUNDED {open_end}"
    if bound == 0:
        return "CURRENT ROW"
    return f"{abs(bound)} {'PRECEDING' if bound < 0 else 'FOLLOWING'}"
