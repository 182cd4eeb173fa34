"""Conversion of saved state to the types that a changed program declares.

On a restore, the saved schema is compared with the descriptor of the program. The result is one of three: no change, a
function that converts every stored value, or a refusal. The conversion follows the structure of a value (rows, tuples,
lists, maps, numbers) along its declared types. It finds dataclass instances by searching the value itself, because
annotations do not guarantee the types of the fields.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable
from functools import singledispatch
from typing import Any, TypeAlias

from penstock.api.state.descriptors import (
    StateDescriptor,
)
from penstock.common.basic_types import (
    DataclassTypeInfo,
    DoubleTypeInfo,
    EnumTypeInfo,
    FloatTypeInfo,
    PickledBytesTypeInfo,
)
from penstock.common.composite_types import ByteArrayTypeInfo, ListTypeInfo, MapTypeInfo, RowTypeInfo, TupleTypeInfo
from penstock.common.typeinfo import TypeInformation
from penstock.common.types import Row, RowKind, make_row
from penstock.engine.state.state_schema import (
    PICKLED,
    Schema,
    class_schema,
    classes_in,
    has_default,
    is_slot,
    parts_of,
    qualified_name,
    schema_of,
    schema_text,
    type_schema,
    type_text,
    types_of,
)
from penstock.errors import StateMigrationException, TypeMismatch

__all__ = ["migration"]

Conversion: TypeAlias = Callable[[Any], Any]

_WIDER = {
    "BYTE": ("SHORT", "INT", "LONG", "BIG_INT", "FLOAT", "DOUBLE"),
    "SHORT": ("INT", "LONG", "BIG_INT", "FLOAT", "DOUBLE"),
    "INT": ("LONG", "BIG_INT", "DOUBLE"),
    "LONG": ("BIG_INT",),
    "FLOAT": ("DOUBLE",),
}
"""Types that a number of each type can become without loss."""
_PLACES = {"list": "its elements", "map": "its values", "aggregating": "the accumulator"}


class _Refused(Exception):
    """The reason why a change is not allowed. `migration` adds the state's name and its two schemas."""


def migration(saved: Schema, declared: StateDescriptor) -> Conversion | None:
    """Return the function that converts a stored value to the declared type, or None if no conversion is needed.

    A stored value is an entry of a table: the value, the list of elements or the dict of entries. If the state
    expires, each value, element or map entry is stored with a time. Dataclass instances are changed in place.

    Raise StateMigrationException if the change is not allowed. The function raises it for a value that does not
    fit.
    """
    now = schema_of(declared)
    try:
        convert = None if saved == now else _conversion_of_stored(saved, now, declared)
    except _Refused as reason:
        raise _error(reason, saved, declared) from None
    return None if convert is None else _reporting(convert, saved, declared)


def _error(reason: _Refused, saved: Schema, declared: StateDescriptor) -> StateMigrationException:
    was, now = schema_text(saved), schema_text(schema_of(declared))
    return StateMigrationException(
        f"state '{declared.get_name()}' was saved as {was} and is now declared as {now}: {reason}"
    )


def _reporting(convert: Conversion, saved: Schema, declared: StateDescriptor) -> Conversion:
    def convert_or_explain(stored: Any) -> Any:
        try:
            return convert(stored)
        except _Refused as reason:
            raise _error(reason, saved, declared) from None

    return convert_or_explain


def _conversion_of_stored(saved: Schema, now: Schema, declared: StateDescriptor) -> Conversion | None:
    _require_same_kind(saved, now)
    infos, kind = types_of(declared), now["kind"]
    change = _conversion(saved["value"], infos["value"], _PLACES.get(kind, "the value"))
    each = _in_turn(change, _repair(saved["classes"], infos))
    if each is not None and now["ttl"]:
        each = _keep_stamp(each)
    if kind == "map":
        return _map_conversion(_key_check(saved["key"], infos["key"], "its keys"), each, "the map")
    return _list_conversion(each, "the list") if kind == "list" else each


def _require_same_kind(saved: Schema, now: Schema) -> None:
    if saved["kind"] != now["kind"]:
        raise _Refused(
            f"{saved['kind']} state cannot become {now['kind']} state. Declare it as before, or give the new state "
            "another name"
        )
    if saved["ttl"] != now["ttl"]:
        had, has = ("with", "without") if saved["ttl"] else ("without", "with")
        raise _Refused(
            f"it was saved {had} a time to live and is declared {has} one, and that cannot be switched on or off for "
            f"saved state. Declare it {had} a time to live as before, or give the new state another name"
        )


def _in_turn(first: Conversion | None, second: Conversion | None) -> Conversion | None:
    if first is None or second is None:
        return first or second
    return lambda value: second(first(value))


def _keep_stamp(convert: Conversion) -> Conversion:
    return lambda pair: (convert(pair[0]), pair[1])


# --- along the types ---
def _conversion(saved: Schema, info: TypeInformation, where: str) -> Conversion | None:
    """Return the function that turns a saved value into one of the declared type, or None if it can stay."""
    if isinstance(info, PickledBytesTypeInfo):
        return None
    if saved["type"] == PICKLED:
        return _fitting(info, where)
    if saved["type"] != type_schema(info)["type"]:
        return _widening(saved, info, where)
    convert = _inner_conversion(info, saved, where)
    return None if convert is None else lambda value: None if value is None else convert(value)


def _fitting(info: TypeInformation, where: str) -> Conversion:
    """Return a function for values without a declared type.

    It checks and converts them and completes their dataclasses.
    """
    complete = _Repair({name: (found, set()) for name, found in classes_in([info]).items()})
    return lambda value: complete(_fit(value, info, where))


def _fit(value: Any, info: TypeInformation, where: str) -> Any:
    try:
        return info.fit([value])[0]
    except TypeMismatch as error:
        raise _Refused(f"{where}: {error}. Every saved value must fit the declared type") from None


def _widening(saved: Schema, info: TypeInformation, where: str) -> Conversion | None:
    wider = _WIDER.get(saved["type"], ())
    if type_schema(info)["type"] not in wider:
        allowed = f"may become {', '.join(wider)} or undeclared" if wider else "may only become undeclared"
        raise _Refused(f"{where}: {type_text(saved)} {allowed}, not {type_text(type_schema(info))}")
    if saved["type"] == "FLOAT" or not isinstance(info, FloatTypeInfo | DoubleTypeInfo):
        return None
    return lambda value: _equal_fit(value, info, where)


def _equal_fit(value: Any, info: TypeInformation, where: str) -> Any:
    fitted = _fit(value, info, where)
    if fitted is not value and fitted != value:
        raise _Refused(f"{where}: {value!r} cannot become {info.notation} without a change of the value")
    return fitted


@singledispatch
def _inner_conversion(info: TypeInformation, saved: Schema, where: str) -> Conversion | None:
    """Return the function that converts the parts of a value whose own type does not change, or None if no part
    changes.
    """
    return None


@_inner_conversion.register(DataclassTypeInfo)
@_inner_conversion.register(EnumTypeInfo)
def _(info: DataclassTypeInfo | EnumTypeInfo, saved: Schema, where: str) -> Conversion | None:
    name = qualified_name(info.python_class)
    if saved["class"] != name:
        raise _Refused(
            f"{where}: {saved['class']} cannot become {name}. The name and the module of a class must not change"
        )
    return None


@_inner_conversion.register
def _(info: ListTypeInfo, saved: Schema, where: str) -> Conversion | None:
    return _list_conversion(_conversion(saved["element"], info.elem_type, f"elements of {where}"), where)


@_inner_conversion.register
def _(info: ByteArrayTypeInfo, saved: Schema, where: str) -> Conversion | None:
    return None


@_inner_conversion.register
def _(info: MapTypeInfo, saved: Schema, where: str) -> Conversion | None:
    keys = _key_check(saved["key"], info.key_type, f"keys of {where}")
    return _map_conversion(keys, _conversion(saved["value"], info.value_type, f"values of {where}"), where)


@_inner_conversion.register
def _(info: TupleTypeInfo, saved: Schema, where: str) -> Conversion | None:
    fields = _by_position(info.field_types, saved["fields"], where)
    if not any(fields):
        return None
    return lambda value: _apply(fields, _require_fields(value, len(fields), where))


@_inner_conversion.register
def _(info: RowTypeInfo, saved: Schema, where: str) -> Conversion | None:
    names = [field["name"] for field in saved["fields"]]
    if info.field_names is None and not any(names):
        return _conversion_of_unnamed_row(info, saved, where)
    if info.field_names is None or None in names:
        raise _Refused(f"{where}: a row cannot gain or lose all field names at once. Declare it as before")
    known = {field["name"]: field["type"] for field in saved["fields"]}
    declared = list(zip(info.field_names, info.field_types, strict=True))
    fields = [_conversion(known[n], part, f"field {n!r} of {where}") if n in known else None for n, part in declared]
    if not any(fields) and names == list(info.field_names):
        return None
    return _conversion_of_named_row(names, info.field_names, fields, where)


def _conversion_of_named_row(
    saved: list[str], declared: tuple[str, ...], fields: list[Conversion | None], where: str
) -> Conversion:
    def convert(value: Any) -> Row:
        held = _fields_by_name(value, saved, where)
        return make_row(declared, _apply(fields, map(held.get, declared)), _kind_of_row(value))

    return convert


def _conversion_of_unnamed_row(info: RowTypeInfo, saved: Schema, where: str) -> Conversion | None:
    """Return the conversion of a row declared without names, or None. The row keeps the names that it has."""
    fields = _by_position(info.field_types, saved["fields"], where)
    if not any(fields):
        return None

    def convert(value: Any) -> Row:
        values = _apply(fields, _require_fields(value, len(fields), where))
        names = (value.get_field_names() if isinstance(value, Row) else None) or info.get_field_names()
        return make_row(tuple(names), values, _kind_of_row(value))

    return convert


def _kind_of_row(value: Any) -> RowKind:
    return value.get_row_kind() if isinstance(value, Row) else RowKind.INSERT


def _fields_by_name(value: Any, names: list[str], where: str) -> dict[str, Any]:
    """Return the fields of a stored row, which may be a Row, a dict, or values in the saved order."""
    if isinstance(value, Row) and value.get_field_names() is not None:
        value = value.as_dict()
    if not isinstance(value, dict):
        return dict(zip(names, _require_fields(value, len(names), where), strict=True))
    if value.keys() != set(names):
        raise _Refused(f"{where}: a saved row has the fields {', '.join(map(str, value))}, not {', '.join(names)}")
    return value


def _by_position(declared: tuple[TypeInformation, ...], saved: list[Schema], where: str) -> list[Conversion | None]:
    if len(declared) != len(saved):
        raise _Refused(
            f"{where}: {len(saved)} fields cannot become {len(declared)}, because rows without field names do not "
            "show which field is new or missing. Rows with field names may gain and lose fields"
        )
    paired = enumerate(zip(saved, declared, strict=True))
    return [_conversion(field["type"], part, f"field {index} of {where}") for index, (field, part) in paired]


def _apply(fields: list[Conversion | None], values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(v if convert is None else convert(v) for convert, v in zip(fields, values, strict=True))


def _require_fields(value: Any, count: int, where: str) -> Any:
    if len(_require(value, (tuple, list, Row), where)) != count:
        raise _Refused(f"{where}: {len(value)} fields were saved where {count} were declared")
    return value


def _require(value: Any, accepted: tuple[type, ...], where: str) -> Any:
    """Check a saved value: types are not enforced while a program runs, so it may not be of the declared type."""
    if not isinstance(value, accepted):
        names = " or ".join(kind.__name__ for kind in accepted)
        raise _Refused(f"{where}: a {type(value).__name__} was saved where {names} was declared")
    return value


def _list_conversion(each: Conversion | None, where: str) -> Conversion | None:
    return None if each is None else lambda value: list(map(each, _require(value, (list, tuple), where)))


def _map_conversion(keys: Conversion | None, each: Conversion | None, where: str) -> Conversion | None:
    def convert(value: Any) -> dict[Any, Any]:
        held: dict[Any, Any] = _require(value, (dict,), where)
        checked = held if keys is None else map(keys, held)
        return dict(zip(checked, held.values() if each is None else map(each, held.values()), strict=True))

    return None if keys is None and each is None else convert


def _key_check(saved: Schema, info: TypeInformation, where: str) -> Conversion | None:
    """Return a check of a map's keys, or None.

    Keys must stay unchanged; undeclared keys may be declared if they fit.
    """
    declared = type_schema(info)
    if saved == declared or declared["type"] == PICKLED:
        return None
    if saved["type"] == PICKLED:
        return lambda key: _equal_fit(key, info, where)
    raise _Refused(
        f"{where}: the type of a map's keys must stay, and {type_text(saved)} cannot become {type_text(declared)}, "
        "only undeclared"
    )


# --- through the classes ---
_Changed: TypeAlias = dict[str, tuple[type, set[str]]]
"""Classes whose fields changed, by name, each with the names of its removed fields."""


def _repair(saved: dict[str, Schema], declared: dict[str, TypeInformation]) -> Conversion | None:
    """Return a function that adapts instances of changed classes, or None if no class changed."""
    changed: _Changed = {}
    for name, found in classes_in(declared.values()).items():
        if name in saved and (removed := _find_removed_fields(name, saved[name], class_schema(found))) is not None:
            changed[name] = found, removed
    for name in classes_in(_map_keys(declared)):
        if name in changed:
            raise _Refused(f"the fields of {name} changed, and it is in the keys of a map, which must stay as they are")
    return _Repair(changed) if changed else None


def _map_keys(declared: dict[str, TypeInformation]) -> list[TypeInformation]:
    parts = [part for info in declared.values() for part in parts_of(info)]
    keys = [part.key_type for part in parts if isinstance(part, MapTypeInfo)]
    return [*keys, declared["key"]] if "key" in declared else keys


def _find_removed_fields(name: str, saved: Schema, now: Schema) -> set[str] | None:
    """Return the fields that a class lost, or None if it neither lost nor gained any."""
    if saved["class"] != now["class"]:
        raise _Refused(f"{name} was saved as a class of the kind {saved['class']}, and is now a {now['class']}")
    if saved["class"] == "enum":
        _require_members(name, saved["members"], now["members"])
        return None
    if saved["slots"] or now["slots"]:
        _require_same_layout(name, _layout(saved), _layout(now))
    before, after = ({field["name"]: field for field in schema["fields"]} for schema in (saved, now))
    for field in after.values():
        _require_field(name, before.get(field["name"]), field)
    return None if before.keys() == after.keys() else before.keys() - after.keys()


def _require_members(name: str, saved: dict[str, str], now: dict[str, str]) -> None:
    lost = [f"{member} = {value}" for member, value in saved.items() if now.get(member) != value]
    if lost:
        raise _Refused(
            f"the enum {name} no longer has {', '.join(lost)}. Members may be added, but those that were saved must "
            "keep their names and values"
        )


def _layout(dataclass: Schema) -> str:
    return ", ".join(field["name"] for field in dataclass["fields"]) + (" in slots" if dataclass["slots"] else "")


def _require_same_layout(name: str, saved: str, now: str) -> None:
    if saved != now:
        raise _Refused(
            f"the fields of {name} were {saved}, and are now {now}. A dataclass with slots must keep its fields and "
            "their order, for pickle restores them by these; one without slots may gain and lose fields"
        )


def _require_field(name: str, before: Schema | None, after: Schema) -> None:
    if before is None and not after["default"]:
        raise _Refused(
            f"the field {after['name']!r} of {name} is new and has no default, so that saved instances would lack it. "
            "Give it a default or a default_factory"
        )
    if before is not None and not _accepts(after["type"], before["type"]):
        raise _Refused(
            f"the field {after['name']!r} of {name} was {before['type']} and is now {after['type']}. An annotation may "
            "become wider: a union with what it was, float where it was int, Any"
        )


def _accepts(annotation: str, other: str) -> bool:
    """Return True if an annotation allows everything that another one allows.

    As in all annotations, float allows int.
    """
    accepted = _alternatives(annotation)
    if "float" in accepted:
        accepted.add("int")
    return bool(accepted & {"Any", "object"}) or _alternatives(other) <= accepted


def _alternatives(annotation: str) -> set[str]:
    """Return the members of a union, without their modules.

    Names that could not be resolved stay as the user wrote them.
    """
    found, depth = [""], 0
    for character in re.sub(r"(?:[\w<>]+\.)+", "", annotation):
        depth += (character == "[") - (character == "]")  # a bar inside brackets belongs to a part
        if character == "|" and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return {alternative.strip() for alternative in found}


class _Repair:
    """Searches a value, however deep, and adapts in place the instances of changed classes."""

    def __init__(self, changed: _Changed) -> None:
        self._changed = changed
        self._removed: dict[type, set[str] | None] = {}

    def __call__(self, value: Any) -> Any:
        pending, seen = [value], set()
        while pending:
            item = pending.pop()
            if id(item) not in seen:
                seen.add(id(item))
                self._repair(item)
                pending.extend(_contents(item))
        return value

    def _repair(self, item: Any) -> None:
        kind = type(item)
        if kind not in self._removed:
            self._removed[kind] = self._fields_to_remove(kind)
        removed = self._removed[kind]
        if removed is not None:
            _complete(item, removed)

    def _fields_to_remove(self, kind: type) -> set[str] | None:
        """Return the fields that instances lose because their class or a base changed, or None if they stay."""
        changed = [
            (base, *self._changed[qualified_name(base)])
            for base in kind.__mro__
            if qualified_name(base) in self._changed
        ]
        if not changed or not dataclasses.is_dataclass(kind):
            return None
        if any(base is not now for base, now, _ in changed):
            raise _Refused(
                f"{qualified_name(kind)} was saved together with its class, since it could not be imported. Only "
                "classes at the top level of a module can change"
            )
        return {name for *_, removed in changed for name in removed} - {f.name for f in dataclasses.fields(kind)}


def _complete(instance: Any, removed: set[str]) -> None:
    """Give a restored instance the fields that its class now has: unpickling calls no __init__."""
    attributes = getattr(instance, "__dict__", {})
    for name in removed:
        attributes.pop(name, None)
    for field in dataclasses.fields(instance):
        in_slot = is_slot(type(instance), field.name) and hasattr(instance, field.name)
        if field.name not in attributes and not in_slot:
            object.__setattr__(instance, field.name, _default_of(field, type(instance)))  # the class may be frozen


def _default_of(field: dataclasses.Field[Any], owner: type) -> Any:
    if not has_default(field):
        raise _Refused(f"a saved {qualified_name(owner)} has no field {field.name!r}, and the field has no default")
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _contents(item: Any) -> Iterable[Any]:
    if isinstance(item, dict):
        return item.values()
    if isinstance(item, list | tuple | set | frozenset | Row):
        return item
    if dataclasses.is_dataclass(type(item)):
        return [getattr(item, field.name, None) for field in dataclasses.fields(item)]
    return ()
