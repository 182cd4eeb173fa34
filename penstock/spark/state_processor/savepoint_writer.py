"""Writes savepoints: new ones from rows, and changed copies of others.

A slot of a savepoint is a series of files, and each state is in one of them. The tasks that have the rows of a
DataFrame write its states to files of their own. All other states of a slot are in its last file.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import uuid4

from penstock.api.state.descriptors import ListStateDescriptor, MapStateDescriptor, StateDescriptor
from penstock.base import pickling
from penstock.base.storage import Storage
from penstock.engine.checkpoint.metadata import Metadata
from penstock.engine.checkpoint.store import read_snapshot, write_savepoint
from penstock.engine.savepoints.contents import (
    BY_KEY,
    entries,
    find_among,
    layout_of,
    raw_pages,
    require_operator,
    states_of,
    whole_value,
)
from penstock.engine.savepoints.savepoint_rows import KeyedRows, KeyOf, Part, fit_value, from_spark
from penstock.engine.savepoints.transform import Function, Transform
from penstock.engine.snapshots.restore import split_evenly
from penstock.engine.state.key_groups import UPPER_BOUND_MAX_PARALLELISM, key_group, short_repr, subtask_for_group
from penstock.engine.state.snapshot_file import (
    FileRef,
    Kind,
    Name,
    Shape,
    SlotSnapshot,
    SnapshotFile,
    State,
    write_file,
)
from penstock.engine.state.state_schema import Schema, schema_of
from penstock.engine.state.tables import Layout, Page, pages
from penstock.engine.state.ttl import ttl_of
from penstock.errors import InvalidParallelism, PenstockError, ProgramError, StorageError, UnsupportedKey
from penstock.spark.state_processor.state_sessions import session_of
from penstock.spark.state_processor.state_tasks import Outfit, apply_in_tasks, without_errors

_INLINE = 20 * 1024
_LISTS = (Kind.LIST, Kind.UNION)


@dataclass
class _Ready:
    """A new state, with the pages for each slot."""

    schema: Schema
    slots: list[list[Page]]


@dataclass
class _Frame:
    """A new keyed state whose rows are in a DataFrame."""

    schema: Schema
    rows: KeyedRows
    frame: Any


class SavepointWriter:
    """A savepoint that is being prepared. Only `write` writes files; every other method returns the writer."""

    def __init__(self, base: Metadata | None, new_operators: Shape) -> None:
        self._base = base
        self._new_operators = new_operators
        self._shapes: dict[str, Shape] = {} if base is None else dict(base.shapes)
        self._enumerators: dict[str, bytes] = {} if base is None else dict(base.enumerators)
        self._removed: set[str] = set()
        self._dropped: set[Name] = set()
        self._transforms: dict[Name, list[Transform]] = {}
        self._added: dict[Name, _Ready | _Frame] = {}
        self._now = int(time.time() * 1000)

    @classmethod
    def new(cls, max_parallelism: int = 128, parallelism: int = 1) -> SavepointWriter:
        """Begin a new savepoint.

        Its operators are spread over `parallelism` slots. A program may start from it with any other parallelism.
        """
        return cls(None, _check_shape(parallelism, max_parallelism))

    @classmethod
    def from_existing(cls, path: str, max_parallelism: int = 128) -> SavepointWriter:
        """Begin a changed copy of a checkpoint or savepoint. `max_parallelism` applies to added operators."""
        base = read_snapshot(path)
        return cls(base, _check_shape(min(max(len(base.slots), 1), max_parallelism), max_parallelism))

    # --- new states ---
    def with_keyed_state(
        self, uid: str, descriptor: StateDescriptor, rows: Any, key: KeyOf = "key", window: bool = False
    ) -> SavepointWriter:
        """Add or replace a keyed state with the rows of a DataFrame or another iterable.

        Rows have the columns key, value and, for state of windows, namespace. For maps, a row is one entry with a
        map_key, or the whole map without one. For lists, a row is the whole list. For state that expires, last_access
        is the time in milliseconds, by default now. `key` names another column, names several that make up a tuple, or
        is a function of the row. Rows of an iterable may also be (key, value) or (key, namespace, value).
        """
        _require(descriptor, StateDescriptor, "keyed state")
        name = Name(_check_uid(uid), Kind.KEYED, descriptor.get_name(), "window" if window else "")
        made = KeyedRows(uid, descriptor, key, self._layout(name), self._now)
        schema = {"layout": made.layout.value, **schema_of(descriptor)}
        if _is_frame(rows):
            _check_frame(rows, made)
            return self._add(name, _Frame(schema, made, rows))
        shape = self._shape(uid)
        parts: list[list[Part]] = [[] for _ in range(shape.parallelism)]
        for part in map(made.part, rows):
            parts[_slot_of(part, made.layout, shape)].append(part)
        return self._add(name, _Ready(schema, [list(pages(made.gather(share))) for share in parts]))

    def _layout(self, name: Name) -> Layout:
        """Return the layout of a state.

        An existing state keeps its layout, because the scope of panes may differ from that of windows.
        """
        schema = self._there(name.uid).get(name, {}) if name.uid in self._shapes else {}
        return layout_of(name, schema)

    def with_list_state(
        self, uid: str, descriptor: ListStateDescriptor, rows: Any, union: bool = False
    ) -> SavepointWriter:
        """Add or replace the list state of an operator. `rows`: elements, or a DataFrame with the column element.

        Elements are distributed evenly over the slots, in order. They pass through this process.
        """
        _require_unstamped(_require(descriptor, ListStateDescriptor, "list state"))
        where = f"state '{descriptor.get_name()}' of operator '{_check_uid(uid)}'"
        found = [row[0] for row in _local_rows(rows, ["element"], where)] if _is_frame(rows) else rows
        items = [fit_value(from_spark(item), descriptor.elem_type_info, where) for item in found]
        if any(item is None for item in items):
            raise ProgramError(f"{where} cannot hold None")
        kind = Kind.UNION if union else Kind.LIST
        for other in _LISTS:
            self._drop(Name(uid, other, descriptor.get_name()))
        shares = split_evenly([items], self._shape(uid).parallelism)
        ready = _Ready(schema_of(descriptor), [[pickling.dumps(share)] for share in shares])
        return self._add(Name(uid, kind, descriptor.get_name()), ready)

    def with_broadcast_state(self, uid: str, descriptor: MapStateDescriptor, rows: Any) -> SavepointWriter:
        """Add or replace the broadcast state of an operator: a dict, pairs, or a DataFrame with key and value."""
        _require_unstamped(_require(descriptor, MapStateDescriptor, "broadcast state"))
        where = f"state '{descriptor.get_name()}' of operator '{_check_uid(uid)}'"
        pairs = _local_rows(rows, ["key", "value"], where) if _is_frame(rows) else _pairs(rows, where)
        held = fit_value(from_spark(dict(pairs)), descriptor.type_info, where)
        copies = [[pickling.dumps(held)]] * self._shape(uid).parallelism
        return self._add(Name(uid, Kind.BROADCAST, descriptor.get_name()), _Ready(schema_of(descriptor), copies))

    def _shape(self, uid: str) -> Shape:
        return self._shapes.get(uid) or self._new_operators._replace(name=uid)

    def _add(self, name: Name, added: _Ready | _Frame) -> SavepointWriter:
        self._drop(name)
        self._shapes.setdefault(name.uid, self._shape(name.uid))
        self._added[name] = added
        return self

    # --- changes ---
    def remove_operator(self, uid: str) -> SavepointWriter:
        """Leave out an operator and all of its states."""
        require_operator(self._shapes, uid)
        for name in [name for name in self._added if name.uid == uid]:
            del self._added[name]
        self._removed.add(uid)
        self._enumerators.pop(uid, None)
        del self._shapes[uid]
        return self

    def remove_state(self, uid: str, name: str, window: bool = False, kind: str | None = None) -> SavepointWriter:
        """Leave out one state of an operator."""
        self._drop(self._find(uid, name, window, kind))
        return self

    def transform_state(
        self,
        uid: str,
        name: str,
        function: Function,
        window: bool = False,
        kind: str | None = None,
        descriptor: StateDescriptor | None = None,
    ) -> SavepointWriter:
        """Replace every value of a state by a function's result. The function takes key, namespace and value.

        A result of None drops the entry. Values have the form that `SavepointReader.read_python` gives. A descriptor
        declares the type of the new values if it differs from the declared one; it must have the same name.
        """
        found = self._find(uid, name, window, kind)
        if found in self._added:
            raise ProgramError(f"state '{name}' of operator '{uid}' is replaced by new rows: change these rows instead")
        if found.kind is Kind.TIMERS:
            raise ProgramError(f"'{name}' of operator '{uid}' holds timers, which can be removed but not transformed")
        if descriptor is not None and descriptor.get_name() != name:
            raise ProgramError(
                f"the descriptor names the state '{descriptor.get_name()}', but the state to transform is '{name}'"
            )
        before = self._there(uid)[found]
        self._transforms.setdefault(found, []).append(Transform(found, before, function, descriptor, self._now))
        return self

    def _find(self, uid: str, name: str, window: bool, kind: str | None) -> Name:
        require_operator(self._shapes, uid)
        return find_among(self._there(uid), uid, name, window, kind)

    def _there(self, uid: str) -> dict[Name, Schema]:
        """Return the states that an operator will have in the new savepoint."""
        copied = states_of(self._base, uid) if self._base is not None and uid in self._base.shapes else {}
        added = {name: added.schema for name, added in self._added.items() if name.uid == uid}
        return {**self._change_schemas(copied), **added}

    def _change_schemas(self, copied: dict[Name, Schema]) -> dict[Name, Schema]:
        """Return the schemas of copied states, after removals and transformations."""
        kept = {n: schema for n, schema in copied.items() if n.uid not in self._removed and n not in self._dropped}
        return {n: self._transforms[n][-1].after if n in self._transforms else schema for n, schema in kept.items()}

    def _drop(self, name: Name) -> None:
        self._dropped.add(name)
        self._added.pop(name, None)
        self._transforms.pop(name, None)

    # --- writing ---
    def write(self, path: str, spark: Any = None) -> str:
        """Write the savepoint and return its URL. With a Spark session, a task of its own writes every slot."""
        storage = Storage(path.rstrip("/"))
        if not self._shapes:
            raise ProgramError("there is nothing to write: add a state first")
        if storage.exists(""):
            raise StorageError(f"'{path}' exists already: give a folder that does not exist")
        frames = {name: added for name, added in self._added.items() if isinstance(added, _Frame)}
        spark = spark or next((added.frame.sparkSession for added in frames.values()), None)
        try:
            return self._write(storage, frames, spark)
        except BaseException:
            _delete_all(storage, set())
            raise

    def _write(self, storage: Storage, frames: dict[Name, _Frame], spark: Any) -> str:
        folder = storage.url()
        series: list[list[FileRef]] = [[] for _ in range(max(s.parallelism for s in self._shapes.values()))]
        for name, added in frames.items():
            for slot, file in _write_frame(name, added, self._shapes[name.uid], folder):
                series[slot].append(file)
        tasks = [self._task(index) for index in range(len(series))]
        write = partial(_write_slot, self._copy(), folder)
        if spark is None:
            written = list(map(write, tasks))
        else:
            written = apply_in_tasks(session_of(spark), tasks, Outfit.of_this_process(), write)
        slots = [SlotSnapshot([*series[i], file], self._schemas(i)) for i, file in enumerate(written)]
        metadata = self._metadata(slots)
        _delete_all(storage, metadata.files())  # files of tasks that Spark ran again
        write_savepoint(metadata, folder)
        return folder

    def _task(self, index: int) -> _SlotTask:
        base = self._base.slots[index] if self._base is not None and index < len(self._base.slots) else None
        ready = {name: added for name, added in self._added.items() if isinstance(added, _Ready)}
        mine = {name: added.slots[index] for name, added in ready.items() if index < len(added.slots)}
        return _SlotTask(index, base, mine)

    def _copy(self) -> _Copy:
        return _Copy(frozenset(self._removed), frozenset(self._dropped), dict(self._transforms))

    def _schemas(self, index: int) -> dict[Name, Schema]:
        """Return the known schemas of a slot's states."""
        base = self._base.slots[index].schemas if self._base is not None and index < len(self._base.slots) else {}
        here = {name: added for name, added in self._added.items() if index < self._shapes[name.uid].parallelism}
        return {**self._change_schemas(base), **{name: added.schema for name, added in here.items()}}

    def _metadata(self, slots: list[SlotSnapshot]) -> Metadata:
        base = self._base or Metadata(0, self._now, "", "state processor", {}, [])
        return replace(
            base,
            timestamp=self._now,
            shapes=self._shapes,
            slots=slots,
            fingerprint="",
            savepoint=True,
            enumerators=self._enumerators,
        )


# --- one slot ---
@dataclass(frozen=True)
class _SlotTask:
    """The base and the added states of one slot of the new savepoint."""

    index: int
    base: SlotSnapshot | None
    added: dict[Name, list[Page]]


@dataclass(frozen=True)
class _Copy:
    """The parts of a base that are copied, and their changes."""

    removed: frozenset[str]
    dropped: frozenset[Name]
    transforms: dict[Name, list[Transform]]

    def states(self, slot: SlotSnapshot) -> Iterator[State]:
        for name in _names(slot):
            if name.uid not in self.removed and name not in self.dropped:
                yield State(name, self._pages(slot, name, self.transforms.get(name, [])))

    @staticmethod
    def _pages(slot: SlotSnapshot, name: Name, transforms: list[Transform]) -> Iterable[Page]:
        """Return the pages of a copied state. Unchanged pages are copied without unpickling if that is possible."""
        whole = name.kind not in BY_KEY
        if not transforms and (whole or len(slot.files) == 1):
            return raw_pages(slot, name)
        if whole:
            value = whole_value(slot, name)
            for transform in transforms:
                value = transform.whole(value)
            return [pickling.dumps(value)]
        feed = entries(slot, name)
        for transform in transforms:
            feed = transform.entries(feed)
        return pages(feed)


def _names(slot: SlotSnapshot) -> list[Name]:
    """Return the states of a slot: states by key from every file of its series, others from the newest file."""
    names: dict[Name, None] = {}
    for ref in slot.files:
        with SnapshotFile(ref) as file:
            found = file.sections if ref is slot.files[-1] else [n for n in file.sections if n.kind in BY_KEY]
            names.update(dict.fromkeys(found))
    return list(names)


def _write_slot(copy: _Copy, folder: str, task: _SlotTask) -> FileRef:
    copied = copy.states(task.base) if task.base is not None else ()
    added = [State(name, made) for name, made in task.added.items()]
    return _write_states(folder, task.index, (*copied, *added))


def _write_states(folder: str, slot: int, states: Iterable[State]) -> FileRef:
    return write_file(f"{folder}/slot-{slot}-{uuid4().hex[:8]}", states, compress=False, inline_below=_INLINE)


def _delete_all(storage: Storage, needed: set[str]) -> None:
    for name in storage.names():
        if storage.url(name) not in needed:
            storage.delete(name)
    storage.delete_empty_folder("")


# --- rows of a DataFrame ---
def _write_frame(name: Name, added: _Frame, shape: Shape, folder: str) -> list[tuple[int, FileRef]]:
    """Bring the rows to the slots that own their keys, and make each slot write a file."""
    outfit, rows = Outfit.of_this_process(), added.rows
    address = partial(_address, outfit, rows, shape)
    write = partial(_write_parts, outfit, rows, name, folder)
    session = session_of(added.frame.sparkSession)
    return without_errors(session.regroup(added.frame, address, write, shape.parallelism))


def _address(
    outfit: Outfit, rows: KeyedRows, shape: Shape, records: Iterable[Any]
) -> Iterator[tuple[int, Part | PenstockError]]:
    """Yield parts with their slots. An error is yielded like a part, to be raised where the driver sees it."""
    outfit.put_on()
    try:
        for part in map(rows.part, records):
            yield _slot_of(part, rows.layout, shape), part
    except PenstockError as error:
        yield 0, error


def _write_parts(
    outfit: Outfit, rows: KeyedRows, name: Name, folder: str, slot: int, pairs: Iterable[tuple[int, Any]]
) -> Iterator[tuple[int, FileRef] | PenstockError]:
    outfit.put_on()
    try:
        made = pages(rows.gather(_raise_errors(part) for _, part in pairs))
        yield slot, _write_states(folder, slot, [State(name, made)])
    except PenstockError as error:
        yield error


def _raise_errors(part: Any) -> Part:
    if isinstance(part, PenstockError):
        raise part
    return part  # type: ignore[no-any-return]


def _slot_of(part: Part, layout: Layout, shape: Shape) -> int:
    group = key_group(layout.key_of(part.address), shape.max_parallelism)
    return subtask_for_group(group, shape.max_parallelism, shape.parallelism)


# --- arguments ---
def _is_frame(rows: Any) -> bool:
    sql = sys.modules.get("pyspark.sql")  # without this module there can be no DataFrame
    return sql is not None and isinstance(rows, sql.DataFrame)


def _check_frame(frame: Any, rows: KeyedRows) -> None:
    rows.check(frame.columns)
    for column in rows.key_columns():
        kind = frame.schema[column].dataType.typeName()
        if kind in ("array", "map"):
            raise UnsupportedKey(f"column '{column}' is of type {kind} and cannot be a key")


def _local_rows(frame: Any, columns: list[str], where: str) -> Iterator[Any]:
    if set(frame.columns) != set(columns):
        raise ProgramError(
            f"{where}: rows need the columns {', '.join(columns)}; these have {', '.join(frame.columns) or 'none'}"
        )
    return (tuple(map(from_spark, row)) for row in frame.select(*columns).toLocalIterator())


def _pairs(rows: Any, where: str) -> Iterator[tuple[Any, Any]]:
    for row in rows.items() if isinstance(rows, Mapping) else rows:
        if isinstance(row, Mapping) and row.keys() == {"key", "value"}:
            yield row["key"], row["value"]
        elif isinstance(row, tuple | list) and len(row) == 2:
            yield row[0], row[1]
        else:
            raise ProgramError(f"{where}: a row is (key, value) or a dict of these, and not {short_repr(row)}")


def _check_shape(parallelism: int, max_parallelism: int) -> Shape:
    if not 1 <= max_parallelism <= UPPER_BOUND_MAX_PARALLELISM:
        raise InvalidParallelism(
            f"max parallelism must be between 1 and {UPPER_BOUND_MAX_PARALLELISM}, not {max_parallelism}"
        )
    if not 1 <= parallelism <= max_parallelism:
        raise InvalidParallelism(
            f"parallelism must be between 1 and the max parallelism {max_parallelism}, not {parallelism}"
        )
    return Shape(parallelism, max_parallelism)


def _check_uid(uid: str) -> str:
    if not isinstance(uid, str) or not uid:
        raise ProgramError(f"the uid of an operator is a string that is not empty, not {short_repr(uid)}")
    return uid


def _require(descriptor: Any, expected: type, what: str) -> Any:
    if not isinstance(descriptor, expected):
        raise ProgramError(f"{what} needs a {expected.__name__}, not {short_repr(descriptor)}")
    return descriptor


def _require_unstamped(descriptor: StateDescriptor) -> None:
    if ttl_of(descriptor) is not None:
        raise ProgramError(f"state '{descriptor.get_name()}' cannot have a time to live: only keyed state can")
