"""Answers as JSON for people and for tools that do not know Python. Values have their JSON form if there is one."""

from __future__ import annotations

import dataclasses
import datetime
import math
from base64 import b64encode
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from enum import Enum
from typing import Any

from penstock.common.types import Row
from penstock.engine.queryable.query_requests import Cut, Entry, QueryAnswer, QueryRequest
from penstock.errors import QueryError, QueryTimeout


def answer_as_json(answer: QueryAnswer) -> dict[str, Any]:
    """Return an answer in the form of the REST API."""
    return {
        "state": answer.name,
        "kind": answer.kind,
        "cut": _cut(answer.cut),
        "entries": [_entry(entry) for entry in answer.entries],
        "next": answer.next_token,
    }


def _cut(cut: Cut) -> dict[str, int]:
    """Return a cut in the form of the REST API. Slot and step appear only within an epoch."""
    named = {"attempt": cut.attempt, "epoch": cut.epoch, "processing-time": cut.processing_time}
    return named if cut.slot is None else {**named, "slot": cut.slot, "step": cut.step}


def look_up(
    query: Callable[[QueryRequest], Future[QueryAnswer]], name: str, asked: Mapping[str, Any], seconds: float
) -> dict[str, Any]:
    """Answer a request in JSON. It has `keys`, or asks for all keys with optional `limit`, `token` and `key-groups`."""
    unknown = sorted(set(asked) - {"keys", "limit", "token", "key-groups"})
    if unknown:
        raise QueryError(f"a lookup cannot have '{unknown[0]}'; allowed are keys, or limit, token and key-groups")
    keys, groups, token = asked.get("keys"), asked.get("key-groups"), asked.get("token")
    if not isinstance(keys, list | None) or not isinstance(groups, list | None):
        raise QueryError("keys and key-groups must be lists")
    if not isinstance(token, str | None):
        raise QueryError("a token must be a string")
    try:
        request = QueryRequest(
            name,
            None if keys is None else tuple(map(key_of_json, keys)),
            None if groups is None else tuple(groups),
            asked.get("limit"),
            token,
        )
    except ValueError as error:
        raise QueryError(str(error)) from None
    try:
        return answer_as_json(query(request).result(seconds))
    except TimeoutError:
        raise QueryTimeout(f"there was no answer within {seconds:g} s") from None


def key_of_json(sent: Any) -> Any:
    """Return a key given in JSON. An array becomes a tuple, because a list cannot be a key."""
    return tuple(map(key_of_json, sent)) if isinstance(sent, list) else sent


def _entry(entry: Entry) -> dict[str, Any]:
    value = {"value": readable(entry.value)} if entry.found else {}
    return {"key": readable(entry.key), "found": entry.found, **value}


def readable(value: Any) -> Any:
    """Return a value in JSON's own types: bytes in base64, times in ISO form, and other objects as their text."""
    if value is None or isinstance(value, bool | str | int):
        return value.name if isinstance(value, Enum) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    parts = _parts(value)
    return str(value) if parts is None else parts


def _parts(value: Any) -> Any:
    """Return the parts of a value that consists of several values, or None for any other value."""
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: readable(part) for key, part in value.items()}
        return [{"key": readable(key), "value": readable(part)} for key, part in value.items()]
    names = value.get_field_names() if isinstance(value, Row) else getattr(value, "_fields", None)
    if names is None and dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: readable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if names is not None:
        return {name: readable(part) for name, part in zip(names, value, strict=True)}
    if isinstance(value, list | tuple | Row | set | frozenset):
        return [readable(part) for part in value]
    return None
