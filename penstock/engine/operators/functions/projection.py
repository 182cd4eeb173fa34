"""The function of project: it picks some fields of tuples or rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from penstock.common.types import Row


class Projection:
    """Picks fields by position. A row stays a row, with the names of the picked fields."""

    def __init__(self, indexes: Sequence[int], input_type: TypeInformation | None) -> None:
        self.indexes = tuple(indexes)
        self.output_type = _output_type(input_type, self.indexes)

    def __call__(self, value: Any) -> Any:
        fields = tuple(value[index] for index in self.indexes)
        return Row(*fields) if isinstance(value, Row) else fields


def _output_type(input_type: TypeInformation | None, indexes: tuple[int, ...]) -> TypeInformation | None:
    if isinstance(input_type, RowTypeInfo):
        types, names = input_type.get_field_types(), input_type.get_field_names()
        _check(indexes, len(types))
        return Types.ROW_NAMED([names[i] for i in indexes], [types[i] for i in indexes])
    if isinstance(input_type, TupleTypeInfo):
        types = input_type.get_field_types()
        _check(indexes, len(types))
        return Types.TUPLE([types[i] for i in indexes])
    return None


def _check(indexes: tuple[int, ...], width: int) -> None:
    for index in indexes:
        if not 0 <= index < width:
            raise IndexError(f"project: there is no field {index}; the type has {width} fields, 0 to {width - 1}")
