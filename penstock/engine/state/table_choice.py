"""Tables of a slot for the state backend that a program sets."""

from __future__ import annotations

from penstock.api.settings.state_backend import EmbeddedRocksDBStateBackend, StateBackend
from penstock.engine.state.tables import HeapTables, Tables


def tables_for(backend: StateBackend | None, label: str) -> Tables:
    """Create the tables of a slot's keyed state: in memory, or in RocksDB if the program asks for it."""
    if not isinstance(backend, EmbeddedRocksDBStateBackend):
        return HeapTables()
    from penstock.engine.state.rocksdb import RocksOptions, RocksTables

    return RocksTables(
        RocksOptions(
            directories=tuple(backend.get_db_storage_paths() or ()),
            memory_bytes=backend.get_memory_per_slot(),
            predefined=backend.get_predefined_options().name,
            options_factory=backend.get_options(),
        ),
        label,
    )
