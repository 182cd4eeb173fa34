"""Built-in aggregations in event-time windows, over columns. A chunk reaches each pane once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.api.windows.assigners import SlidingEventTimeWindows, TumblingEventTimeWindows
from penstock.engine.operators.functions.column_folds import (
    ABSENT,
    Fold,
    Groups,
    distinct_keys,
    fold_groups,
    numbers_in,
)
from penstock.engine.records.columns import Columns, Keys
from penstock.engine.records.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from penstock.engine.records.failures import USER_ERRORS
from penstock.engine.state.tables import Table
from penstock.formats.format_libraries import pyarrow

Assigner = TumblingEventTimeWindows | SlidingEventTimeWindows


class ColumnPanes:
    """The panes of windows of a fixed size. Rows are added to them in columns."""

    def __init__(
        self,
        assigner: Assigner,
        fold: Fold,
        panes: Table,
        window_at: Callable[[int], Any],
        opened: Callable[[Any, Any], None],
    ) -> None:
        """Create the panes.

        `window_at` makes the window that starts at a time. `opened` is called with the key and window of each new pane.
        """
        self._assigner = assigner
        self._fold = fold
        self._panes = panes
        self._window_at = window_at
        self._opened = opened

    def add(self, columns: Columns, key_selector: Callable[[Any], Any], watermark: int) -> Columns | None:
        """Fold rows into their panes. Return the rows that must be looked at one by one, or None if there are none.

        These are rows behind the watermark, which may be late or evaluate their window at once. They are all rows if
        the columns are not fit for folding.
        """
        numbers = numbers_in(columns, self._fold) if self._are_in_range(columns) else None
        if numbers is None:
            return columns
        ahead = columns.times.to_numpy() > watermark  # type: ignore[union-attr]
        if ahead.all():
            return None if self._add_rows(columns, numbers, key_selector) else columns
        if self._assigner.slide < self._assigner.size:
            return columns  # a row that is behind may share a pane with one that is not
        behind = self._behind(columns, watermark)
        on_time = columns.filter(pyarrow().array(~behind))
        if not len(on_time) or not self._add_rows(on_time, numbers[~behind], key_selector):
            return columns
        return columns.filter(pyarrow().array(behind)) if behind.any() else None

    def _are_in_range(self, columns: Columns) -> bool:
        if not columns.is_timed():
            return False
        times, size = columns.times.to_numpy(), self._assigner.size  # type: ignore[union-attr]
        lowest = MIN_TIMESTAMP + 2 * max(size, self._assigner.slide)
        return bool(times.min() > lowest and times.max() <= MAX_TIMESTAMP - size)

    def _behind(self, columns: Columns, watermark: int) -> Any:
        """Return, for each row, whether its window is over. Rows have one window each."""
        return self._latest_start(columns) + self._assigner.size - 1 <= watermark

    def _latest_start(self, columns: Columns) -> Any:
        times = columns.times.to_numpy()  # type: ignore[union-attr]
        return times - (times - self._assigner.offset) % self._assigner.slide

    def _add_rows(self, columns: Columns, numbers: Any, key_selector: Callable[[Any], Any]) -> bool:
        keys = distinct_keys(columns, key_selector)
        if keys is None:
            return False
        addresses, groups = self._group_by_pane(columns, keys)
        if not addresses:
            return True
        entries, mark = self._panes.entries, self._panes.changed.add
        held = [entries.get(address, ABSENT) for address in addresses]
        try:
            results = fold_groups(self._fold, columns, numbers, groups, held)
        except USER_ERRORS:
            results = None  # the rows tell which record it was
        if results is None:
            return False
        for address, before, result in zip(addresses, held, results, strict=True):
            entries[address] = result
            mark(address)
            if before is ABSENT:
                self._opened(*address)
        return True

    def _group_by_pane(self, columns: Columns, keys: Keys) -> tuple[list[tuple[Any, Any]], Groups]:
        """Return the panes of the rows, as (key, window) in the order of their first rows, and the rows of each."""
        rows, starts = self._windows(columns)
        known, window = np.unique(starts, return_inverse=True)
        both = keys.codes().astype(np.int64)[rows] * len(known) + window
        encoded = pyarrow().array(both).dictionary_encode()
        windows = [self._window_at(start) for start in known.tolist()]
        split = (divmod(code, len(windows)) for code in encoded.dictionary.to_pylist())
        addresses = [(keys.distinct[key], windows[number]) for key, number in split]
        groups = Groups.of(encoded.indices.to_numpy(zero_copy_only=False))
        return addresses, groups._replace(order=rows[groups.order])

    def _windows(self, columns: Columns) -> tuple[Any, Any]:
        """Return (position of the row, start of the window) for each row and each of its windows, latest first."""
        size, slide, latest = self._assigner.size, self._assigner.slide, self._latest_start(columns)
        times = columns.times.to_numpy()  # type: ignore[union-attr]
        starts = latest[:, None] - slide * np.arange(-(-size // slide))
        taken = starts > (times - size)[:, None]
        return np.nonzero(taken)[0], starts[taken]
