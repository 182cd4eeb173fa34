"""The row type that a JSON schema describes, as far as types can express it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from penstock.common.composite_types import RowTypeInfo
from penstock.common.type_information import TypeInformation
from penstock.common.typeinfo import BasicTypeInfo, Types

_FORMATS: dict[str, Callable[[], TypeInformation]] = {
    "date": Types.SQL_DATE,
    "time": Types.SQL_TIME,
    "date-time": Types.SQL_TIMESTAMP,
}
_SIMPLE: dict[str, Callable[[], TypeInformation]] = {
    "boolean": Types.BOOLEAN,
    "number": Types.BIG_DEC,
    "integer": Types.BIG_DEC,
}


def row_type_of(json_schema: str) -> RowTypeInfo:
    """Return the row type that a JSON schema describes. Raise ValueError if there is none."""
    try:
        schema = json.loads(json_schema)
    except ValueError as error:
        raise ValueError(f"the JSON schema is not JSON: {error}") from None
    found = _Converter(schema).type_of(schema, "<root>", ())
    if not isinstance(found, RowTypeInfo):
        described = "null" if found is None else found.notation
        raise ValueError(f"the JSON schema must describe an object, but describes {described}")
    return found


class _Converter:
    def __init__(self, root: Any) -> None:
        self._root = root

    def type_of(self, node: Any, where: str, within: tuple[str, ...]) -> TypeInformation | None:
        """Return the type at a node; None if only null is allowed there."""
        if not isinstance(node, dict):
            raise ValueError(f"{where} of the JSON schema must be an object, not {node!r}")
        if "$ref" in node:
            return self._follow(node["$ref"], where, within)
        if "oneOf" in node:
            return _the_one({self.type_of(part, where, within) for part in node["oneOf"]}, where)
        kinds = node.get("type", "object" if "properties" in node else None)
        if kinds is None:
            raise ValueError(f"{where} of the JSON schema has none of type, properties, oneOf and $ref")
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return _the_one({self._of_kind(kind, node, where, within) for kind in kinds}, where)

    def _of_kind(self, kind: str, node: dict[str, Any], where: str, within: tuple[str, ...]) -> TypeInformation | None:
        if kind == "null":
            return None
        if kind == "string":
            return _string_type(node)
        if kind in _SIMPLE:
            return _SIMPLE[kind]()
        if kind == "object":
            return self._row(node, where, within)
        if kind == "array":
            return self._array(node, where, within)
        raise ValueError(f"{where} of the JSON schema has the unknown type {kind!r}")

    def _row(self, node: dict[str, Any], where: str, within: tuple[str, ...]) -> TypeInformation:
        fields = node.get("properties", {})
        types = [self._part(part, f"{where}/{name}", within) for name, part in fields.items()]
        return Types.ROW_NAMED(list(fields), types)

    def _array(self, node: dict[str, Any], where: str, within: tuple[str, ...]) -> TypeInformation:
        items = node.get("items")
        if isinstance(items, list):
            if node.get("additionalItems") is not False:
                raise ValueError(f"{where}: a list of items must be closed by additionalItems: false")
            return Types.ROW([self._part(part, f"{where}[{i}]", within) for i, part in enumerate(items)])
        if items is None:
            raise ValueError(f"{where} of the JSON schema is an array without items")
        element = self._part(items, f"{where}[]", within)
        return Types.BASIC_ARRAY(element) if isinstance(element, BasicTypeInfo) else Types.OBJECT_ARRAY(element)

    def _part(self, node: Any, where: str, within: tuple[str, ...]) -> TypeInformation:
        return self.type_of(node, where, within) or Types.PICKLED_BYTE_ARRAY()

    def _follow(self, reference: str, where: str, within: tuple[str, ...]) -> TypeInformation | None:
        if not reference.startswith("#"):
            raise ValueError(f"{where} of the JSON schema refers to {reference!r}, which is outside of the schema")
        if reference in within:
            raise ValueError(f"{where} of the JSON schema refers to itself; rows have a fixed depth")
        node = self._root
        for step in reference.removeprefix("#").strip("/").split("/"):
            node = node.get(step.replace("~1", "/").replace("~0", "~")) if step else node
            if node is None:
                raise ValueError(f"{where} of the JSON schema refers to {reference!r}, which does not exist")
        return self.type_of(node, where, (*within, reference))


def _string_type(node: dict[str, Any]) -> TypeInformation:
    if node.get("contentEncoding") == "base64":
        return Types.PRIMITIVE_ARRAY(Types.BYTE())
    return _FORMATS.get(node.get("format", ""), Types.STRING)()


def _the_one(types: set[TypeInformation | None], where: str) -> TypeInformation | None:
    """Return the type of a union. A union of null and one other type has that other type."""
    others = types - {None}
    if len(others) > 1:
        raise ValueError(
            f"{where} of the JSON schema may be any of {sorted(map(str, others))}; a field must have one type"
        )
    return others.pop() if others else None
