"""The contents of a checkpoint or savepoint: its states, their entries, and the form of their values."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import repeat
from typing import Any, Protocol

from penstock.base import pickling
from penstock.engine.checkpoint.metadata import Metadata
from penstock.engine.state.snapshot_file import Kind, Name, SlotSnapshot, SnapshotFile
from penstock.engine.state.state_schema import Schema
from penstock.engine.state.tables import Layout, Page
from penstock.errors import SnapshotError

BY_KEY = (Kind.KEYED, Kind.TIMERS)
"""Kinds of state whose entries belong to a key. Other kinds have one value per slot, always written whole."""


# --- states ---
def states_of(metadata: Metadata, uid: str) -> dict[Name, Schema]:
    """Return the states of an operator, with their schemas."""
    found: dict[Name, Schema] = {}
    for slot in slots_of(metadata, uid):
        for name, schema in slot.schemas.items():
            if name.uid == uid and "kind" not in found.get(name, {}):
                found[name] = schema
    return found


def slots_of(metadata: Metadata, uid: str) -> list[SlotSnapshot]:
    """Return the slots that hold a part of an operator."""
    require_operator(metadata.shapes, uid)
    return metadata.slots[: metadata.shapes[uid].parallelism]


def require_operator(there: Collection[str], uid: str) -> None:
    """Raise SnapshotError if a uid is not among those of a snapshot."""
    if uid not in there:
        known = ", ".join(f"'{known}'" for known in there) or "none"
        raise SnapshotError(f"there is no operator with the uid '{uid}'. Uids are: {known}")


def find(metadata: Metadata, uid: str, name: str, window: bool = False, kind: str | None = None) -> Name:
    """Return the only state of an operator with this name. Raise SnapshotError if there is none or several.

    `window` chooses between state of windows and other state. Without `kind`, states of all kinds are searched.
    """
    return find_among(states_of(metadata, uid), uid, name, window, kind)


def find_among(there: Collection[Name], uid: str, name: str, window: bool, kind: str | None) -> Name:
    """Return the state that `find` describes, among the known states of an operator."""
    scope = "window" if window else ""
    found = [n for n in there if (n.name, n.scope) == (name, scope) and kind in (None, n.kind.value)]
    if len(found) == 1:
        return found[0]
    if found:
        kinds = " or ".join(f"kind='{n.kind.value}'" for n in found)
        raise SnapshotError(f"operator '{uid}' has several states '{name}': say {kinds}")
    wanted = f"{kind or 'state'} '{name}'{' of windows' if window else ''}"
    listed = ", ".join(map(_describe, there)) or "none"
    raise SnapshotError(f"operator '{uid}' has no {wanted}. Its states are: {listed}")


def _describe(name: Name) -> str:
    return f"'{name.name}' ({name.kind.value}{', window=True' if name.scope else ''})"


def layout_of(name: Name, schema: Schema) -> Layout:
    """Return the layout of a keyed state's addresses."""
    if "layout" in schema:
        return Layout(schema["layout"])
    return Layout.TIMER if name.kind is Kind.TIMERS else Layout.PANE if name.scope else Layout.KEY


# --- entries ---
def entries(slot: SlotSnapshot, name: Name) -> Iterator[tuple[Any, Any]]:
    """Yield the addresses of a keyed state with their values, from a slot's series of files.

    Files are read from the newest to the oldest. A newer file, which sets or deletes an address, hides its older
    values. The oldest file holds each address once, so only the addresses of changes are kept in memory.
    """
    met: set[Any] = set()
    for ref in reversed(slot.files):
        remember = met.add if ref is not slot.files[0] else _forget
        with SnapshotFile(ref) as file:
            file.sections.get(name, []).reverse()
            for page in file.pages(name):
                addresses, values, gone = load_page(page, name)
                met.update(gone)
                for address, value in zip(reversed(addresses), reversed(values), strict=True):
                    if address not in met:
                        remember(address)
                        yield address, value


def _forget(address: Any) -> None:
    pass


def raw_pages(slot: SlotSnapshot, name: Name) -> Iterator[Page]:
    """Yield the pages of a state that is whole in a slot's newest file."""
    if slot.files:
        with SnapshotFile(slot.files[-1]) as file:
            yield from file.pages(name)


def whole_value(slot: SlotSnapshot, name: Name) -> Any:
    """Return the value of a state that every checkpoint writes whole; None if the slot has none."""
    return next((load_page(page, name) for page in raw_pages(slot, name)), None)


def load_page(page: Page, name: Name) -> Any:
    """Unpickle a page. The error for a failure names the state."""
    try:
        return pickling.loads(page)
    except Exception as error:
        raise SnapshotError(
            f"{name.kind.value} state '{name.name}' of operator '{name.uid}' cannot be unpickled: "
            f"{type(error).__name__}: {error}. The classes of its keys and values must be importable here"
        ) from error


def split_address(layout: Layout, address: Any) -> tuple[Any, Any]:
    """Return key and namespace of an address. State of a key alone has no namespace."""
    if layout is Layout.KEY:
        return address, None
    return (address[0], address[1]) if layout is Layout.PANE else (address[1], address[2])


# --- the stored form of values ---
class Form(Protocol):
    """The conversion between a function's value and a table's value. State that expires has a time beside each part."""

    def bare(self, stored: Any) -> Any:
        """Return the value without its times."""

    def last_access(self, stored: Any) -> Any:
        """Return the times without the value, in the shape of the value."""

    def stamp(self, value: Any, last_access: Any) -> Any:
        """Return the value with its times. A part without a known time, as after a change, gets the newest time."""


def form_of(schema: Schema) -> Form:
    """Return the form of a state with this schema."""
    if not schema.get("ttl"):
        return _Unstamped()
    return _STAMPED.get(schema["kind"], _StampedValue)()


class _Unstamped:
    """A value without a time stamp."""

    def bare(self, stored: Any) -> Any:
        return stored

    def last_access(self, stored: Any) -> Any:
        return None

    def stamp(self, value: Any, last_access: Any) -> Any:
        return value


class _StampedValue:
    """A value that has a single time stamp."""

    def bare(self, stored: Any) -> Any:
        return stored[0]

    def last_access(self, stored: Any) -> Any:
        return stored[1]

    def stamp(self, value: Any, last_access: Any) -> Any:
        return value, _newest(last_access)


class _StampedList:
    """A list with a time stamp for each element."""

    def bare(self, stored: Any) -> Any:
        return [value for value, _ in stored]

    def last_access(self, stored: Any) -> Any:
        return [time for _, time in stored]

    def stamp(self, value: Any, last_access: Any) -> Any:
        own = isinstance(last_access, list) and len(last_access) == len(value)
        return list(zip(value, last_access if own else repeat(_newest(last_access)), strict=False))


class _StampedMap:
    """A map with a time stamp for each entry."""

    def bare(self, stored: Any) -> Any:
        return {key: value for key, (value, _) in stored.items()}

    def last_access(self, stored: Any) -> Any:
        return {key: time for key, (_, time) in stored.items()}

    def stamp(self, value: Any, last_access: Any) -> Any:
        own, newest = last_access if isinstance(last_access, Mapping) else {}, _newest(last_access)
        return {key: (held, own.get(key, newest)) for key, held in value.items()}


_STAMPED: dict[str, type[Form]] = {"list": _StampedList, "map": _StampedMap}


def _newest(times: Any) -> Any:
    times = times.values() if isinstance(times, Mapping) else times
    return times if isinstance(times, int) else max(times)
