"""Aggregate and window functions, and the types of their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.errors import ValidationException
from penstock.table.functions.typing.coercion import TEXTS, common_type, with_nullability
from penstock.table.types import data_types as t

Types = Sequence[t.DataType]


class _Unfit(Exception):
    pass


def _need(held: bool, wanted: str) -> None:
    if not held:
        raise _Unfit(wanted)


def _number(kinds: Types) -> t.DataType:
    _need(len(kinds) == 1 and isinstance(kinds[0], t.NumericType | t.NullType), "a number")
    return kinds[0]


def _sum(kinds: Types) -> t.DataType:
    kind = _number(kinds)
    return t.DecimalType(38, kind.scale) if isinstance(kind, t.DecimalType) else kind.nullable()


def _average(kinds: Types) -> t.DataType:
    kind = _number(kinds)
    return t.DecimalType(38, max(kind.scale, 6)) if isinstance(kind, t.DecimalType) else kind.nullable()


def _type_with_order(kinds: Types) -> t.DataType:
    _need(len(kinds) == 1 and not isinstance(kinds[0], t.MapType | t.MultisetType), "a value with an order")
    return kinds[0].nullable()


def _count(kinds: Types) -> t.DataType:
    return t.BigIntType(False)


def _texts(kinds: Types) -> t.DataType:
    texts = all(isinstance(kind, (*TEXTS, t.NullType)) for kind in kinds)
    _need(1 <= len(kinds) <= 2 and texts, "a text, and a separator")
    return t.DataTypes.STRING() if isinstance(kinds[0], t.NullType) else kinds[0].nullable()


def _one(kinds: Types) -> t.DataType:
    _need(len(kinds) == 1, "a value")
    return kinds[0].nullable()


def _collect(kinds: Types) -> t.DataType:
    _need(len(kinds) == 1, "a value")
    return t.MultisetType(kinds[0], False)


def _array(kinds: Types) -> t.DataType:
    _need(len(kinds) == 1, "a value")
    return t.ArrayType(kinds[0])


def _rank(kinds: Types) -> t.DataType:
    return t.BigIntType(False)


def _share(kinds: Types) -> t.DataType:
    return t.DoubleType(False)


def _neighbour(kinds: Types) -> t.DataType:
    """Return the type of LAG and LEAD. Without a default there may be no neighbour, so the result may be NULL."""
    _need(1 <= len(kinds) <= 3, "a value, an offset, a default")
    if len(kinds) < 3:
        return kinds[0].nullable()
    _need(common_type([kinds[0], kinds[2]]) is not None, "a default of the value's type")
    return with_nullability(kinds[0], kinds[0].is_nullable or kinds[2].is_nullable)


def _string(kinds: Types) -> t.DataType:
    return t.VarCharType(2000, False)


def _percentile(kinds: Types) -> t.DataType:
    _need(2 <= len(kinds) <= 3 and isinstance(kinds[0], t.NumericType | t.NullType), "a number, a share, a frequency")
    return t.ArrayType(t.DoubleType()) if isinstance(kinds[1], t.ArrayType) else t.DoubleType()


def _tile(kinds: Types) -> t.DataType:
    _need(len(kinds) == 1 and isinstance(kinds[0], t.IntegralType), "a number of tiles")
    return t.BigIntType(False)


_AGGREGATES: dict[str, Callable[[Types], t.DataType]] = {
    "COUNT": _count,
    "SUM": _sum,
    "SUM0": lambda kinds: _sum(kinds).not_null(),
    "$SUM0": lambda kinds: _sum(kinds).not_null(),
    "AVG": _average,
    "MIN": _type_with_order,
    "MAX": _type_with_order,
    "STDDEV_POP": _average,
    "STDDEV_SAMP": _average,
    "STDDEV": _average,
    "VAR_POP": _average,
    "VAR_SAMP": _average,
    "VARIANCE": _average,
    "APPROX_COUNT_DISTINCT": _count,
    "COLLECT": _collect,
    "FIRST_VALUE": _one,
    "LAST_VALUE": _one,
    "SINGLE_VALUE": _one,
    "LISTAGG": _texts,
    "ARRAY_AGG": _array,
    "JSON_OBJECTAGG": _string,
    "JSON_ARRAYAGG": _string,
    "PERCENTILE": _percentile,
    "ROW_NUMBER": _rank,
    "RANK": _rank,
    "DENSE_RANK": _rank,
    "PERCENT_RANK": _share,
    "CUME_DIST": _share,
    "NTILE": _tile,
    "LAG": _neighbour,
    "LEAD": _neighbour,
}

_TABLE_FUNCTIONS = frozenset({"UNNEST", "TUMBLE", "HOP", "CUMULATE", "SESSION", "DESCRIPTOR"})


def is_aggregate(name: str) -> bool:
    """Return True for an aggregate function, or a function that needs OVER."""
    return name.upper() in _AGGREGATES


def is_table_function(name: str) -> bool:
    """Return True for a table function of SQL."""
    return name.upper() in _TABLE_FUNCTIONS


def aggregate_names() -> list[str]:
    """Return the names of all aggregate functions."""
    return sorted(name for name in _AGGREGATES if not name.startswith("$"))


def resolve_aggregate(name: str, arg_types: Sequence[t.DataType], distinct: bool = False) -> t.DataType:
    """Return the type of an aggregate's result."""
    found = _AGGREGATES.get(name.upper())
    if found is None:
        from penstock.table.functions.typing.registry import suggestion

        raise ValidationException(f"there is no aggregate function {name}{suggestion(name, _AGGREGATES)}")
    try:
        return found(arg_types)
    except _Unfit as unfit:
        given = ", ".join(kind.as_sql() for kind in arg_types)
        raise ValidationException(f"{name.upper()} cannot be applied to ({given}): it takes {unfit}") from None
