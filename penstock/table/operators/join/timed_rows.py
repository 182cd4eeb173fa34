"""Rows by key and time: the state of one side of an interval join."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

from penstock.engine.records.elements import MIN_TIMESTAMP
from penstock.engine.state.backend import KeyedStateBackend
from penstock.engine.state.tables import Layout
from penstock.table.operators.base.query_state import store

Kept = Sequence[Any]
"""(time, row), or [time, row, True if it has found a match] if rows without a match are sent."""
Head = dict[str, Any]
"""The head of a key with many rows.

Rows up to the time "gone" are removed; "buckets" has the row count of each bucket.
"""
PAGE_ROWS = 64
"""Number of rows of a key in a page. With pages, adding a row does not rewrite all rows of its key."""
BUCKETS = 8
LEAST_WIDTH = 100
"""Minimum width of a bucket, in milliseconds."""
_TIME = itemgetter(0)


class TimedRows:
    """The rows of each key: a tuple, or, if they are many, pages of rows with times close together.

    A time belongs to a bucket, and a bucket has pages. So a read costs as much as the rows near a time, and an addition
    at most a page. The head of the key notes the removed times, and a bucket is deleted as a whole.
    """

    def __init__(self, backend: KeyedStateBackend, name: str, span: int) -> None:
        """Create the state. `span` is the largest distance, in milliseconds, between times that are read together."""
        self._heads = store(backend, name)
        self._pages = store(backend, f"{name} pages", layout=Layout.PANE)
        self._width = max(span // BUCKETS, LEAST_WIDTH)
        self._read: dict[Any, list[tuple[Any, list[Kept]]]] = {}
        """The pages of the last read with their addresses, by key."""

    def times(self) -> Iterator[tuple[int, Any]]:
        """Yield the time of every row, with its key."""
        for key, head in self._heads.items():
            if isinstance(head, tuple):
                yield from ((entry[0], key) for entry in head)
        cuts = {key: head["gone"] for key, head in self._heads.items() if isinstance(head, dict)}
        for (key, _), page in self._pages.items():
            yield from ((entry[0], key) for entry in page if entry[0] > cuts[key])

    # --- reading ---
    def near(self, keys: Sequence[Any], low: int, high: int) -> list[Sequence[Kept] | None]:
        """Return the rows of each key from `low` to `high`, and possibly others, or None for a key without rows."""
        self._read = {}
        return [
            head if head is None or head.__class__ is tuple else self._near(key, head, low, high)
            for key, head in zip(keys, self._heads.get_all(keys), strict=True)
        ]

    def _near(self, key: Any, head: Head, low: int, high: int) -> list[Kept]:
        cut, buckets = head["gone"], head["buckets"]
        first, last = low // self._width, high // self._width
        self._read[key] = [
            place
            for bucket in sorted(buckets)
            if first <= bucket <= last
            for place in self._pages_of(key, head, bucket)
        ]
        return [entry for _, page in self._read[key] for entry in page if entry[0] > cut]

    def _pages_of(self, key: Any, head: Head, bucket: int) -> list[tuple[Any, list[Kept]]]:
        """Return the pages of a bucket, with their addresses."""
        addresses = [(key, (bucket, number)) for number in range(-(-head["buckets"][bucket] // PAGE_ROWS))]
        return list(zip(addresses, self._pages.get_all(addresses), strict=True))

    def store_changes(self, key: Any, entries: Sequence[Kept]) -> None:
        """Store entries of the last read that were changed in place."""
        if key not in self._read:
            self._heads.put(key, self._heads.get(key))
            return
        turned = set(map(id, entries))
        for address, page in self._read[key]:
            if not turned.isdisjoint(map(id, page)):
                self._pages.put(address, page)

    # --- adding ---
    def add(self, keys: Sequence[Any], entries: Sequence[Sequence[Kept]]) -> None:
        """Add rows to each key."""
        heads = self._heads.get_all(keys)
        for position, (key, head, more) in enumerate(zip(keys, heads, entries, strict=True)):
            if head is None or head.__class__ is tuple:
                whole = tuple(more) if head is None else (*head, *more)
                heads[position] = whole if len(whole) <= PAGE_ROWS else self._grown(key, _new_head(), whole)
            else:
                heads[position] = self._grown(key, head, more)
        self._heads.put_all(keys, heads)

    def _grown(self, key: Any, head: Head, more: Sequence[Kept]) -> Head:
        by_bucket: dict[int, list[Kept]] = {}
        for entry in more:
            by_bucket.setdefault(entry[0] // self._width, []).append(entry)
        for bucket, own in by_bucket.items():
            count = head["buckets"].get(bucket, 0)
            head["buckets"][bucket] = count + len(own)
            number, filled = divmod(count, PAGE_ROWS)
            rows = [*(self._pages.get((key, (bucket, number))) or ()), *own] if filled else own
            for start in range(0, len(rows), PAGE_ROWS):
                self._pages.put((key, (bucket, number + start // PAGE_ROWS)), rows[start : start + PAGE_ROWS])
        return head

    # --- expiring ---
    def expire(self, keys: Sequence[Any], due: int, limit: int) -> list[Kept]:
        """Remove rows up to `limit` of the keys that have a row whose time is due, and return them."""
        gone, shorter, removed = list[Any](), dict[Any, Any](), list[Kept]()
        for key, head in zip(keys, self._heads.get_all(keys), strict=True):
            if head is None or self._earliest(key, head, due) > due:
                continue  # the due row was already removed with another row of its key
            left = self._shorten(key, head, limit, removed)
            if left:
                shorter[key] = left
            else:
                gone.append(key)
        self._heads.remove_all(gone)
        self._heads.put_all(list(shorter), list(shorter.values()))
        return removed

    def _earliest(self, key: Any, head: Any, due: int) -> int:
        """Return the earliest time of a key's rows. If they are many, search only if it may be due."""
        if isinstance(head, tuple):
            return int(head[0][0] if len(head) == 1 else min(head, key=_TIME)[0])
        cut, buckets = head["gone"], head["buckets"]
        if cut >= due:
            return due + 1
        for bucket in sorted(buckets):
            times = [entry[0] for _, page in self._pages_of(key, head, bucket) for entry in page if entry[0] > cut]
            if times:
                return int(min(times))
        return MIN_TIMESTAMP

    def _shorten(self, key: Any, head: Any, limit: int, removed: list[Kept]) -> Any:
        """Remove rows up to a limit, and return the head of the remaining rows, or an empty value if there are none."""
        if isinstance(head, tuple):
            gone = head if len(head) == 1 else [entry for entry in head if entry[0] <= limit]
            removed += gone
            return () if len(gone) == len(head) else tuple([entry for entry in head if entry[0] > limit])
        cut, buckets = head["gone"], head["buckets"]
        for bucket in [bucket for bucket in sorted(buckets) if bucket * self._width <= limit]:
            pages = self._pages_of(key, head, bucket)
            entries = [entry for _, page in pages for entry in page]
            removed += [entry for entry in entries if cut < entry[0] <= limit]
            if all(entry[0] <= limit for entry in entries):
                self._pages.remove_all([address for address, _ in pages])
                del buckets[bucket]
        return {"gone": max(cut, limit), "buckets": buckets} if buckets else None


def _new_head() -> Head:
    return {"gone": MIN_TIMESTAMP, "buckets": {}}
