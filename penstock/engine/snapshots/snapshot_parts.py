"""The state that one subtask of an operator puts into a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from penstock.base import pickling
from penstock.engine.state.backend import BroadcastStateBackend, KeyedStateBackend
from penstock.engine.state.snapshot_file import OWN, Kind, Name, State
from penstock.engine.state.state_schema import schema_of
from penstock.engine.state.tables import Layout, Table


class Extent(Enum):
    """The extent of keyed state in a snapshot."""

    CHANGES = "changes"
    """The changes that no complete checkpoint holds yet."""
    FULL = "full"
    """The whole state. Later checkpoints may build on it."""
    SEPARATE = "separate"
    """The whole state, for a savepoint that does not affect later checkpoints."""


@dataclass
class SubtaskSnapshot:
    """The snapshot of one subtask, which its operator fills and the slot reads."""

    uid: str
    checkpoint: int
    timestamp: int
    extent: Extent
    states: list[State] = field(default_factory=list)
    _own: dict[str, Any] = field(default_factory=dict)

    def own(self, part: str, value: Any) -> None:
        """Add a value that belongs to this subtask alone."""
        self._own[part] = value

    def keyed(self, backend: KeyedStateBackend, scope: str) -> None:
        """Add the tables of a keyed backend."""
        for table in backend.tables.values():
            kind = Kind.TIMERS if table.layout is Layout.TIMER else Kind.KEYED
            name = Name(self.uid, kind, table.name, scope)
            if self.extent is not Extent.SEPARATE:
                table.mark(self.checkpoint)
            if self.extent is Extent.CHANGES:
                pages = table.changes()
            else:
                pages = table.everything(backend.prunes_snapshots(table))
            self.states.append(State(name, pages, {"layout": table.layout.value, **_schema(table)}))

    def broadcast(self, backend: BroadcastStateBackend) -> None:
        """Add whole broadcast maps."""
        for table in backend.tables.values():
            name = Name(self.uid, Kind.BROADCAST, table.name)
            self.states.append(State(name, [pickling.dumps(table.entries)], _schema(table)))

    def items(self, kind: Kind, name: str, items: list[Any], schema: dict[str, Any]) -> None:
        """Add list state of the operator."""
        self.states.append(State(Name(self.uid, kind, name), [pickling.dumps(items)], schema))

    def finished(self) -> list[State]:
        """Return all states. The last one holds the values that belong to this subtask alone."""
        return [*self.states, State(Name(self.uid, Kind.OWN, OWN), [pickling.dumps(self._own)])]


def _schema(table: Table) -> dict[str, Any]:
    """Return the schema of a table's values: the declared one, else the restored one."""
    if table.descriptor is not None:
        return schema_of(table.descriptor)
    return table.schema or {}
