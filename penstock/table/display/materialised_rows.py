"""The rows that a changelog leaves, as texts."""

from __future__ import annotations

from collections import OrderedDict, deque

from penstock.common.types import RowKind

Texts = tuple[str | None, ...]


class Materialised:
    """The rows that a changelog leaves. If there are too many, the oldest rows are forgotten.

    A +U takes the place of the row that a -U took away, so that an updated row does not move.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rows: OrderedDict[int, Texts | None] = OrderedDict()
        """Rows by number. None is the place of a row that a -U took away."""
        self._numbers: dict[Texts, list[int]] = {}
        self._free: deque[int] = deque()
        self.changes = 0

    def apply(self, row: Texts, kind: RowKind) -> None:
        """Add or remove a row."""
        self.changes += 1
        if kind in (RowKind.INSERT, RowKind.UPDATE_AFTER):
            self._add(row, kind is RowKind.UPDATE_AFTER)
        else:
            self._remove(row, kind is RowKind.UPDATE_BEFORE)

    def _add(self, row: Texts, updates: bool) -> None:
        number = self._free.popleft() if updates and self._free else self.changes
        self._rows[number] = row
        self._numbers.setdefault(row, []).append(number)
        if len(self._rows) > self._limit:
            self._forget()

    def _forget(self) -> None:
        number, row = self._rows.popitem(last=False)
        if row is None:
            self._free.remove(number)
        else:
            self._take(row, 0)

    def _remove(self, row: Texts, updates: bool) -> None:
        if row not in self._numbers:
            return
        number = self._take(row, -1)
        if updates:
            self._rows[number] = None
            self._free.append(number)
        else:
            del self._rows[number]

    def _take(self, row: Texts, which: int) -> int:
        numbers = self._numbers[row]
        number = numbers.pop(which)
        if not numbers:
            del self._numbers[row]
        return number

    def newest(self, count: int) -> list[Texts]:
        """Return the newest rows in the order in which they came."""
        found: list[Texts] = []
        for row in reversed(self._rows.values()):
            if len(found) == count:
                break
            if row is not None:
                found.append(row)
        return found[::-1]

    def __len__(self) -> int:
        return len(self._rows) - len(self._free)
