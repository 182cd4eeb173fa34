"""Tables in RocksDB: state larger than memory, with the objects in use kept alive.

The database is scratch space of one process. Checkpoints make state survive, so RocksDB writes no log, and the
directory is deleted when the slot ends.

An entry that is read becomes a live object and stays one for a while (see `Entries`). Changes are made to the object
and written at the end of the epoch. They are then also saved separately, as pages in files, for the next checkpoint.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import re
import shutil
import tempfile
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import chain, islice
from typing import Any
from weakref import finalize
from zlib import crc32

from rocksdict import (
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
    WriteBatch,
    WriteBufferManager,
    WriteOptions,
)

from penstock.base import pickling
from penstock.engine.state.key_bytes import key_bytes
from penstock.engine.state.key_groups import short_repr
from penstock.engine.state.live_entries import ABSENT, Entries, Room
from penstock.engine.state.rocksdb_figures import figures
from penstock.engine.state.spill import Spill
from penstock.engine.state.tables import PAGE_ENTRIES, Layout, Page, Table, pack_page
from penstock.errors import ConfigurationError, NotSerializable

DEFAULT_MEMORY = 256 << 20
_FOR_DATABASE, _FOR_OBJECTS = 0.25, 0.6
"""Shares of a slot's memory. The rest is for memory that is not counted: compaction, and holes between objects."""
_PAGE_BYTES = 4 << 20
_SPILL_LEAST = 64 << 20
_MOST_TABLES = (1 << 16) - 1
_PREFIX = "penstock-rocksdb-"
_MEGABYTE = 1 << 20
Entry = tuple[Any, Any, bytes]
"""An address, its value, and the pickle of both."""


@dataclass(frozen=True)
class RocksOptions:
    """Settings for RocksDB in the slots of a job."""

    directories: tuple[str, ...] = ()
    """Local directories, of which a slot uses one. Without any, it uses the system's temporary directory."""
    memory_bytes: int | None = None
    """Approximate memory of a slot besides its program, in bytes.

    None means 256 MB. RocksDB gets a quarter of it, live objects get most of the rest.
    """
    predefined: str = "DEFAULT"
    """The name of one of PyFlink's PredefinedOptions."""
    options_factory: str | None = None
    """Import path of a class whose `configure(options)` may change rocksdict's Options at the end."""

    def __post_init__(self) -> None:
        if self.predefined not in _PREDEFINED:
            raise ConfigurationError(
                f"predefined options {self.predefined!r} are unknown: choose one of {', '.join(_PREDEFINED)}"
            )


class RocksTables:
    """The tables of a slot, in one database in a directory of their own."""

    def __init__(self, options: RocksOptions | None = None, label: str = "slot") -> None:
        options = options or RocksOptions()
        memory = options.memory_bytes or DEFAULT_MEMORY
        settings = _database_options(options, int(memory * _FOR_DATABASE))
        self._room = Room(int(memory * _FOR_OBJECTS))
        self.directory, claim = _claim_directory(options.directories, label)
        self._release = finalize(self._room, _release_directory, self.directory, claim, os.getpid())
        try:
            self._database = Rdict(os.path.join(self.directory, "db"), settings)
        except Exception as error:
            self._release()
            raise ConfigurationError(f"RocksDB cannot be opened in {self.directory}: {error}") from error

    def table(self, owner: str, name: str, layout: Layout) -> RocksTable:
        """Create an empty table."""
        number = len(self._room.tables)
        if number == _MOST_TABLES:
            raise ConfigurationError(f"state '{name}' of {owner} exceeds the limit of {number} tables in a slot")
        table = RocksTable(name, layout, number, self._database, self._room)
        self._room.tables.append(table)
        return table

    def figures(self, wanted: Sequence[str]) -> dict[str, int]:
        return figures(self._database, wanted)

    def close(self) -> None:
        """Remove the database.

        This also happens when the slot is garbage-collected. Active readers may get an error.
        """
        with suppress(Exception):
            self._database.close()
        self._release()


class RocksTable(Table):
    """All values of one state of one operator in one slot, in the slot's database."""

    __slots__ = ("_database", "_end", "_prefix", "_room", "_spill", "_swept")

    entries: Entries  # type: ignore[assignment]

    def __init__(self, name: str, layout: Layout, number: int, database: Rdict, room: Room) -> None:
        super().__init__(name, layout)
        self._database = database
        self._room = room
        self._prefix = self._swept = number.to_bytes(2, "big")
        self._end = (number + 1).to_bytes(2, "big")
        self._spill = Spill(f"{database.path()}-{number}")
        self.entries = Entries(self, room)

    def remove(self, address: Hashable) -> None:
        if self.entries.discard(address):
            self.changed.add(address)

    def remove_all(self, addresses: Iterable[Hashable]) -> None:
        self.changed.update([address for address in addresses if self.entries.discard(address)])

    def get_all(self, addresses: Sequence[Any]) -> list[Any]:
        return self.entries.get_all(addresses)

    # --- looking without touching ---
    def peek(self, address: Hashable) -> Any:
        """Return the value of an entry, or ABSENT. The value does not become a live object."""
        alive = self.entries.live(address)
        if alive is not ABSENT:
            return alive
        stored = self.entries.read_stored(address)
        return ABSENT if stored is None else pickle.loads(stored)[1]

    def items(self) -> Iterable[tuple[Any, Any]]:
        return ((address, value) for address, value, _ in self.scan())

    # --- epochs ---
    def end_epoch(self, tracking: bool) -> None:
        self.flush(tracking)
        if not tracking:
            self._spill.reset()
        self._room.review()

    def flush(self, tracked: bool = True) -> None:
        """Write the changes to the database and, if tracked, for the next checkpoint. Objects stay alive."""
        changed, entries = self.changed, self.entries
        changed.update(entries.gone)
        if changed:
            self._write(entries.present(changed), entries.missing(changed), tracked)
            changed.clear()
            entries.gone.clear()

    def sweep(self, most: int) -> None:
        """Check this many entries, as a table in memory does.

        They do not become live; entries new in this epoch wait.
        """
        if self.prune is None or most <= 0:
            return
        cursor = self._cursor(self._swept)
        seen = list(islice(_entries(cursor), most))
        self._swept = cursor.key() + b"\0" if cursor.valid() else self._prefix
        for address, held, _ in seen:
            if address not in self.entries.gone:
                alive = self.entries.live(address)
                self._prune(address, held if alive is ABSENT else alive)

    def addresses(self) -> Iterator[Any]:
        return (address for address, _, _ in self.scan())

    def scan(self) -> Iterator[Entry]:
        """Yield all entries at this moment, read one by one. Another thread may consume the iterator."""
        self.flush()
        return _entries(self._cursor(self._prefix))

    # --- checkpoints ---
    def mark(self, checkpoint: int) -> None:
        self.flush()
        self._spill.seal(checkpoint)

    def confirm(self, checkpoint: int) -> None:
        self._spill.confirm(checkpoint)

    def changes(self) -> Iterable[Page]:
        """Yield the unconfirmed changes page by page from disk.

        An entry may occur several times; the last one counts.
        """
        spilled = self._spill.pages()
        return chain(spilled, self.everything()) if self._spill.is_thinned else spilled

    def everything(self, pruned: bool = False) -> Iterable[Page]:
        entries, prune = self.scan(), self.prune if pruned else None
        if prune is not None:
            left = ((address, prune(value), stored) for address, value, stored in entries)
            entries = (entry for entry in left if entry[1] is not None)
        return map(pack_page, _pieces(entries))

    def load(self, page: Page, wanted: Callable[[Any], bool] | None = None) -> None:
        addresses, values, gone = pickling.loads(page)
        pairs, key_of = zip(addresses, values, strict=True), self.layout.key_of
        self.flush()
        self._write(pairs if wanted is None else ((a, v) for a, v in pairs if wanted(key_of(a))), gone, tracked=False)
        self.entries.forget()

    def convert(self, function: Callable[[Any], Any]) -> None:
        self._write(((address, function(value)) for address, value, _ in self.scan()), (), tracked=True)
        self.entries.forget()

    def clear(self) -> None:
        """Forget every entry. BATCH mode does this for every key, mostly before anything was written."""
        if self._spill:
            self._write((), self.addresses(), tracked=True)
        self.entries.forget()
        if self.entries.written:
            self._database.delete_range(self._prefix, self._end, _UNLOGGED)
            self.entries.written = False

    # --- the database ---
    def read(self, address: Any) -> bytes | None:
        """Return the pickled (address, value) from the database, or None if it has no such entry."""
        stored: bytes | None = self._database.get(self._prefix + key_bytes(address))
        return stored

    def _cursor(self, start: bytes) -> RdictIter:
        """Open a cursor on the present content of the database.

        (Snapshots of rocksdict show later writes when iterated.)
        """
        options = ReadOptions()
        options.set_iterate_upper_bound(self._end)
        options.fill_cache(False)
        cursor = self._database.iter(options)
        cursor.seek(start)
        return cursor

    def _write(self, pairs: Iterable[tuple[Any, Any]], gone: Iterable[Any], tracked: bool) -> None:
        """Write entries and remove others, piece by piece, so that a large change needs little memory."""
        for piece in _pieces(self._pickle_entries(pairs)):
            batch, prefix = WriteBatch(raw_mode=True), self._prefix
            # Sorted keys are faster: RocksDB finds the place of each key beside the previous one.
            for key, pickled in sorted([(prefix + key_bytes(address), pickled) for address, _, pickled in piece]):
                batch.put(key, pickled)
            self._database.write(batch, _UNLOGGED)
            self.entries.wrote(piece)
            if tracked:
                self._keep(piece, [])
        for piece in _pieces((address, None, b"") for address in gone):
            batch, prefix = WriteBatch(raw_mode=True), self._prefix
            for address, _, _ in piece:
                batch.delete(prefix + key_bytes(address))
            self._database.write(batch, _UNLOGGED)
            if tracked:
                self._keep([], [address for address, _, _ in piece])

    def _pickle_entries(self, pairs: Iterable[tuple[Any, Any]]) -> Iterator[Entry]:
        dumps = pickling.dumps
        for address, value in pairs:
            try:
                pickled = dumps((address, value))
            except Exception as error:
                raise NotSerializable(
                    f"state '{self.name}' cannot keep {short_repr(value)} of type {type(value).__name__} in RocksDB, "
                    f"as it cannot be pickled: {error}"
                ) from error
            yield address, value, pickled

    def _keep(self, entries: list[Entry], gone: list[Any]) -> None:
        """Store changes for the next checkpoint.

        If they become larger than the state, the checkpoint will hold the whole state instead.
        """
        self._spill.append(entries, gone)
        if self._spill.size > max(_SPILL_LEAST, 2 * (self._database.property_int_value(_LIVE_BYTES) or 0)):
            self._spill.thin()


def _entries(cursor: RdictIter) -> Iterator[Entry]:
    """Yield the entries from a cursor on. Raise the error of the database, if any: an error also ends the cursor."""
    while cursor.valid():
        stored = cursor.value()
        address, value = pickle.loads(stored)
        yield address, value, stored
        cursor.next()
    cursor.status()


def _pieces(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Yield the entries in lists that are neither long nor large."""
    piece, size = list[Entry](), 0
    for entry in entries:
        piece.append(entry)
        size += len(entry[2])
        if len(piece) == PAGE_ENTRIES or size >= _PAGE_BYTES:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


# --- settings ---
_LIVE_BYTES = "rocksdb.estimate-live-data-size"
_UNLOGGED = WriteOptions()
_UNLOGGED.disable_wal = True
_DISK = {"set_max_background_jobs": 4, "set_max_open_files": -1}
_SPINNING = {**_DISK, "set_level_compaction_dynamic_level_bytes": True, "set_compaction_readahead_size": 2 * _MEGABYTE}
_PREDEFINED: dict[str, dict[str, Any]] = {
    "DEFAULT": {},
    "SPINNING_DISK_OPTIMIZED": _SPINNING,
    "SPINNING_DISK_OPTIMIZED_HIGH_MEM": {
        **_SPINNING,
        "set_target_file_size_base": 256 * _MEGABYTE,
        "set_max_bytes_for_level_base": 1024 * _MEGABYTE,
    },
    "FLASH_SSD_OPTIMIZED": _DISK,
}
"""Flink's settings for kinds of disks, without the sizes of buffers and caches, which follow from the slot's memory."""


def _database_options(options: RocksOptions, memory: int) -> Options:
    """Return the options of the database.

    Buffers share the memory with the block cache. A bloom filter makes it cheap to find that a key is new. Filters
    and indexes are in the cache too, so that their size is bounded, and they are partitioned. Otherwise those of
    one file could be larger than a shard of the cache, and would be read again for every key.
    """
    cache = Cache(max(memory, _MEGABYTE))
    blocks = BlockBasedOptions()
    blocks.set_block_cache(cache)
    blocks.set_bloom_filter(10, False)
    blocks.set_cache_index_and_filter_blocks(True)
    blocks.set_index_type(BlockBasedIndexType.two_level_index_search())
    blocks.set_partition_filters(True)
    blocks.set_pin_top_level_index_and_filter(True)
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(True)
    made = Options(raw_mode=True)
    made.create_if_missing(True)
    made.set_block_based_table_factory(blocks)
    made.set_write_buffer_manager(
        WriteBufferManager.new_write_buffer_manager_with_cache(max(memory // 2, _MEGABYTE), False, cache)
    )
    made.set_write_buffer_size(min(max(memory // 6, _MEGABYTE), 64 * _MEGABYTE))
    made.set_max_write_buffer_number(3)
    made.set_memtable_whole_key_filtering(True)
    made.set_memtable_prefix_bloom_ratio(0.05)
    made.set_compression_type(DBCompressionType.lz4())
    made.set_max_background_jobs(2)
    made.set_max_open_files(512)
    made.set_keep_log_file_num(1)
    made.set_stats_dump_period_sec(0)
    made.set_stats_persist_period_sec(0)
    for setter, value in _PREDEFINED[options.predefined].items():
        getattr(made, setter)(value)
    if options.options_factory is not None:
        _factory(options.options_factory).configure(made)
    return made


def _factory(path: str) -> Any:
    module, _, name = path.rpartition(":" if ":" in path else ".")
    try:
        return getattr(import_module(module), name)()
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigurationError(
            f"the RocksDB options factory {path!r} cannot be made: {error}. It must be the import path of a class that "
            "needs no arguments and has a method configure(options)."
        ) from error


# --- directories ---
def _claim_directory(directories: tuple[str, ...], label: str) -> tuple[str, int]:
    """Create a directory. Return it with a descriptor that holds a lock on it as long as this process lives."""
    base = directories[crc32(label.encode()) % len(directories)] if directories else tempfile.gettempdir()
    os.makedirs(base, exist_ok=True)
    _remove_orphans(base)
    readable = re.sub(r"[^A-Za-z0-9]+", "-", label)[:40]
    path = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-{readable}-", dir=base)
    claim = os.open(path, os.O_RDONLY)
    fcntl.flock(claim, fcntl.LOCK_EX)
    return path, claim


def _release_directory(directory: str, claim: int, owner: int) -> None:
    """Remove a directory, but not in a process that was forked from its owner."""
    os.close(claim)
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)


def _remove_orphans(base: str) -> None:
    """Remove the directories of processes that died. A process in another container can be recognised only by its
    lock."""
    for name in os.listdir(base):
        owner = re.match(rf"{_PREFIX}(\d+)-", name)
        if owner is not None and not _is_running(int(owner[1])):
            with suppress(OSError):
                _remove_unlocked(os.path.join(base, name))


def _remove_unlocked(path: str) -> None:
    claim = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(claim)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
