"""RocksDB's own figures that Flink shows, under Flink's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

OPTION_PREFIX = "state.backend.rocksdb.metrics."

FIGURES = (
    "actual-delayed-write-rate",
    "background-errors",
    "block-cache-capacity",
    "block-cache-pinned-usage",
    "block-cache-usage",
    "compaction-pending",
    "cur-size-active-mem-table",
    "cur-size-all-mem-tables",
    "estimate-live-data-size",
    "estimate-num-keys",
    "estimate-pending-compaction-bytes",
    "estimate-table-readers-mem",
    "is-write-stopped",
    "live-sst-files-size",
    "mem-table-flush-pending",
    "num-deletes-active-mem-table",
    "num-deletes-imm-mem-tables",
    "num-entries-active-mem-table",
    "num-entries-imm-mem-tables",
    "num-immutable-mem-table",
    "num-live-versions",
    "num-running-compactions",
    "num-running-flushes",
    "num-snapshots",
    "size-all-mem-tables",
    "total-sst-files-size",
)
"""Names of RocksDB's properties, without `rocksdb.` before them."""


def figures(database: Any, wanted: Sequence[str]) -> dict[str, int]:
    """Return a database's own figures by name, without those that it does not report."""
    found = {f"rocksdb.{name}": database.property_int_value(f"rocksdb.{name}") for name in wanted}
    return {name: value for name, value in found.items() if value is not None}
