"""Built-in aggregations in count windows, over columns. A chunk reaches each window once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from penstock.api.windows.windows import CountWindow
from penstock.engine.operators.functions.column_folds import (
    ABSENT,
    Fold,
    Groups,
    distinct_keys,
    fold_groups,
    numbers_in,
)
from penstock.engine.records.columns import Columns, Keys
from penstock.engine.records.failures import USER_ERRORS
from penstock.engine.state.tables import Table
from penstock.formats.format_libraries import pyarrow

Address = tuple[Any, CountWindow]


class CountStates(NamedTuple):
    """The state of a window operator for count windows, as its assigner and its trigger keep it row by row."""

    panes: Table
    taken: Callable[[Any], Any]
    """Function from a key to the state with the number of elements that the assigner has seen."""
    waiting: Callable[[Any, Any], Any]
    """Function from a key and a window to the state with the number of elements that the trigger has seen."""


class ColumnCounts:
    """Windows of `size` elements of a key, one after the other. Rows are added to them in columns."""

    def __init__(self, size: int, fold: Fold, states: CountStates, fired: Callable[[Any, CountWindow], None]) -> None:
        """Create the windows. `fired` gets the result of every full window."""
        self._size = size
        self._fold = fold
        self._states = states
        self._fired = fired

    def add(self, columns: Columns, key_selector: Callable[[Any], Any], watermark: int) -> Columns | None:
        """Fold rows into their windows, and return None. Return the rows if they must be looked at one by one."""
        numbers, keys = numbers_in(columns, self._fold), distinct_keys(columns, key_selector)
        if numbers is None or keys is None:
            return columns
        before = [self._states.taken(key).value() or 0 for key in keys.distinct]
        addresses, groups = self._group_by_window(keys, np.array(before))
        held = [self._states.panes.entries.get(address, ABSENT) for address in addresses]
        try:
            results = fold_groups(self._fold, columns, numbers, groups, held)
        except USER_ERRORS:
            results = None  # the rows tell which record it was
        if results is None:
            return columns
        added = np.bincount(keys.codes()).tolist()
        for key, already, more in zip(keys.distinct, before, added, strict=True):
            self._states.taken(key).update(already + more)
        self._keep(addresses, results, groups)
        return None

    def _group_by_window(self, keys: Keys, before: Any) -> tuple[list[Address], Groups]:
        """Return the windows of the rows, in the order of their first rows, and the rows of each."""
        codes = keys.codes()
        by_key = Groups.of(codes)
        number = np.empty(len(codes), np.int64)
        number[by_key.order] = np.arange(len(codes)) - np.repeat(by_key.starts, by_key.sizes)
        number = (number + before[codes]) // self._size
        most = int(number.max()) + 1
        encoded = pyarrow().array(codes.astype(np.int64) * most + number).dictionary_encode()
        split = (divmod(code, most) for code in encoded.dictionary.to_pylist())
        addresses = [(keys.distinct[key], CountWindow(window)) for key, window in split]
        return addresses, Groups.of(encoded.indices.to_numpy(zero_copy_only=False))

    def _keep(self, addresses: list[Address], results: list[Any], groups: Groups) -> None:
        """Emit the results of full windows, in the order of the rows that filled them, and store the other windows."""
        full: list[tuple[int, Any, CountWindow]] = []
        last_rows, sizes = groups.last_rows().tolist(), groups.sizes.tolist()
        for address, result, last, size in zip(addresses, results, last_rows, sizes, strict=True):
            waiting = self._states.waiting(*address)
            if (waiting.get() or 0) + size < self._size:
                waiting.add(size)
                self._states.panes.put(address, result)
            else:
                waiting.clear()
                self._states.panes.remove(address)
                full.append((last, result, address[1]))
        for _, result, window in sorted(full, key=lambda one: one[0]):
            self._fired(result, window)
