"""Types made of other types: tuples, rows, lists, arrays and maps.

Each type checks its parts column by column, so a chunk costs a few calls of C functions instead of one Python call per
value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.base.arguments import check_arguments
from penstock.base.type_variables import K, T, V
from penstock.common.basic_types import BasicTypeInfo
from penstock.common.type_information import (
    DeclaredType,
    TypeInformation,
    as_type_information,
    field_types_of,
    fit_columns,
)
from penstock.common.types import Row, RowKind, make_row, rows_from_columns, rows_to_columns

__all__ = [
    "BasicArrayTypeInfo",
    "ByteArrayTypeInfo",
    "ListTypeInfo",
    "MapTypeInfo",
    "ObjectArrayTypeInfo",
    "PrimitiveArrayTypeInfo",
    "RowTypeInfo",
    "TupleTypeInfo",
]


def _all_of(column: Sequence[Any], expected: type) -> bool:
    return list(map(type, column)).count(expected) == len(column)


def _require(column: Sequence[Any], *accepted: type) -> None:
    if not all(issubclass(kind, accepted) for kind in set(map(type, column))):
        raise TypeError


@check_arguments
@dataclass(frozen=True, repr=False)
class TupleTypeInfo(TypeInformation[T]):
    """A tuple of a fixed number of fields; lists, named tuples and rows become plain tuples."""

    field_types: tuple[TypeInformation, ...]

    if TYPE_CHECKING:

        def __init__(self, field_types: Iterable[DeclaredType[Any]]) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "field_types", field_types_of(self.field_types))

    def get_field_types(self) -> list[TypeInformation]:
        """Return the types of the fields."""
        return list(self.field_types)

    def get_arity(self) -> int:
        """Return the number of fields."""
        return len(self.field_types)

    def _fit_all(self, column: Sequence[Any]) -> Sequence[Any]:
        if not _all_of(column, tuple):
            _require(column, tuple, list, Row)
            column = list(map(tuple, column))
        if not column:
            return column
        fitted = fit_columns(list(zip(*column, strict=True)), self.field_types, self)
        return column if fitted is None else list(zip(*fitted, strict=True))

    def _text(self, value: Any) -> str:
        return f"({','.join(t.text(v) for t, v in zip(self.field_types, value, strict=True))})"

    @property
    def notation(self) -> str:
        return f"TUPLE({', '.join(part.notation for part in self.field_types)})"

    def __repr__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(repr, self.field_types))})"


@check_arguments
@dataclass(frozen=True, repr=False)
class RowTypeInfo(TypeInformation[Any]):
    """A row with a fixed number of fields.

    Tuples, lists and rows without names get the declared names (f0, f1, … by default). Rows with names are brought into
    the declared order; without declared names, a row keeps its own names. Dicts and objects provide the items or
    attributes with the declared names. As in PyFlink, a missing one is None, and others are left out.
    """

    _also_allowed: ClassVar[str] = " such as Types.ROW_NAMED([...], [...])"
    field_types: tuple[TypeInformation, ...]
    field_names: tuple[str, ...] | None = None

    if TYPE_CHECKING:

        def __init__(
            self, field_types: Iterable[DeclaredType[Any]], field_names: Iterable[str] | None = None
        ) -> None: ...

    @staticmethod
    def _of_argument(value: Any) -> Any:
        """Take a ROW of tables for the type of streams that it stands for."""
        return None if isinstance(value, type) else as_type_information(value)

    def __post_init__(self) -> None:
        object.__setattr__(self, "field_types", field_types_of(self.field_types))
        if self.field_names is None:
            return
        object.__setattr__(self, "field_names", tuple(self.field_names))
        if len(self.field_names) != len(self.field_types):
            raise ValueError(f"{len(self.field_names)} names for {len(self.field_types)} types: {self.field_names}")
        if len(set(self.field_names)) != len(self.field_names):
            raise ValueError(f"field names must differ: {self.field_names}")

    def get_field_names(self) -> list[str]:
        """Return the names of the fields. Without declared names they are f0, f1, …."""
        return list(self._names())

    def get_field_types(self) -> list[TypeInformation]:
        """Return the types of the fields."""
        return list(self.field_types)

    def get_arity(self) -> int:
        """Return the number of fields."""
        return len(self.field_types)

    def get_field_index(self, field_name: str) -> int:
        """Return the position of a field."""
        try:
            return self._names().index(field_name)
        except ValueError:
            raise ValueError(f"there is no field {field_name!r} in {self.notation}") from None

    def _names(self) -> tuple[str, ...]:
        return self.field_names or tuple(f"f{i}" for i in range(len(self.field_types)))

    def _fit_all(self, column: Sequence[Any]) -> Sequence[Any]:
        if not column:
            return column
        packed = (None, None, list(zip(*column, strict=True))) if _all_of(column, tuple) else rows_to_columns(column)
        if packed is None or not self._takes(packed[0]):
            return self._fit_one_by_one(column)
        own_names, kinds, columns = packed
        fitted = fit_columns(columns, self.field_types, self)
        if fitted is None and own_names is not None:
            return column
        return rows_from_columns((own_names or self._names(), kinds, fitted or columns))

    def _takes(self, own_names: tuple[str, ...] | None) -> bool:
        return own_names is None or self.field_names is None or own_names == self.field_names

    def _fit_one_by_one(self, column: Sequence[Any]) -> Sequence[Any]:
        """Fit the values of a mixed chunk, or rows and dicts whose fields must be put in order."""
        names = self._names()
        rows = []
        for value in column:
            row = self._as_row(value, names)
            fitted = fit_columns([(field,) for field in row], self.field_types, self)
            rows.append(
                row if fitted is None else make_row(row._names, tuple(field for (field,) in fitted), row.get_row_kind())
            )
        unchanged = all(row is value for row, value in zip(rows, column, strict=True))
        return column if unchanged else rows

    def _as_row(self, value: Any, names: tuple[str, ...]) -> Row:
        if isinstance(value, (tuple, list)):
            return make_row(names, tuple(value))
        if not isinstance(value, Row):
            return make_row(names, _values_by_name(value, names))
        if value._names is None:
            return make_row(names, tuple(value), value.get_row_kind())
        if self.field_names is None or value._names == names:
            return value
        return make_row(names, _fields_of(value.as_dict(), names), value.get_row_kind())

    def _text(self, value: Any) -> str:
        kind = value.get_row_kind() if isinstance(value, Row) else RowKind.INSERT
        return f"{kind}[{', '.join(t.text(v) for t, v in zip(self.field_types, value, strict=True))}]"

    @property
    def notation(self) -> str:
        names = [f"{name} " for name in self.field_names] if self.field_names else [""] * len(self.field_types)
        fields = zip(names, self.field_types, strict=True)
        return f"ROW({', '.join(f'{name}{declared.notation}' for name, declared in fields)})"

    def __repr__(self) -> str:
        names = [f"{name}: " for name in self.field_names] if self.field_names else [""] * len(self.field_types)
        fields = zip(names, self.field_types, strict=True)
        return f"RowTypeInfo({', '.join(f'{name}{declared}' for name, declared in fields)})"


def as_row_type_info(declared: Any) -> RowTypeInfo:
    """Return the given type. Raise TypeError if it is not a type of rows."""
    declared = as_type_information(declared)
    if not isinstance(declared, RowTypeInfo):
        raise TypeError(f"expected the type of a row, such as Types.ROW_NAMED(...), not {declared!r}")
    return declared


def _values_by_name(value: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the items of a dict, or attributes of an object, under these names.

    Raise ValueError if it has none of them.
    """
    if isinstance(value, dict):
        found = {name: value[name] for name in names if name in value}
    elif hasattr(value, "__dict__") or hasattr(value, "__slots__"):
        found = {name: getattr(value, name) for name in names if hasattr(value, name)}
    else:
        raise TypeError("no row")
    if not found:
        raise ValueError("no field has these names")
    return tuple(map(found.get, names))


def _fields_of(fields: dict[str, Any], names: tuple[str, ...]) -> tuple[Any, ...]:
    if len(fields) != len(names) or any(name not in fields for name in names):
        raise ValueError("other field names")
    return tuple(fields[name] for name in names)


@check_arguments
@dataclass(frozen=True, repr=False)
class ListTypeInfo(TypeInformation[T]):
    """A list of any length with elements of one type; tuples become lists."""

    elem_type: TypeInformation[Any]
    label: ClassVar = "LIST"

    def __post_init__(self) -> None:
        field_types_of([self.elem_type])

    def _fit_all(self, column: Sequence[Any]) -> Sequence[Any]:
        if not _all_of(column, list):
            _require(column, list, tuple)
            column = list(map(list, column))
        elements = list(chain.from_iterable(column))
        fitted = self.elem_type.fit_column(elements)
        if fitted is elements:
            return column
        following = iter(fitted)
        return [list(islice(following, len(value))) for value in column]

    def _text(self, value: Iterable[Any]) -> str:
        return f"[{', '.join(map(self.elem_type.text, value))}]"

    @property
    def notation(self) -> str:
        return f"{self.label}({self.elem_type.notation})"

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.elem_type}>"


@dataclass(frozen=True, repr=False)
class BasicArrayTypeInfo(ListTypeInfo[T]):
    """An array of strings or boxed numbers: a list in Python."""

    label = "BASIC_ARRAY"


@dataclass(frozen=True, repr=False)
class ObjectArrayTypeInfo(ListTypeInfo[T]):
    """An array of objects: a list in Python."""

    label = "OBJECT_ARRAY"


@dataclass(frozen=True, repr=False)
class PrimitiveArrayTypeInfo(ListTypeInfo[T]):
    """An array of numbers or booleans: a list in Python."""

    label = "PRIMITIVE_ARRAY"

    def __post_init__(self) -> None:
        if not isinstance(self.elem_type, BasicTypeInfo):
            raise TypeError(f"a primitive array holds numbers or booleans, not {self.elem_type.notation}")

    def __repr__(self) -> str:
        return f"PrimitiveArrayTypeInfo<{self.elem_type}>"


@dataclass(frozen=True, repr=False)
class ByteArrayTypeInfo(PrimitiveArrayTypeInfo[bytes]):
    """An array of bytes: bytes in Python."""

    def _fit_all(self, column: Sequence[Any]) -> Sequence[Any]:
        if _all_of(column, bytes):
            return column
        _require(column, bytes, bytearray, memoryview)
        return list(map(bytes, column))

    def _text(self, value: Iterable[int]) -> str:
        return f"[{', '.join(str(byte - 256 if byte > 127 else byte) for byte in value)}]"


@check_arguments
@dataclass(frozen=True, repr=False)
class MapTypeInfo(TypeInformation[dict[K, V]]):
    """A dict with keys of one type and values of one type."""

    key_type: TypeInformation[K]
    value_type: TypeInformation[V]

    def __post_init__(self) -> None:
        field_types_of([self.key_type, self.value_type])

    def _fit_all(self, column: Sequence[Any]) -> Sequence[Any]:
        if not _all_of(column, dict):
            _require(column, dict)
            column = list(map(dict, column))
        keys = list(chain.from_iterable(column))
        values = list(chain.from_iterable(map(dict.values, column)))
        fitted_keys, fitted_values = self.key_type.fit_column(keys), self.value_type.fit_column(values)
        if fitted_keys is keys and fitted_values is values:
            return column
        entries = zip(fitted_keys, fitted_values, strict=True)
        return [dict(islice(entries, len(value))) for value in column]

    def _text(self, value: dict[Any, Any]) -> str:
        entries = (f"{self.key_type.text(k)}={self.value_type.text(v)}" for k, v in value.items())
        return f"{{{', '.join(entries)}}}"

    @property
    def notation(self) -> str:
        return f"MAP({self.key_type.notation}, {self.value_type.notation})"

    def __repr__(self) -> str:
        return f"MapTypeInfo<{self.key_type}, {self.value_type}>"
