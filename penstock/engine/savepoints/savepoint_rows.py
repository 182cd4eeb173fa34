"""The conversion of rows, of a DataFrame or of plain Python, into entries of a savepoint."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, singledispatch
from typing import Any, NamedTuple

from penstock.api.state.descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from penstock.api.windows.windows import CountWindow, TimeWindow
from penstock.common.basic_types import BasicTypeInfo, DataclassTypeInfo, EnumTypeInfo, InstantTypeInfo, TimeTypeInfo
from penstock.common.composite_types import ByteArrayTypeInfo, ListTypeInfo, MapTypeInfo, RowTypeInfo, TupleTypeInfo
from penstock.common.time import Instant
from penstock.common.typeinfo import TypeInformation
from penstock.common.types import Row, make_row
from penstock.engine.savepoints.contents import form_of
from penstock.engine.state.key_groups import short_repr
from penstock.engine.state.state_schema import schema_of
from penstock.engine.state.tables import Layout
from penstock.engine.state.ttl import ttl_of
from penstock.errors import ProgramError, TypeMismatch

KeyOf = str | Sequence[str] | Callable[[Any], Any]
_TUPLES = {2: ("key", "value"), 3: ("key", "namespace", "value")}


class Part(NamedTuple):
    """The content of a row: a value, or one entry of a map."""

    address: Any
    map_key: Any
    """Key of the map's entry; `...` for a row with the whole value."""
    value: Any
    last_access: Any


@dataclass(frozen=True)
class KeyedRows:
    """The conversion of rows into entries of one keyed state."""

    uid: str
    descriptor: StateDescriptor
    key: KeyOf
    layout: Layout
    now: int
    """Time of last access for rows without that column."""

    # --- columns ---
    def check(self, columns: Iterable[str]) -> None:
        """Raise ProgramError if rows lack a column, or have a column that would be ignored."""
        present, needed, optional = set(columns), self._mandatory, self._optional
        if needed <= present and (callable(self.key) or present <= needed | optional):
            return
        also = f" and may have {', '.join(sorted(optional))}" if optional else ""
        raise ProgramError(
            f"{self._state()}: rows need the columns {', '.join(sorted(needed))}{also}; these have "
            f"{', '.join(sorted(map(str, present))) or 'none'}"
        )

    @cached_property
    def _mandatory(self) -> set[str]:
        return {*self.key_columns(), "value", *(["namespace"] if self.layout is Layout.PANE else [])}

    @cached_property
    def _optional(self) -> set[str]:
        return {
            *(["map_key"] if isinstance(self.descriptor, MapStateDescriptor) else []),
            *(["last_access"] if ttl_of(self.descriptor) is not None else []),
            *([] if self.layout is Layout.PANE else ["namespace"]),
        }

    def key_columns(self) -> list[str]:
        """Return the columns of the key; none if a function returns the key."""
        if callable(self.key):
            return []
        return [self.key] if isinstance(self.key, str) else list(self.key)

    def _state(self) -> str:
        return f"state '{self.descriptor.get_name()}' of operator '{self.uid}'"

    # --- one row ---
    def part(self, record: Any) -> Part:
        """Return the content of one row, checked against the declared type."""
        fields = self._fields(record)
        self.check(fields)
        key = self._key(record, fields)
        map_key, value = fields.get("map_key", ...), from_spark(fields["value"])
        value = self._whole(value) if map_key is ... else self._fit(value, self._types[1])
        map_key = map_key if map_key is ... else self._fit(from_spark(map_key), self._types[0])
        last_access = fields.get("last_access")
        return Part(self._address(key, fields), map_key, value, self.now if last_access is None else last_access)

    def _fields(self, record: Any) -> dict[str, Any]:
        if isinstance(record, Mapping):
            return dict(record)
        if isinstance(record, Row) and record.get_field_names() is not None:
            return record.as_dict()
        if isinstance(record, tuple) and hasattr(record, "__fields__"):  # a row of Spark's
            return dict(zip(record.__fields__, record, strict=True))
        if isinstance(record, tuple) and len(record) in _TUPLES:
            return dict(zip(_TUPLES[len(record)], record, strict=True))
        raise ProgramError(
            f"{self._state()}: a row is a dict or Row with the columns' names, (key, value), or (key, namespace, "
            f"value), and not {short_repr(record)}"
        )

    def _key(self, record: Any, fields: dict[str, Any]) -> Any:
        if callable(self.key):
            return from_spark(self.key(record))
        parts = tuple(from_spark(fields[column]) for column in self.key_columns())
        return parts[0] if isinstance(self.key, str) else parts

    def _address(self, key: Any, fields: dict[str, Any]) -> Any:
        namespace = _window(from_spark(fields.get("namespace")))
        if self.layout is Layout.PANE:
            return key, namespace
        if namespace is not None:
            raise ProgramError(f"{self._state()}: only state of windows (window=True) has a namespace")
        return key

    @cached_property
    def _types(self) -> tuple[TypeInformation | None, TypeInformation | None, TypeInformation | None]:
        """The types of a map's keys, of its values, and of the whole state."""
        descriptor = self.descriptor
        if isinstance(descriptor, MapStateDescriptor):
            return descriptor.key_type_info, descriptor.value_type_info, descriptor.type_info
        return None, None, descriptor.type_info

    def _whole(self, value: Any) -> Any:
        """Return a whole value in the form of a table: never None, and a list or dict for such states."""
        value = self._fit(value, self._types[2])
        if isinstance(value, tuple) and isinstance(self.descriptor, ListStateDescriptor):
            value = list(value)
        if value is None or not isinstance(value, self._container or object) or _has_none(value, self._container):
            raise ProgramError(f"{self._state()} cannot hold {short_repr(value)}")
        return value

    @cached_property
    def _container(self) -> type | None:
        """Type of a whole value for list and map state; None for others."""
        return next((kind for known, kind in _CONTAINERS if isinstance(self.descriptor, known)), None)

    def _fit(self, value: Any, info: TypeInformation | None) -> Any:
        return fit_value(value, info, self._state())

    # --- all rows of a slot ---
    def gather(self, parts: Iterable[Part]) -> Iterator[tuple[Any, Any]]:
        """Yield the addresses with their stored values. An empty list or map leaves no entry."""
        form = form_of(schema_of(self.descriptor))
        for address, value, last_access in self._by_address(parts):
            if self._container is None or value:
                yield address, form.stamp(value, last_access)

    def _by_address(self, parts: Iterable[Part]) -> Iterator[tuple[Any, Any, Any]]:
        met: set[Any] = set()
        maps: dict[Any, tuple[dict[Any, Any], dict[Any, Any]]] = {}
        for part in parts:
            if part.map_key is ...:
                self._once(part.address not in met and part.address not in maps, part.address)
                met.add(part.address)
                yield part.address, part.value, part.last_access
            else:
                values, times = maps.setdefault(part.address, ({}, {}))
                self._once(part.address not in met and part.map_key not in values, (part.address, part.map_key))
                values[part.map_key], times[part.map_key] = part.value, part.last_access
        for address, (values, times) in maps.items():
            yield address, values, times

    def _once(self, new: bool, address: Any) -> None:
        if not new:
            raise ProgramError(f"{self._state()}: there are two rows for {short_repr(address)}")


_CONTAINERS: list[tuple[type[StateDescriptor], type]] = [(ListStateDescriptor, list), (MapStateDescriptor, dict)]


def _has_none(value: Any, container: type | None) -> bool:
    return container is list and any(part is None for part in value)


# --- into the declared form ---
def fit_value(value: Any, info: TypeInformation | None, where: str) -> Any:
    """Return a value in the form of its declared type, if there is one."""
    if info is None:
        return value
    try:
        return info.fit([_restore_shape(info, value)])[0]
    except TypeMismatch as error:
        raise TypeMismatch(f"{where}: {error}") from None


def from_spark(value: Any) -> Any:
    """Return a DataFrame's value in Python's form: structs become rows, or tuples if their fields are _1, _2, …."""
    if isinstance(value, tuple) and hasattr(value, "__fields__"):
        names, parts = tuple(value.__fields__), tuple(map(from_spark, value))
        return parts if names == tuple(f"_{i}" for i in range(1, len(names) + 1)) else make_row(names, parts)
    if isinstance(value, list):
        return list(map(from_spark, value))
    if isinstance(value, dict):
        return {from_spark(key): from_spark(part) for key, part in value.items()}
    return bytes(value) if isinstance(value, bytearray) else value


def _window(namespace: Any) -> Any:
    """Return the window that a struct of its parts describes. Return any other value unchanged."""
    names = namespace.get_field_names() if isinstance(namespace, Row) else None
    if names == ["start", "end"]:
        return TimeWindow(*namespace)
    return CountWindow(*namespace) if names == ["id"] else namespace


@singledispatch
def _restore_shape(info: TypeInformation, value: Any) -> Any:
    """Undo the conversion by a DataFrame of values that have no Spark type of their own."""
    return value


@_restore_shape.register
def _(info: DataclassTypeInfo, value: Any) -> Any:
    fields = value.as_dict() if isinstance(value, Row) and value.get_field_names() is not None else value
    return info.python_class(**fields) if isinstance(fields, dict) else value


@_restore_shape.register
def _(info: EnumTypeInfo, value: Any) -> Any:
    known = getattr(info.python_class, "__members__", {})
    return known.get(value, value) if isinstance(value, str) else value


@_restore_shape.register
def _(info: BasicTypeInfo, value: Any) -> Any:
    return int(value) if info.python_class is int and isinstance(value, Decimal) and value == int(value) else value


@_restore_shape.register
def _(info: InstantTypeInfo, value: Any) -> Any:
    if not isinstance(value, datetime.datetime):
        return value
    moment = value.astimezone(datetime.UTC)
    return Instant(int(moment.replace(microsecond=0).timestamp()), moment.microsecond * 1000)


@_restore_shape.register
def _(info: TimeTypeInfo, value: Any) -> Any:
    return datetime.time.fromisoformat(value) if isinstance(value, str) else value


@_restore_shape.register
def _(info: ListTypeInfo, value: Any) -> Any:
    return [_restore_shape(info.elem_type, part) for part in value] if isinstance(value, list) else value


@_restore_shape.register
def _(info: ByteArrayTypeInfo, value: Any) -> Any:
    return value


@_restore_shape.register
def _(info: MapTypeInfo, value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {_restore_shape(info.key_type, key): _restore_shape(info.value_type, part) for key, part in value.items()}


@_restore_shape.register
def _(info: TupleTypeInfo, value: Any) -> Any:
    if not isinstance(value, tuple | list | Row) or len(value) != len(info.field_types):
        return value
    return tuple(_restore_shape(part, field) for part, field in zip(info.field_types, value, strict=True))


@_restore_shape.register
def _(info: RowTypeInfo, value: Any) -> Any:
    if not isinstance(value, Row) or len(value) != len(info.field_types):
        return value
    declared = dict(zip(info.get_field_names(), info.field_types, strict=True))
    own = value.get_field_names() or list(declared)
    types = [declared[name] for name in own] if set(own) == set(declared) else info.field_types
    parts = tuple(_restore_shape(part, field) for part, field in zip(types, value, strict=True))
    return make_row(None if value.get_field_names() is None else tuple(own), parts, value.get_row_kind())
