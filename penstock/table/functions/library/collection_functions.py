"""Functions over arrays and maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.table.functions.typing.coercion import implicitly, with_nullability
from penstock.table.functions.typing.registry import Infer, Unfit, register, rowwise
from penstock.table.functions.typing.result_types import (
    ARRAY,
    BOOLEAN,
    INTEGER,
    MAP,
    TEXT,
    alike,
    coerce,
    fits,
    same_as,
    signature,
)
from penstock.table.logical.rex import Rex
from penstock.table.types import data_types as t

Inferred = tuple[tuple[Rex, ...], t.DataType]


# --- types ---
def _with_element(result: t.DataType | None, value_counts: bool = True) -> Infer:
    """Return the rule for an array and a value of its element type. The result is the array's type, unless given.

    `value_counts` is True if a NULL value makes the result NULL.
    """

    def infer(args: tuple[Rex, ...]) -> Inferred:
        if len(args) != 2 or not isinstance(args[0].type, t.ArrayType):
            raise Unfit("(an array, a value of its elements' type)")
        array, value = args
        inner = args[0].type.element_type
        if not implicitly(value.type, inner):
            raise Unfit(f"(an array, a value that can be one of its elements, {inner.summary()})")
        element = with_nullability(inner, inner.is_nullable or value.type.is_nullable)
        kind = t.ArrayType(element, array.type.is_nullable)
        fitted = coerce(array, kind), coerce(value, element)
        has_null = array.type.is_nullable or (value_counts and value.type.is_nullable)
        return fitted, with_nullability(kind if result is None else result, has_null)

    return infer


def _same_element(args: tuple[Rex, ...]) -> Inferred:
    """Infer the array's own type. The value is only compared, and never becomes an element."""
    fitted, kind = _with_element(None)(args)
    assert isinstance(args[0].type, t.ArrayType)
    assert isinstance(kind, t.ArrayType)
    element = with_nullability(kind.element_type, args[0].type.element_type.is_nullable)
    return fitted, t.ArrayType(element, args[0].type.is_nullable)


def _arrays(least: int, most: int | None = None) -> Infer:
    """Return the rule for several arrays of one type."""

    def infer(args: tuple[Rex, ...]) -> Inferred:
        enough = least <= len(args) <= (most or len(args))
        if not enough or not all(fits(arg, ARRAY) for arg in args):
            raise Unfit("(an array, ...)")
        return alike(args)

    return infer


def _maps(args: tuple[Rex, ...]) -> Inferred:
    if not args or not all(fits(arg, MAP) for arg in args):
        raise Unfit("(a map, ...)")
    return alike(args)


def _element_of(kinds: Sequence[t.DataType]) -> t.DataType:
    kind = kinds[0]
    return kind.element_type if isinstance(kind, t.ArrayType) else kind


def _keys_of(kinds: Sequence[t.DataType]) -> t.DataType:
    kind = kinds[0]
    assert isinstance(kind, t.MapType)
    return t.ArrayType(kind.key_type)


def _values_of(kinds: Sequence[t.DataType]) -> t.DataType:
    kind = kinds[0]
    assert isinstance(kind, t.MapType)
    return t.ArrayType(kind.value_type)


def _entries_of(kinds: Sequence[t.DataType]) -> t.DataType:
    kind = kinds[0]
    assert isinstance(kind, t.MapType)
    return t.ArrayType(t.RowType([("key", kind.key_type), ("value", kind.value_type)]))


# --- computation ---
def _hashable(value: Any) -> Any:
    if isinstance(value, list):
        return ("list", *map(_hashable, value))
    if isinstance(value, dict):
        return ("dict", *((_hashable(key), _hashable(one)) for key, one in value.items()))
    return value


def _first(values: list[Any]) -> list[Any]:
    found: dict[Any, Any] = {}
    for value in values:
        found.setdefault(_hashable(value), value)
    return list(found.values())


def _except(one: list[Any], other: list[Any]) -> list[Any]:
    gone = set(map(_hashable, other))
    return [value for value in _first(one) if _hashable(value) not in gone]


def _intersect(one: list[Any], other: list[Any]) -> list[Any]:
    kept = set(map(_hashable, other))
    return [value for value in _first(one) if _hashable(value) in kept]


def _contains(values: list[Any] | None, value: Any) -> bool | None:
    return None if values is None else value in values


def _position(values: list[Any] | None, value: Any) -> int | None:
    if values is None or value is None:
        return None
    return values.index(value) + 1 if value in values else 0


def _slice(values: list[Any], start: int, end: int | None = None) -> list[Any]:
    """Return a part of an array. Both ends are included. Numbers below 0 count from the end, and 0 means 1."""
    size = len(values)
    first = start - 1 if start > 0 else size + start if start < 0 else 0
    last = size if end is None else end if end > 0 else size + end + 1 if end < 0 else 1
    if first >= size or last <= max(first, 0):
        return []
    return values[max(first, 0) : last]


def _sort(values: list[Any], ascending: bool = True, nulls_first: bool | None = None) -> list[Any]:
    known = sorted((value for value in values if value is not None), reverse=not ascending)
    missing = [None] * (len(values) - len(known))
    first = ascending if nulls_first is None else nulls_first
    return missing + known if first else known + missing


def _extreme(pick: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    def extreme(values: list[Any]) -> Any:
        known = [value for value in values if value is not None]
        return pick(known) if known else None

    return extreme


def _join(values: list[Any], delimiter: str, missing: str | None = None) -> str:
    texts = [missing if value is None else value for value in values]
    return delimiter.join(text for text in texts if text is not None)


def _union(*arrays: list[Any]) -> list[Any]:
    return _first([value for array in arrays for value in array])


def _around_null(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives NULL only for a NULL array. A NULL value is a value."""
    return lambda array, *others: None if array is None else compute(array, *others)


def register_all() -> None:
    """Register the functions of this module."""
    add = _with_element(None)
    register("ARRAY_APPEND", add, rowwise(_around_null(lambda values, value: [*values, value]), nulls=True))
    register("ARRAY_PREPEND", add, rowwise(_around_null(lambda values, value: [value, *values]), nulls=True))
    register("ARRAY_CONTAINS", _with_element(t.BooleanType(), False), rowwise(_contains, nulls=True))
    register("ARRAY_POSITION", _with_element(t.IntType()), rowwise(_position, nulls=True))
    removed = _around_null(lambda values, value: [one for one in values if one != value])
    register("ARRAY_REMOVE", _same_element, rowwise(removed, nulls=True))
    same = signature(ARRAY, result=same_as(0))
    register("ARRAY_DISTINCT", same, rowwise(_first))
    register("ARRAY_REVERSE", same, rowwise(lambda values: values[::-1]))
    register("ARRAY_SLICE", signature(ARRAY, INTEGER, INTEGER, result=same_as(0), optional=1), rowwise(_slice))
    register("ARRAY_SORT", signature(ARRAY, BOOLEAN, BOOLEAN, result=same_as(0), optional=2), rowwise(_sort))
    register("ARRAY_UNION", _arrays(2, 2), rowwise(_union))
    register("ARRAY_CONCAT", _arrays(1), rowwise(lambda *arrays: [value for array in arrays for value in array]))
    register("ARRAY_EXCEPT", _arrays(2, 2), rowwise(_except))
    register("ARRAY_INTERSECT", _arrays(2, 2), rowwise(_intersect))
    one = signature(ARRAY, result=_element_of, nulls=True)
    register("ARRAY_MAX", one, rowwise(_extreme(max)))
    register("ARRAY_MIN", one, rowwise(_extreme(min)))
    joined = signature(ARRAY, TEXT, TEXT, result=t.DataTypes.STRING(), optional=1)
    register("ARRAY_JOIN", joined, rowwise(_join))
    register("MAP_KEYS", signature(MAP, result=_keys_of), rowwise(list))
    register("MAP_VALUES", signature(MAP, result=_values_of), rowwise(lambda values: list(values.values())))
    register("MAP_ENTRIES", signature(MAP, result=_entries_of), rowwise(lambda values: list(values.items())))
    register("MAP_UNION", _maps, rowwise(_merge))


def _merge(*maps: dict[Any, Any]) -> dict[Any, Any]:
    return {key: value for one in maps for key, value in one.items()}
