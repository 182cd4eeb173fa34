"""Calls of aggregate functions, over groups and over windows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.table.logical.rex import Frame, Literal, Rex
from penstock.table.sql.bind.placeholders import Aggregated, Keyed, Spanned
from penstock.table.sql.parse.problems import invalid, with_place
from penstock.table.sql.parse.syntax import Bound, CastTo, Constant, Invoke, Node, Ordering, Window
from penstock.table.types.data_types import (
    DataType,
    DateType,
    DayTimeIntervalType,
    DoubleType,
    IntegralType,
    IntType,
    LocalZonedTimestampType,
    NullType,
    NumericType,
    TimestampType,
    TimeType,
)

if TYPE_CHECKING:
    from penstock.table.sql.bind.bind_expressions import ExpressionBinder

_NEVER_NULL = {"COUNT", "COLLECT", "APPROX_COUNT_DISTINCT", "JSON_OBJECTAGG", "JSON_ARRAYAGG"}
_WITHOUT_FRAME = {"ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE", "PERCENT_RANK", "CUME_DIST", "LAG", "LEAD"}
_SPREADS = {"VAR_POP", "VAR_SAMP", "VARIANCE", "STDDEV_POP", "STDDEV_SAMP", "STDDEV"}
_ORDERED_SETS = {"PERCENTILE_CONT", "PERCENTILE_DISC"}


def bind_aggregate(binder: ExpressionBinder, node: Invoke, name: str, own: Any) -> Rex:
    """Return a placeholder for the value of the function. A node below computes the value."""
    if node.over is None and name in _WITHOUT_FRAME:
        raise invalid(node.at, f"{name} needs an OVER clause")
    if node.over is None:
        inside = "inside of another aggregate expression"
        return _call(replace(binder, aggregates=inside), node, name, own)
    if node.filter is not None:
        raise invalid(node.filter.at, "OVER must be applied to an aggregate function; it cannot have a FILTER")
    call = _call(_inside_of_over(binder), node, name, own)
    if name in _SPREADS and isinstance(call.type, IntegralType) and not node.distinct:
        return binder.bind(_spread(node, name, call.type))
    if name in _WITHOUT_FRAME and not window_of(binder, node).order:
        raise invalid(node.at, f"{name} needs an ORDER BY in its OVER clause")
    return _span(binder, node, call)


def _spread(node: Invoke, name: str, kind: DataType) -> Node:
    """Return variance or deviation over a window of whole numbers, from sums of the argument's type."""
    at, (value,) = node.at, node.args

    def sum_of(*factors: Node) -> Node:
        return replace(node, name="SUM", args=(factors[0] if len(factors) == 1 else Invoke(at, "*", factors),))

    count: Node = CastTo(at, replace(node, name="COUNT"), kind)
    mean = Invoke(at, "/", (Invoke(at, "*", (sum_of(value), sum_of(value))), count))
    zero, one = (Constant(at, IntType(False), number, str(number)) for number in (0, 1))
    divisor = count if name.endswith("_POP") else Invoke(at, "NULLIF", (Invoke(at, "-", (count, one)), zero))
    variance = Invoke(at, "/", (Invoke(at, "-", (sum_of(value, value), mean)), divisor))
    half = Constant(at, DoubleType(False), 0.5, "0.5")
    return CastTo(at, Invoke(at, "POWER", (variance, half)) if name.startswith("STDDEV") else variance, kind)


def _inside_of_over(binder: ExpressionBinder) -> ExpressionBinder:
    return replace(binder, spans="inside of another OVER")


def _call(binder: ExpressionBinder, node: Invoke, name: str, own: Any) -> Aggregated:
    if node.star and name != "COUNT":
        raise invalid(node.at, f"{name}(*) has no meaning; only COUNT can be asked for *")
    if node.order and name not in {*_ORDERED_SETS, "ARRAY_AGG"}:
        raise invalid(node.at, f"{name} must not have an ORDER BY or WITHIN GROUP; values come in the order of arrival")
    args = binder.all(node.args)
    condition = binder.condition(node.filter, "FILTER") if node.filter is not None else None
    if name == "LISTAGG" and own is None and not all(map(_is_fixed, args[1:])):
        raise invalid(node.at, "the separator of LISTAGG must be a literal")
    kind = _type(binder, node, name, own, args)
    if node.over is None and (binder.total or condition is not None):
        kind = kind if name in _NEVER_NULL else kind.nullable()
    columns, literals = (args, ()) if own is not None else _split(name, args)
    order = sort_keys(binder, node.order) if name in _ORDERED_SETS else ()
    return Aggregated(kind, name, columns, node.distinct, condition, literals, order, node.ignore_nulls, own)


def _type(binder: ExpressionBinder, node: Invoke, name: str, own: Any, args: tuple[Rex, ...]) -> DataType:
    if own is not None:
        kind: DataType = own.result_type
        return kind
    if not binder.functions.is_aggregate(name):
        raise invalid(node.at, f"{name} is no aggregate function and takes no OVER clause")
    types = [arg.type for arg in args]
    return with_place(node.at, lambda: binder.functions.resolve_aggregate(name, types, node.distinct))


def _split(name: str, args: tuple[Rex, ...]) -> tuple[tuple[Rex, ...], tuple[Any, ...]]:
    """Split arguments into columns and constants. The first argument is a constant only if all arguments are."""
    if name == "COUNT":
        constant = all(isinstance(arg, Literal) and arg.value is not None for arg in args)
        return (() if constant else args), ()
    first = 0 if name in {"NTILE"} else 1
    end = next((index for index in range(first, len(args)) if all(map(_is_fixed, args[index:]))), len(args))
    return args[:end], tuple(arg.value for arg in args[end:] if isinstance(arg, Literal))


def _is_fixed(arg: Rex) -> bool:
    return isinstance(arg, Literal)


# --- orders and windows ---
def sort_keys(binder: ExpressionBinder, order: tuple[Ordering, ...]) -> tuple[Keyed, ...]:
    """Return the sort keys of an ORDER BY."""
    return tuple(one_keyed(binder.bind(one.value), one) for one in order)


def one_keyed(value: Rex, one: Ordering) -> Keyed:
    """Return a sort key. NULL is the smallest value, so it comes first unless the order is descending."""
    return Keyed(value, one.descending, not one.descending if one.nulls_first is None else one.nulls_first)


def window_of(binder: ExpressionBinder, node: Invoke) -> Window:
    """Return the window of OVER, merged with the named window on which it is based.

    The frame is inherited, as in Flink.
    """
    over = node.over
    if isinstance(over, str):
        return _window_by_name(binder, over, node)
    assert over is not None
    if over.base is None:
        return over
    base = _window_by_name(binder, over.base, node)
    if over.partition or (over.order and base.order):
        raise invalid(over.at, f"a window based on '{over.base}' cannot have a PARTITION BY or a second ORDER BY")
    return replace(base, at=over.at, order=over.order or base.order)


def _window_by_name(binder: ExpressionBinder, name: str, node: Invoke) -> Window:
    if name not in binder.windows:
        raise invalid(node.at, f"Window '{name}' not found; the query has {sorted(binder.windows) or 'none'}")
    window = binder.windows[name]
    return window_of(binder, replace(node, over=window)) if window.base else window


def _span(binder: ExpressionBinder, node: Invoke, call: Aggregated) -> Rex:
    window = window_of(binder, node)
    inner = _inside_of_over(binder)
    frame, order = _frame(inner, window, call.function), sort_keys(inner, window.order)
    if not frame.rows and (frame.start or frame.end):
        _check_range(inner, window, order)
    return Spanned(call.type, call, inner.all(window.partition), order, frame)


def _check_range(binder: ExpressionBinder, window: Window, order: tuple[Keyed, ...]) -> None:
    """Check that RANGE with a distance has one order column: a number for numbers, a moment for intervals."""
    if len(order) != 1:
        raise invalid(window.at, "RANGE clause cannot be used with compound ORDER BY clause")
    bounds = [bound.offset for bound in (window.start, window.end) if bound is not None and bound.offset is not None]
    numbers = all(isinstance(binder.bind(offset).type, NumericType) for offset in bounds)
    fitting = NumericType if numbers else (DateType, TimeType, TimestampType, LocalZonedTimestampType)
    if not isinstance(order[0].value.type, fitting):
        found = order[0].value.type.summary()
        raise invalid(window.at, f"Data Type mismatch between ORDER BY and RANGE clause: ORDER BY has {found}")


def _frame(binder: ExpressionBinder, window: Window, function: str) -> Frame:
    if function in _WITHOUT_FRAME:
        return Frame(True, None, 0)
    if window.rows is None or window.start is None or window.end is None:
        return Frame(False, None, 0 if window.order else None)
    frame = Frame(window.rows, _offset(binder, window, window.start), _offset(binder, window, window.end))
    if frame.start is not None and frame.end is not None and frame.start > frame.end:
        raise invalid(window.at, "the frame of the window ends before it starts")
    return frame


def _offset(binder: ExpressionBinder, window: Window, bound: Bound) -> int | None:
    if bound.kind == "CURRENT ROW":
        return 0
    if bound.offset is None:
        return None
    rex = binder.bind(bound.offset)
    literal = rex if isinstance(rex, Literal) else binder.functions.constant(rex)
    wanted: tuple[type[DataType], ...] = (IntegralType,) if window.rows else (IntegralType, DayTimeIntervalType)
    if literal is None or literal.value is None or isinstance(literal.type, NullType):
        raise invalid(bound.offset.at, "the bound of a window must be a constant")
    if not isinstance(literal.type, wanted) or literal.value < 0:
        raise invalid(
            bound.offset.at, f"{bound.kind} takes a number of rows or, with RANGE, an interval, not {literal}"
        )
    return -int(literal.value) if bound.kind == "PRECEDING" else int(literal.value)
