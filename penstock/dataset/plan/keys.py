"""Keys of elements: positions, names of fields, or one function of the element."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from penstock.common.types import Row
from penstock.dataset.functions import KeySelector
from penstock.dataset.plan.element_kinds import Kind, RowKind, TupleKind, check_position, describe, differ
from penstock.errors import ProgramError, TypeMismatch, UnsupportedKey

Path = tuple[int | str, ...]
"""The way to a field: positions and names, from the outside to the inside. The empty path is the whole element."""
WHOLE = ("*", "_")
_POSITION = re.compile(r"f(\d+)")


@dataclass(frozen=True)
class Key:
    """A key of the elements of one data set."""

    selector: Callable[[Any], Any]
    """Function that returns the key of an element."""
    kinds: tuple[Kind, ...]
    """Kind of each part of the key, as far as it is known."""
    is_selector: bool = False
    """True if the program gave a function instead of fields."""

    def check_matches(self, other: Key, where: str) -> None:
        """Raise an error if keys of this kind can never equal keys of another kind."""
        own, others = ("(" + ", ".join(map(describe, key.kinds)) + ")" for key in (self, other))
        if len(self.kinds) != len(other.kinds):
            raise TypeMismatch(f"{where}: the keys have {len(self.kinds)} and {len(other.kinds)} fields")
        if any(map(differ, self.kinds, other.kinds)):
            raise TypeMismatch(f"{where}: the keys have the types {own} and {others}, which are never equal")


def key_of_fields(keys: Sequence[Any], kind: Kind, method: str) -> Key:
    """Return the key that a program has named in the arguments of a method."""
    if not keys:
        raise ProgramError(f"{method} needs at least one key: a position, the name of a field, or a function")
    if any(callable(key) or isinstance(key, KeySelector) for key in keys):
        if len(keys) > 1:
            raise ProgramError(f"{method} takes either fields or one function, not {len(keys)} keys with a function")
        return Key(ComputedKey(keys[0]), (None,), is_selector=True)
    paths = [_path(key, kind, method) for key in keys]
    return Key(FieldKey(tuple(path for path, _ in paths)), tuple(found for _, found in paths))


def _path(key: Any, kind: Kind, method: str) -> tuple[Path, Kind]:
    if isinstance(key, int) and not isinstance(key, bool):
        return _step(key, kind, method, ())
    if not isinstance(key, str) or not key:
        raise TypeMismatch(f"{method} takes positions, names of fields or one function, not {key!r}")
    path: Path = ()
    for part in key.split("."):
        if part in WHOLE:
            continue
        path, kind = _step(part, kind, method, path)
    return path, kind


def _step(part: int | str, kind: Kind, method: str, before: Path) -> tuple[Path, Kind]:
    """Append one field to the path. If the kind of the element is unknown, the field is found when the program runs."""
    match kind:
        case None:
            return (*before, part), None
        case RowKind(names, fields) if part in names:
            return (*before, part), fields[names.index(str(part))]
        case TupleKind(fields) | RowKind(_, fields):
            position = _position(part)
            if position is None:
                raise LookupError(f"{method}: there is no field {part!r} in {describe(kind)}")
            check_position(kind, position, method)
            return (*before, position), fields[position]
        case type() if hasattr(kind, "__dataclass_fields__") and part in kind.__dataclass_fields__:
            return (*before, part), None
    raise TypeMismatch(f"{method}: elements of type {describe(kind)} have no fields: give a function, or '*'")


def _position(part: int | str) -> int | None:
    if isinstance(part, int):
        return part
    named = _POSITION.fullmatch(part)
    return int(named[1]) if named else None


class FieldKey:
    """Reads some fields of an element: one value for one field, a tuple for several."""

    def __init__(self, paths: tuple[Path, ...]) -> None:
        self.paths = paths
        self._plain: Callable[[Any], Any] | None = None
        if all(len(path) == 1 and isinstance(path[0], int) for path in paths):
            self._plain = itemgetter(*(path[0] for path in paths))

    def __call__(self, element: Any) -> Any:
        if self._plain is not None:
            key = self._plain(element)
        elif len(self.paths) == 1:
            key = read_field(element, self.paths[0])
        else:
            key = tuple(read_field(element, path) for path in self.paths)
        if key is None or (type(key) is tuple and None in key):
            self._check_nulls(element)
        return key

    def _check_nulls(self, element: Any) -> None:
        """Raise an error if the key field of a tuple is None. In a row, None is a normal value."""
        for path in self.paths:
            holder = read_field(element, path[:-1]) if path else None
            if read_field(element, path) is None and not isinstance(holder, Row):
                raise UnsupportedKey(f"the key field {'.'.join(map(str, path)) or '*'} of {element!r} is None")


class ComputedKey:
    """Computes the key of an element by the program's function."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, element: Any) -> Any:
        function = self.function
        key = function.get_key(element) if isinstance(function, KeySelector) else function(element)
        if key is None:
            raise UnsupportedKey(f"the key of {element!r} is None")
        return key


def read_field(element: Any, path: Path) -> Any:
    """Return a field of an element."""
    for part in path:
        if isinstance(part, int) or (isinstance(element, Row) and part in (element.get_field_names() or ())):
            element = element[part]
        elif not isinstance(element, (tuple, list, Row)) and hasattr(element, part):
            element = getattr(element, part)
        elif (position := _position(part)) is not None:
            element = element[position]
        else:
            raise LookupError(f"there is no field {part!r} in {element!r}")
    return element
