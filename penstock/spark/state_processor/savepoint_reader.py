"""Reads a checkpoint or savepoint: lists its states, and reads their values as a DataFrame or as Python objects."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain
from typing import Any

from penstock.engine.checkpoint.store import read_snapshot
from penstock.engine.savepoints.contents import (
    entries,
    find,
    form_of,
    layout_of,
    slots_of,
    split_address,
    states_of,
    whole_value,
)
from penstock.engine.savepoints.description import OperatorInfo, as_html, describe, has_ttl, operators_of
from penstock.engine.state.snapshot_file import Kind, Name, SlotSnapshot
from penstock.engine.state.state_schema import Schema
from penstock.spark.state_processor.state_sessions import session_of
from penstock.spark.state_processor.state_tasks import Outfit, apply_in_tasks

log = logging.getLogger("penstock.state")

_LONG: Schema = {"type": "LONG"}
_MASTER_VARIABLE = "PENSTOCK_MASTER"
Triples = Iterator[tuple[Any, Any, Any]]
"""Tuples of key, namespace and value."""


class SavepointReader:
    """A checkpoint or savepoint that is read. It is never changed."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.metadata = read_snapshot(path)

    @classmethod
    def read(cls, path: str) -> SavepointReader:
        """Open a snapshot by its folder, or by the metadata file in it."""
        return cls(path)

    # --- what there is ---
    def operators(self) -> list[OperatorInfo]:
        """Return every operator with its states. Only the metadata is read, and no user code runs."""
        return operators_of(self.metadata)

    def describe(self) -> str:
        """Return the operators and their states as a text table."""
        return describe(self.metadata)

    def __repr__(self) -> str:
        return f"SavepointReader('{self.path}')\n{self.describe()}"

    def _repr_html_(self) -> str:
        return as_html(self.metadata, self.path)

    # --- what it holds ---
    def read_state(self, uid: str, name: str, spark: Any = None, window: bool = False, kind: str | None = None) -> Any:
        """Return a state as a DataFrame. A task of its own reads each slot's files.

        Keyed state has the columns key, namespace and value, with map_key for the entries of maps, and last_access if
        the state expires. List and union state has the column element, and broadcast state has key and value. Timers
        have time, key and namespace. `kind` is needed only if states of several kinds have the same name.
        """
        found, schema = self._find(uid, name, window, kind)
        of_map = found.kind is Kind.KEYED and schema.get("kind") == "map"
        view = (_map_view if of_map else _VIEWS[found.kind])(found, schema)
        return _frame(spark or _session(), view, self._slots(found), f"state '{name}' of operator '{uid}'")

    def read_python(self, uid: str, name: str, window: bool = False, kind: str | None = None) -> Triples:
        """Yield a state as (key, namespace, value), read in this process without Spark, in no particular order.

        A value is the whole list or dict of a key, without times of access. Timers are (key, namespace, time),
        broadcast state is (key, None, value), and list and union state is (None, None, element).
        """
        found, schema = self._find(uid, name, window, kind)
        read = _PYTHON[found.kind]
        return chain.from_iterable(read(slot, found, schema) for slot in self._slots(found))

    def _find(self, uid: str, name: str, window: bool, kind: str | None) -> tuple[Name, Schema]:
        found = find(self.metadata, uid, name, window, kind)
        return found, states_of(self.metadata, uid)[found]

    def _slots(self, name: Name) -> list[SlotSnapshot]:
        """Return the slots to read. One slot suffices for broadcast state, of which all slots have the same copy."""
        slots = slots_of(self.metadata, name.uid)
        return [slot for slot in slots if name in slot.schemas][:1] if name.kind is Kind.BROADCAST else slots


# --- plain Python ---
def _triples_by_key(slot: SlotSnapshot, name: Name, schema: Schema) -> Triples:
    layout, form = layout_of(name, schema), form_of(schema)
    for address, stored in entries(slot, name):
        yield (*split_address(layout, address), form.bare(stored))


def _timer_triples(slot: SlotSnapshot, name: Name, schema: Schema) -> Triples:
    for (time, key, namespace), _ in entries(slot, name):
        yield key, namespace, time


def _item_triples(slot: SlotSnapshot, name: Name, schema: Schema) -> Triples:
    for element in whole_value(slot, name) or ():
        yield None, None, element


def _broadcast_triples(slot: SlotSnapshot, name: Name, schema: Schema) -> Triples:
    for key, value in (whole_value(slot, name) or {}).items():
        yield key, None, value


_PYTHON: dict[Kind, Callable[[SlotSnapshot, Name, Schema], Triples]] = {
    Kind.KEYED: _triples_by_key,
    Kind.TIMERS: _timer_triples,
    Kind.LIST: _item_triples,
    Kind.UNION: _item_triples,
    Kind.BROADCAST: _broadcast_triples,
}


# --- as rows ---
Rows = Iterator[tuple[Any, ...]]


@dataclass(frozen=True)
class View:
    """A state as a table: its columns with their declared types, or None, and the function that reads its rows."""

    columns: dict[str, Schema | None]
    rows: Callable[[SlotSnapshot], Rows]


def _view_by_key(name: Name, schema: Schema) -> View:
    value = schema.get("value")
    if schema.get("kind") == "list":
        value = {"type": "LIST", "element": value}
    columns = {"key": None, "namespace": None, "value": value}
    if has_ttl(schema):
        columns["last_access"] = {"type": "LIST", "element": _LONG} if schema["kind"] == "list" else _LONG
    return View(columns, partial(_rows_by_key, name, schema))


def _rows_by_key(name: Name, schema: Schema, slot: SlotSnapshot) -> Rows:
    layout, form, expires = layout_of(name, schema), form_of(schema), has_ttl(schema)
    for address, stored in entries(slot, name):
        row = (*split_address(layout, address), form.bare(stored))
        yield (*row, form.last_access(stored)) if expires else row


def _map_view(name: Name, schema: Schema) -> View:
    columns = {"key": None, "namespace": None, "map_key": schema["key"], "value": schema["value"]}
    if has_ttl(schema):
        columns["last_access"] = _LONG
    return View(columns, partial(_map_rows, name, schema))


def _map_rows(name: Name, schema: Schema, slot: SlotSnapshot) -> Rows:
    layout, form, expires = layout_of(name, schema), form_of(schema), has_ttl(schema)
    for address, stored in entries(slot, name):
        owner, times = split_address(layout, address), form.last_access(stored)
        for map_key, value in form.bare(stored).items():
            yield (*owner, map_key, value, times[map_key]) if expires else (*owner, map_key, value)


def _timer_view(name: Name, schema: Schema) -> View:
    return View({"time": _LONG, "key": None, "namespace": None}, partial(_timer_rows, name))


def _timer_rows(name: Name, slot: SlotSnapshot) -> Rows:
    return (address for address, _ in entries(slot, name))


def _item_view(name: Name, schema: Schema) -> View:
    return View({"element": schema.get("value")}, partial(_item_rows, name))


def _item_rows(name: Name, slot: SlotSnapshot) -> Rows:
    return ((element,) for element in whole_value(slot, name) or ())


def _broadcast_view(name: Name, schema: Schema) -> View:
    return View({"key": schema.get("key"), "value": schema.get("value")}, partial(_broadcast_rows, name))


def _broadcast_rows(name: Name, slot: SlotSnapshot) -> Rows:
    return iter((whole_value(slot, name) or {}).items())


_VIEWS: dict[Kind, Callable[[Name, Schema], View]] = {
    Kind.KEYED: _view_by_key,
    Kind.TIMERS: _timer_view,
    Kind.LIST: _item_view,
    Kind.UNION: _item_view,
    Kind.BROADCAST: _broadcast_view,
}


# --- on Spark ---
def _session() -> Any:
    """Return the running Spark session, else a new one on the master that PENSTOCK_MASTER names."""
    from penstock.spark.sessions.session import active_session, session

    active = active_session()
    if active is not None:
        return active
    return session(os.environ.get(_MASTER_VARIABLE) or "local[*]", "Penstock state processor", {})


def _frame(spark: Any, view: View, slots: list[SlotSnapshot], what: str) -> Any:
    """Read the slots twice: first to find types that fit all values, then to make rows of the values."""
    from pyspark.sql.types import StructType

    from penstock.spark.state_processor.state_columns import column

    outfit, seen = Outfit.of_this_process(), session_of(spark)
    cells = reduce(_merge_all, apply_in_tasks(seen, slots, outfit, partial(_learn, view)), _initial_cells(view))
    columns = [column(name, cell) for name, cell in zip(view.columns, cells, strict=True)]
    for field_, cell in zip(columns, cells, strict=True):
        if cell.shows_repr():
            log.warning(
                "%s: no Spark type fits all values of column '%s', so the column shows their reprs as text",
                what,
                field_.name,
            )
    return seen.frame(slots, partial(_plain_rows, outfit, view, cells), StructType(columns))


def _initial_cells(view: View) -> list[Any]:
    from penstock.spark.state_processor.state_columns import cell_of_schema

    return [cell_of_schema(described) for described in view.columns.values()]


def _learn(view: View, slot: SlotSnapshot) -> list[Any]:
    """Return cells that all values of one slot fit."""
    cells = _initial_cells(view)
    for row in view.rows(slot):
        cells = [cell.learn(value) for cell, value in zip(cells, row, strict=True)]
    return cells


def _merge_all(some: list[Any], others: list[Any]) -> list[Any]:
    return [one.merge(other) for one, other in zip(some, others, strict=True)]


def _plain_rows(outfit: Outfit, view: View, cells: list[Any], slot: SlotSnapshot) -> Rows:
    outfit.put_on()
    for row in view.rows(slot):
        yield tuple(cell.plain(value) for cell, value in zip(cells, row, strict=True))
