"""Description of the types of saved state, as plain JSON beside the values."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import singledispatch
from typing import Any, TypeAlias

from penstock.api.state.descriptors import (
    AggregatingStateDescriptor,
    FoldingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from penstock.common.basic_types import (
    DataclassTypeInfo,
    EnumTypeInfo,
    PickledBytesTypeInfo,
)
from penstock.common.composite_types import ByteArrayTypeInfo, ListTypeInfo, MapTypeInfo, RowTypeInfo, TupleTypeInfo
from penstock.common.typeinfo import TypeInformation, Types
from penstock.engine.state.ttl import ttl_of

__all__ = ["Schema", "schema_of", "schema_text"]

Schema: TypeAlias = dict[str, Any]

PICKLED = "pickled"
_KINDS: dict[type[StateDescriptor], str] = {
    ValueStateDescriptor: "value",
    ListStateDescriptor: "list",
    MapStateDescriptor: "map",
    ReducingStateDescriptor: "reducing",
    AggregatingStateDescriptor: "aggregating",
    FoldingStateDescriptor: "aggregating",
}


def schema_of(descriptor: StateDescriptor) -> Schema:
    """Describe the content of a state as JSON. Equal declarations give equal descriptions, in every Python version.

    The result has `kind`, `value` (for maps also `key`) and `ttl`. Under `classes` it has each dataclass and enum
    that the types mention, by the name under which pickle finds it.
    """
    declared = types_of(descriptor)
    return {
        "kind": _kind_of(descriptor),
        **{part: type_schema(info) for part, info in declared.items()},
        "ttl": ttl_of(descriptor) is not None,
        "classes": {name: class_schema(found) for name, found in sorted(classes_in(declared.values()).items())},
    }


def schema_text(schema: Schema) -> str:
    """Return a schema in one line.

    >>> schema_text(schema_of(MapStateDescriptor("s", Types.STRING(), Types.ROW_NAMED(["n"], [Types.LONG()]))))
    'map<STRING, ROW<n LONG>>'
    """
    parts = ", ".join(type_text(schema[part]) for part in ("key", "value") if part in schema)
    return f"{schema['kind']}<{parts}>{' with TTL' if schema['ttl'] else ''}"


def type_text(described: Schema) -> str:
    if "class" in described:
        return str(described["class"])
    if "fields" in described:
        parts = [f"{field.get('name') or ''} {type_text(field['type'])}".strip() for field in described["fields"]]
    else:
        parts = [type_text(described[part]) for part in ("element", "key", "value") if part in described]
    return f"{described['type']}<{', '.join(parts)}>" if parts or "fields" in described else str(described["type"])


def _kind_of(descriptor: StateDescriptor) -> str:
    return next(kind for known, kind in _KINDS.items() if isinstance(descriptor, known))


def types_of(descriptor: StateDescriptor) -> dict[str, TypeInformation]:
    """Return the types of the stored parts: one value, the key and value of a map's entries, or a list's element."""
    undeclared = Types.PICKLED_BYTE_ARRAY()
    if isinstance(descriptor, MapStateDescriptor):
        return {"key": descriptor.key_type_info or undeclared, "value": descriptor.value_type_info or undeclared}
    if isinstance(descriptor, ListStateDescriptor):
        return {"value": descriptor.elem_type_info or undeclared}
    return {"value": descriptor.type_info or undeclared}


@singledispatch
def type_schema(info: TypeInformation) -> Schema:
    """Return a type as JSON. A user's own type has the name that it gives itself, or else the name of its class."""
    nameless = type(info).__repr__ is object.__repr__ and type(info).notation is TypeInformation.notation
    return {"type": qualified_name(type(info)) if nameless else info.notation}


@type_schema.register
def _(info: PickledBytesTypeInfo) -> Schema:
    return {"type": PICKLED}


@type_schema.register(DataclassTypeInfo)
@type_schema.register(EnumTypeInfo)
def _(info: DataclassTypeInfo | EnumTypeInfo) -> Schema:
    return {"type": _head(info), "class": qualified_name(info.python_class)}


@type_schema.register
def _(info: TupleTypeInfo) -> Schema:
    return {"type": _head(info), "fields": [{"type": type_schema(part)} for part in info.field_types]}


@type_schema.register
def _(info: RowTypeInfo) -> Schema:
    names = info.field_names or [None] * len(info.field_types)
    fields = zip(names, info.field_types, strict=True)
    return {"type": _head(info), "fields": [{"name": name, "type": type_schema(part)} for name, part in fields]}


@type_schema.register
def _(info: ListTypeInfo) -> Schema:
    return {"type": _head(info), "element": type_schema(info.elem_type)}


@type_schema.register
def _(info: ByteArrayTypeInfo) -> Schema:
    return {"type": "BYTE_ARRAY"}  # a bytes object, unlike other arrays


@type_schema.register
def _(info: MapTypeInfo) -> Schema:
    return {"type": _head(info), "key": type_schema(info.key_type), "value": type_schema(info.value_type)}


def _head(info: TypeInformation) -> str:
    """Return the name of a type without its parts: ROW of ROW(n LONG)."""
    return info.notation.partition("(")[0]


def qualified_name(named: Any) -> str:
    return f"{named.__module__}.{named.__qualname__}"


# --- the classes that types mention ---
def classes_in(declared: Iterable[TypeInformation]) -> dict[str, type]:
    """Return by name the dataclasses and enums in these types and in the annotations of such dataclasses."""
    found: dict[str, type] = {}
    for info in declared:
        for part in parts_of(info):
            if isinstance(part, DataclassTypeInfo | EnumTypeInfo):
                _collect(part.python_class, found)
    return found


def parts_of(info: TypeInformation) -> Iterator[TypeInformation]:
    """Yield a type and all types inside it."""
    yield info
    inner = [getattr(info, part) for part in ("elem_type", "key_type", "value_type") if hasattr(info, part)]
    for part in (*inner, *getattr(info, "field_types", ())):
        yield from parts_of(part)


def _collect(hint: Any, found: dict[str, type]) -> None:
    for part in (typing.get_origin(hint), *typing.get_args(hint)):
        if part is not None:
            _collect(part, found)
    if not isinstance(hint, type) or qualified_name(hint) in found:
        return
    if issubclass(hint, Enum):
        found[qualified_name(hint)] = hint
    elif dataclasses.is_dataclass(hint):
        found[qualified_name(hint)] = hint
        for field in dataclasses.fields(hint):
            _collect(_hint(hint, field), found)


def class_schema(described: type) -> Schema:
    if issubclass(described, Enum):
        members = described.__members__.items()  # with aliases, so that a member can be renamed and keep its old name
        return {"class": "enum", "members": {name: _constant_text(member.value) for name, member in members}}
    fields = dataclasses.fields(described)  # type: ignore[arg-type]  # what is no enum here is a dataclass
    return {
        "class": "dataclass",
        "slots": any(is_slot(described, field.name) for field in fields),
        "fields": [
            {"name": field.name, "type": _hint_text(_hint(described, field)), "default": has_default(field)}
            for field in fields
        ],
    }


def _constant_text(value: Any) -> str:
    """Return the text of an enum member's value, by which pickle finds the member.

    If the text of an object can vary, return only its class.
    """
    if isinstance(value, tuple):
        return f"({', '.join(map(_constant_text, value))})"
    simple = isinstance(value, int | float | str | bytes | None) and not isinstance(value, Enum)
    return repr(value) if simple else qualified_name(type(value))


def is_slot(owner: type, name: str) -> bool:
    return isinstance(inspect.getattr_static(owner, name, None), types.MemberDescriptorType)


def has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _hint(owner: type, field: dataclasses.Field[Any]) -> Any:
    """Return a field's annotation as a type, or as it is written if its names cannot be resolved."""
    home = next((base for base in owner.__mro__ if field.name in _annotations(base)), owner)
    alone = type("_", (), {"__annotations__": {field.name: field.type}})
    # A main script's classes reach the slots without its imports, and of these, those from typing are the usual ones.
    known = {**vars(typing), **vars(sys.modules.get(home.__module__, typing))}
    try:
        return typing.get_type_hints(alone, known, {home.__name__: home, owner.__name__: owner})[field.name]
    except Exception:  # an annotation may be any expression
        return field.type


def _annotations(owner: type) -> Mapping[str, Any]:
    """Return the annotations in the body of a class. Their names need not exist: Python 3.14 resolves them only now."""
    if sys.version_info >= (3, 14):
        import annotationlib

        return annotationlib.get_annotations(owner, format=annotationlib.Format.FORWARDREF)
    return inspect.get_annotations(owner)


def _hint_text(hint: Any) -> str:
    """Return an annotation in one spelling: Optional[int], Union[None, int] and int | None all become `int | None`."""
    if isinstance(hint, str):
        return " ".join(hint.split())
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(sorted(set(map(_hint_text, arguments)), key=lambda name: (name == "None", name)))
    if origin is typing.Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if arguments:
        return f"{_name_text(origin)}[{', '.join(map(_hint_text, arguments))}]"
    return _name_text(origin or hint)


def _name_text(hint: Any) -> str:
    if isinstance(hint, list):  # the parameters of a Callable
        return f"[{', '.join(map(_hint_text, hint))}]"
    if hint in (None, types.NoneType, ...):
        return "..." if hint is ... else "None"
    spellings = (getattr(hint, name, None) for name in ("__qualname__", "__name__", "__forward_arg__"))
    name = next(filter(None, spellings), None) or repr(hint)
    # Private parts of a module's name are left out: pathlib.Path is pathlib._local.Path in some Pythons.
    written = isinstance(hint, typing.ForwardRef)  # a name that is not defined
    first, *inner = ("typing" if written else getattr(hint, "__module__", "typing")).split(".")
    home = [first, *(part for part in inner if not part.startswith("_"))]
    return name if home in (["builtins"], ["typing"]) else ".".join([*home, name])
