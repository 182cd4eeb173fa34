"""ROW, ARRAY and MAP, and access to their parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.table.functions.moment import Moment
from penstock.table.functions.typing.coercion import INTEGERS, common_type, with_nullability
from penstock.table.functions.typing.registry import Kernel, Unfit, Value, register, rowwise
from penstock.table.functions.typing.result_types import ANY, ARRAY, alike, coerce, either, signature
from penstock.table.logical.rex import Call, Literal, Rex
from penstock.table.types import data_types as t
from penstock.table.types.arrow_forms import arrow_type

Inferred = tuple[tuple[Rex, ...], t.DataType]


# --- making ---
def _row(args: tuple[Rex, ...]) -> Inferred:
    return args, t.RowType([(f"EXPR${index}", arg.type) for index, arg in enumerate(args)], False)


def _row_kernel(call: Call) -> Kernel:
    form = arrow_type(call.type)

    def kernel(rows: int, moment: Moment, *values: Value) -> Value:
        columns = [
            (pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value).cast(field.type)
            for value, field in zip(values, form, strict=True)
        ]
        return pa.StructArray.from_arrays(columns, fields=list(form)) if columns else pa.array([{}] * rows, form)

    return kernel


def _array(args: tuple[Rex, ...]) -> Inferred:
    if not args:
        raise Unfit("at least one value")
    fitted, element = alike(args)
    return fitted, t.ArrayType(element, False)


def _map(args: tuple[Rex, ...]) -> Inferred:
    if not args or len(args) % 2:
        raise Unfit("(key, value, ...)")
    keys, key = alike(args[::2])
    values, value = alike(args[1::2])
    pairs = tuple(one for pair in zip(keys, values, strict=True) for one in pair)
    return pairs, t.MapType(key, value, False)


def _pairs(*values: Any) -> dict[Any, Any]:
    return dict(zip(values[::2], values[1::2], strict=True))


def _map_from_arrays(args: tuple[Rex, ...]) -> Inferred:
    args, kind = signature(ARRAY, ARRAY, result=t.NullType())(args)
    keys, values = (arg.type for arg in args)
    assert isinstance(keys, t.ArrayType)
    assert isinstance(values, t.ArrayType)
    return args, t.MapType(keys.element_type, values.element_type, kind.is_nullable)


def _zip(keys: list[Any], values: list[Any]) -> dict[Any, Any]:
    if len(keys) != len(values):
        raise ValueError(f"{len(keys)} keys do not match {len(values)} values")
    return dict(zip(keys, values, strict=True))


# --- parts ---
def _field(args: tuple[Rex, ...]) -> Inferred:
    row, index = args
    if not isinstance(row.type, t.RowType) or not isinstance(index, Literal):
        raise Unfit("(ROW, the position of a field)")
    kind = row.type.fields[index.value].data_type
    return args, with_nullability(kind, kind.is_nullable or row.type.is_nullable)


def _field_kernel(call: Call) -> Kernel:
    index = call.args[1]
    assert isinstance(index, Literal)
    at, form = index.value, arrow_type(call.type)

    def kernel(row: Value, *others: Value) -> Value:
        if isinstance(row, pa.Scalar):
            row = pa.array([row.as_py()], row.type)
        return pc.struct_field(row, [at]).cast(form)

    return kernel


def _item(args: tuple[Rex, ...]) -> Inferred:
    """Infer the type of an element of an array, of the value of a key, or of a field of a row."""
    if len(args) != 2:
        raise Unfit("(an array or map, an index or key)")
    whole, key = args
    match whole.type:
        case t.ArrayType() if isinstance(key.type, (*INTEGERS, t.DecimalType)):
            if isinstance(key, Literal) and key.value is not None and key.value < 1:
                raise Unfit("an index that starts at 1")
            return (whole, coerce(key, t.IntType())), whole.type.element_type.nullable()
        case t.MapType() if common_type([whole.type.key_type, key.type]) is not None:
            return (whole, coerce(key, whole.type.key_type)), whole.type.value_type.nullable()
        case t.RowType() if isinstance(key, Literal):
            return _field_by_name(whole, key)
    raise Unfit("(an array, a whole number) or (a map, a key)")


def _field_by_name(whole: Rex, key: Literal) -> Inferred:
    assert isinstance(whole.type, t.RowType)
    names = whole.type.field_names()
    index = names.index(key.value) if key.value in names else key.value - 1 if isinstance(key.value, int) else -1
    if not 0 <= index < len(names):
        raise Unfit(f"a field of the row: {', '.join(names)}")
    args = (whole, Literal(t.IntType(False), index))
    return args, _field(args)[1].nullable()


def _item_kernel(call: Call) -> Kernel:
    match call.args[0].type:
        case t.RowType():
            return _field_kernel(call)
        case t.MapType():
            return rowwise(lambda whole, key: whole.get(key))(call)
    key = call.args[1]
    if isinstance(key, Literal) and isinstance(key.value, int) and key.value >= 1:
        at = key.value - 1
        slow = rowwise(_element_at)(call)

        def kernel(whole: Value, index: Value) -> Value:
            if isinstance(whole, pa.Scalar) or pc.min(pc.list_value_length(whole)).as_py() in (None, *range(at + 1)):
                return slow(whole, index)
            return pc.list_element(whole, at)

        return kernel
    return rowwise(_element_at)(call)


def _element_at(whole: list[Any], index: int) -> Any:
    return whole[index - 1] if 1 <= index <= len(whole) else None


def _element(args: tuple[Rex, ...]) -> Inferred:
    if len(args) != 1 or not isinstance(args[0].type, t.ArrayType | t.MultisetType):
        raise Unfit("(an array)")
    kind = args[0].type
    return args, with_nullability(kind.element_type, kind.is_nullable or kind.element_type.is_nullable)


def _sole(whole: Any) -> Any:
    if len(whole) > 1:
        raise ValueError(f"the array has {len(whole)} elements instead of one")
    return next(iter(whole), None)


def _cardinality(call: Call) -> Kernel:
    if isinstance(call.args[0].type, t.MapType | t.MultisetType):
        return rowwise(len)(call)
    return lambda value: pc.cast(pc.list_value_length(value), pa.int32())


def _size(args: tuple[Rex, ...]) -> Inferred:
    if len(args) != 1 or not isinstance(args[0].type, t.ArrayType | t.MapType | t.MultisetType):
        raise Unfit("(an array or map)")
    return args, t.IntType(args[0].type.is_nullable)


def _typeof(call: Call) -> Kernel:
    kind = call.args[0].type
    text = kind.summary() + ("" if kind.is_nullable else " NOT NULL")
    return lambda rows, moment, *values: pa.repeat(pa.scalar(text, pa.string()), rows)


def register_all() -> None:
    """Register the functions of this module."""
    register("ROW", _row, _row_kernel, moment=True)
    register("ARRAY", _array, rowwise(lambda *values: list(values), nulls=True))
    register("MAP", _map, rowwise(_pairs, nulls=True))
    register("MAP_FROM_ARRAYS", _map_from_arrays, rowwise(_zip), raises=True)
    register("FIELD", _field, _field_kernel)
    register("ITEM|AT", _item, _item_kernel)
    register("ELEMENT", _element, rowwise(_sole), raises=True)
    register("CARDINALITY", _size, _cardinality)
    typed: Callable[[tuple[Rex, ...]], Inferred] = either(
        signature(ANY, result=t.DataTypes.STRING(), nulls=True),
        signature(ANY, ANY, result=t.DataTypes.STRING(), nulls=True),
    )
    register("TYPEOF", typed, _typeof, moment=True)
