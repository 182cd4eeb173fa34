"""Reading the state of one slot's subtasks from a checkpoint that was written with any parallelism."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from penstock.base import pickling
from penstock.engine.snapshots.local_copies import LocalCopies
from penstock.engine.state.backend import KeyedStateBackend
from penstock.engine.state.key_groups import group_range, key_group
from penstock.engine.state.snapshot_file import OWN, FileRef, Kind, Name, Restore, Shape, SnapshotFile
from penstock.engine.state.tables import Layout
from penstock.errors import StateMigrationException

T = TypeVar("T")


class SlotRestore:
    """The files of a checkpoint, opened when operators ask for them, and closed when all operators are open."""

    def __init__(self, restore: Restore, copies: LocalCopies | None = None) -> None:
        self.restore = restore
        self._copies = copies
        self._files: dict[str, SnapshotFile] = {}

    def operator(self, uid: str, subtask: int, parallelism: int) -> RestoredOperator | None:
        """Return the state for one subtask of an operator; None if the checkpoint does not know the operator."""
        shape = self.restore.shapes.get(uid)
        return None if shape is None else RestoredOperator(self, uid, shape, subtask, parallelism)

    def file(self, ref: FileRef) -> SnapshotFile:
        """Return an open file, from its local copy if there is one."""
        opened = self._files.get(ref.url)
        if opened is None:
            copy = self._copies.open(ref) if self._copies is not None else None
            opened = self._files[ref.url] = copy or SnapshotFile(ref)
        return opened

    def close(self) -> None:
        """Close all open files."""
        for file in self._files.values():
            file.close()
        self._files.clear()


class RestoredOperator:
    """The state of one operator in a checkpoint, from the view of one of its subtasks."""

    def __init__(self, slot: SlotRestore, uid: str, shape: Shape, subtask: int, parallelism: int) -> None:
        self._slot = slot
        self._uid = uid
        self._before = shape
        self.subtask = subtask
        self.parallelism = parallelism
        self.checkpoint = slot.restore.checkpoint
        self.continued = slot.restore.continued
        """Whether the same job continues with the same plan and parallelism, so that everything can be restored
        exactly."""
        self.drained = slot.restore.drained
        self.same_parallelism = shape.parallelism == parallelism

    # --- keyed state ---
    def fill(self, backend: KeyedStateBackend, scope: str) -> None:
        """Load into every table of a scope the entries whose key groups belong to this subtask."""
        mine = group_range(self.subtask, self._before.max_parallelism, self.parallelism)
        for old in range(self._before.parallelism):
            theirs = group_range(old, self._before.max_parallelism, self._before.parallelism)
            if theirs.start < mine.stop and mine.start < theirs.stop:
                whole = mine.start <= theirs.start and theirs.stop <= mine.stop
                self._load(backend, scope, old, None if whole else _Wanted(mine, self._before.max_parallelism))

    def _load(self, backend: KeyedStateBackend, scope: str, old: int, wanted: _Wanted | None) -> None:
        snapshot = self._slot.restore.slots[old]
        for file in map(self._slot.file, snapshot.files):
            for name in file.sections:
                if name.uid == self._uid and name.scope == scope and name.kind in (Kind.KEYED, Kind.TIMERS):
                    schema = snapshot.schemas.get(name, {})
                    table = backend.tables.get(name.name)
                    if table is None:
                        table = backend.empty_table(name.name, Layout(schema.get("layout", backend.layout.value)))
                    elif table.schema != schema:
                        raise _different_schemas(name)
                    table.schema = schema
                    for page in file.pages(name):
                        _unpickle(name, partial(table.load, page, wanted))

    # --- operator state ---
    def own(self) -> dict[str, Any] | None:
        """Return the values of this subtask alone; None if the parallelism has changed."""
        return self._own(self.subtask) if self.same_parallelism else None

    def all_own(self) -> list[dict[str, Any]]:
        """Return the values of each former subtask alone, in order of the former subtasks."""
        return [self._own(old) for old in range(self._before.parallelism)]

    def _own(self, old: int) -> dict[str, Any]:
        loaded: dict[str, Any] = self._value(old, Name(self._uid, Kind.OWN, OWN)) or {}
        return loaded

    def items(self, kind: Kind) -> Iterator[tuple[str, dict[str, Any], list[list[Any]]]]:
        """Yield the list states of a kind: name, schema, and the items of each former subtask."""
        for name, schema in self._names(kind).items():
            yield name.name, schema, [self._value(old, name) or [] for old in range(self._before.parallelism)]

    def broadcast(self) -> Iterable[tuple[str, dict[str, Any], dict[Any, Any]]]:
        """Return the broadcast maps: name, schema, and one subtask's copy."""
        return [(name.name, schema, self._copy(name)) for name, schema in self._names(Kind.BROADCAST).items()]

    def _copy(self, name: Name) -> dict[Any, Any]:
        """Return the first copy of a broadcast state, since all copies are equal.

        A subtask that has never asked for the state has no copy of it.
        """
        for turn in range(self._before.parallelism):
            found = self._value((self.subtask + turn) % self._before.parallelism, name)
            if found is not None:
                return dict(found)
        return {}

    def _names(self, kind: Kind) -> dict[Name, dict[str, Any]]:
        found: dict[Name, dict[str, Any]] = {}
        for snapshot in self._slot.restore.slots[: self._before.parallelism]:
            found.update({n: s for n, s in snapshot.schemas.items() if n.uid == self._uid and n.kind is kind})
        return found

    def _value(self, old: int, name: Name) -> Any:
        """Return a value from the newest file, for states that every checkpoint writes whole."""
        file = self._slot.file(self._slot.restore.slots[old].files[-1])
        pieces = list(file.pages(name))
        return _unpickle(name, lambda: pickling.loads(pieces[0])) if pieces else None


class _Wanted:
    """A test of whether a key belongs to a range of key groups."""

    def __init__(self, groups: range, max_parallelism: int) -> None:
        self._groups = groups
        self._max_parallelism = max_parallelism

    def __call__(self, key: Any) -> bool:
        return key_group(key, self._max_parallelism) in self._groups


def _unpickle(name: Name, load: Callable[[], T]) -> T:
    """Return the result of `load`. The error for a missing or changed class names the state."""
    try:
        return load()
    except (AttributeError, ImportError, TypeError, pickle.UnpicklingError) as error:
        raise StateMigrationException(
            f"{name.kind.value} state '{name.name}' of operator '{name.uid}' cannot be read: {error}. Its values are "
            "pickled, so their classes must exist under the names they had, with fields that fit"
        ) from error


def _different_schemas(name: Name) -> StateMigrationException:
    return StateMigrationException(
        f"state '{name.name}' of operator '{name.uid}' was saved with different types by different subtasks, since not "
        "all of them had used it after its type was changed: start once with the parallelism that it was saved with, "
        "let every subtask ask for the state (in open()), and take a new savepoint"
    )


def split_evenly(parts: list[list[Any]], parallelism: int) -> list[list[Any]]:
    """Split list state by Flink's rule: unchanged with the same parallelism, else all items in order, cut evenly."""
    if len(parts) == parallelism:
        return parts
    items = [item for part in parts for item in part]
    share, more = divmod(len(items), parallelism)
    cuts = [index * share + min(index, more) for index in range(parallelism + 1)]
    return [items[cuts[index] : cuts[index + 1]] for index in range(parallelism)]
