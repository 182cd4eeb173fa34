"""The state of one side of a join: the rows of each key, their counts, and the numbers of their matches."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, MutableMapping, Sequence
from typing import Any
from zlib import crc32

from penstock.engine.state.backend import KeyedStateBackend
from penstock.engine.state.key_bytes import key_bytes
from penstock.engine.state.tables import Layout
from penstock.table.operators.base.query_batches import Held
from penstock.table.operators.base.query_state import ExpiringStore, store

Entry = Sequence[int]
"""(count of the row, number of matching rows of the other side), and the time of the last write if state expires.

An entry is never changed. Tuples of numbers cost the garbage collector nothing.
"""
Rows = MutableMapping[Held, Entry]
MOST_TOGETHER = 128
"""Maximum number of rows of a key in one entry of state. With several entries, a change does not rewrite all rows."""


class JoinRows:
    """The rows of one side. A caller that changes rows must write them again.

    The rows of a key are a dict. Many rows are spread over buckets, and the entry of the key is then (buckets, rows).
    If state expires, every row expires by itself, as in Flink.
    """

    def __init__(self, backend: KeyedStateBackend, name: str, ttl: int) -> None:
        self._heads = store(backend, name, ttl)
        self._buckets = store(backend, f"{name} buckets", ttl, Layout.PANE)
        self._now = backend._now
        self._ttl = ttl
        for kept in (self._heads, self._buckets):
            if isinstance(kept, ExpiringStore):
                self._prune_rows(kept)

    def read(self, keys: Sequence[Any]) -> list[Rows | None]:
        """Return the rows of keys, or None for a key without rows."""
        heads = self._heads.get_all(keys)
        if self._ttl:
            return [None if head is None else self._rows(key, head) for key, head in zip(keys, heads, strict=True)]
        return [
            head if head is None or head.__class__ is dict else self._rows(key, head)
            for key, head in zip(keys, heads, strict=True)
        ]

    def _rows(self, key: Any, head: Any) -> Rows:
        return Spread(self, key, *head) if isinstance(head, tuple) else self.fresh(head)

    def write(self, keys: Sequence[Any], rows: Sequence[Rows | None]) -> None:
        """Store the rows of keys. Remove a key whose rows are gone, and skip None."""
        heads: dict[Any, Any] = {}
        for key, own in zip(keys, rows, strict=True):
            if own:
                small = own.__class__ is dict and len(own) <= MOST_TOGETHER
                heads[key] = own if small else self._spread(key, own)
            elif own is not None:
                if isinstance(own, Spread):
                    own.save()
                self._heads.remove(key)
        self._heads.put_all(list(heads), list(heads.values()))

    def _spread(self, key: Any, rows: Rows) -> tuple[int, int]:
        """Write many rows of a key, and return the entry of the key."""
        if not isinstance(rows, Spread):
            known, rows = rows, Spread(self, key, 1, 0)
            rows.update(known)
        return rows.save()

    # --- buckets ---
    def bucket(self, key: Any, number: int) -> dict[Held, Entry]:
        """Return the rows of a bucket that have not expired."""
        found = self._buckets.get((key, number))
        return {} if found is None else self.fresh(found)

    def put_bucket(self, key: Any, number: int, rows: dict[Held, Entry]) -> None:
        """Store the rows of a bucket, or remove it if it is empty."""
        if rows:
            self._buckets.put((key, number), rows)
        else:
            self._buckets.remove((key, number))

    # --- expiry ---
    def entry(self, count: int, matches: int) -> Entry:
        """Return the entry of a row that is written now."""
        return (count, matches, self._now()) if self._ttl else (count, matches)

    def again(self, entry: Entry) -> Entry:
        """Return the entry of a row that came once more."""
        return self.entry(entry[0] + 1, entry[1])

    def fresh(self, rows: dict[Held, Entry]) -> dict[Held, Entry]:
        """Return the rows that have not expired."""
        if not self._ttl:
            return rows
        limit = self._now() - self._ttl
        if all(len(entry) < 3 or entry[2] > limit for entry in rows.values()):
            return rows
        return {row: entry for row, entry in rows.items() if len(entry) < 3 or entry[2] > limit}

    def _prune_rows(self, kept: ExpiringStore) -> None:
        """Let the cleanup of state remove expired rows, even if other rows of the key have not expired."""
        whole = kept.table.prune
        assert whole is not None

        def prune(held: Any) -> Any:
            if whole(held) is None or isinstance(held[0], tuple):
                return whole(held)
            left = self.fresh(held[0])
            return held if left is held[0] else (left, held[1]) if left else None

        kept.table.prune = prune


class Spread(MutableMapping[Held, Entry]):
    """Many rows of one key, in buckets by the hash of the row. Buckets are read when they are needed.

    Linear hashing splits one bucket after the other as rows are added, so that no change moves many rows.
    """

    def __init__(self, rows: JoinRows, key: Any, buckets: int, count: int) -> None:
        self._rows = rows
        self._key = key
        self._number = buckets
        self._count = count
        self._loaded: dict[int, dict[Held, Entry]] = {}
        self._changed: set[int] = set()

    def save(self) -> tuple[int, int]:
        """Write the changed buckets, and return the entry of the key."""
        for number in self._changed:
            self._rows.put_bucket(self._key, number, self._loaded[number])
        self._changed.clear()
        return self._number, self._count

    def _bucket(self, number: int) -> dict[Held, Entry]:
        found = self._loaded.get(number)
        if found is None:
            found = self._loaded[number] = self._rows.bucket(self._key, number)
        return found

    def _number_of(self, row: Held) -> int:
        hashed, size = crc32(key_bytes(row)), 1 << (self._number - 1).bit_length()
        return hashed % size if hashed % size < self._number else hashed % (size // 2)

    def _split(self) -> None:
        """Add a bucket, and move its rows out of the bucket that had them."""
        new = self._number
        old = new - (1 << new.bit_length() - 1)
        rows = self._bucket(old)
        self._number += 1
        self._loaded[new] = {row: entry for row, entry in rows.items() if self._number_of(row) == new}
        for row in self._loaded[new]:
            del rows[row]
        self._changed |= {old, new}

    # --- as a mapping ---
    def __getitem__(self, row: Held) -> Entry:
        return self._bucket(self._number_of(row))[row]

    def __setitem__(self, row: Held, entry: Entry) -> None:
        number = self._number_of(row)
        bucket = self._bucket(number)
        self._count += row not in bucket
        bucket[row] = entry
        self._changed.add(number)
        if self._count > self._number * MOST_TOGETHER // 2:
            self._split()

    def __delitem__(self, row: Held) -> None:
        number = self._number_of(row)
        del self._bucket(number)[row]
        self._changed.add(number)
        self._count -= 1

    def __iter__(self) -> Iterator[Held]:
        return (row for number in range(self._number) for row in self._bucket(number))

    def items(self) -> ItemsView[Held, Entry]:
        whole: dict[Held, Entry] = {}
        for number in range(self._number):
            whole.update(self._bucket(number))
        return whole.items()

    def __len__(self) -> int:
        return self._count
