"""The current windows of a key where windows merge, and the window under which the contents of each are stored.

A merged window keeps using the contents of one of its parts in place. Only the contents of the others move.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable
from typing import Any

from penstock.api.windows.windows import MergingWindowAssigner
from penstock.errors import UnsupportedOperation
from penstock.persisted import persisted

OnMerge = Callable[[Any, list[Any], Any, list[Any]], None]
"""Function of (result, windows merged into it, its state window, state windows to move there)."""


@persisted
class MergingWindowSet:
    """The windows of one key: a map from each window to the window under which its contents are stored."""

    def __init__(self) -> None:
        self.mapping: dict[Any, Any] = {}

    def state_window(self, window: Any) -> Any | None:
        """Return the window under which a window's contents are stored, or None if there is no such window."""
        return self.mapping.get(window)

    def retire(self, window: Any) -> None:
        """Remove a window that is over."""
        self.mapping.pop(window, None)

    def add(self, window: Any, assigner: MergingWindowAssigner[Any, Any], on_merge: OnMerge) -> Any:
        """Add a window, merge it with others, and return the window that it became part of."""
        merges = _Merges()
        assigner.merge_windows([*self.candidates(window), window], merges)
        result, merged_new = window, False
        for merged, cover in merges.found:
            if window in merged:
                result, merged_new = cover, True
            self._merge([w for w in merged if w != window or w in self.mapping], cover, on_merge)
        if result == window and not merged_new and window not in self.mapping:
            self.put(window, window)
        return result

    def candidates(self, window: Any) -> Iterable[Any]:
        """Return the windows that might merge with a new one: all, since only the assigner knows its rule."""
        return self.mapping

    def put(self, window: Any, state_window: Any) -> None:
        """Store a window."""
        self.mapping[window] = state_window

    def _merge(self, merged: list[Any], cover: Any, on_merge: OnMerge) -> None:
        if not merged:
            raise UnsupportedOperation(
                f"merge_windows reported {cover} as merged from one window; at least two are needed"
            )
        state_windows = [self.mapping[window] for window in merged]
        for window in merged:
            self.retire(window)
        self.put(cover, state_windows[0])
        if merged != [cover]:
            on_merge(cover, merged, state_windows[0], state_windows[1:])


@persisted
class SessionSet(MergingWindowSet):
    """The sessions of one key. They never touch each other, so a new one is compared only with its neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self._sorted: list[Any] = []

    def candidates(self, window: Any) -> Iterable[Any]:
        """Return the sessions that begin before the window ends and end after it begins.

        Sessions do not overlap, so their order by start is also their order by end.
        """
        sessions = self._sorted
        last = bisect_right(sessions, window.end, key=_start)
        first = bisect_left(sessions, window.start, hi=last, key=_end)
        return sessions[first:last]

    def put(self, window: Any, state_window: Any) -> None:
        super().put(window, state_window)
        insort(self._sorted, window)

    def retire(self, window: Any) -> None:
        if window in self.mapping:
            del self.mapping[window]
            del self._sorted[bisect_left(self._sorted, window)]


def _start(window: Any) -> int:
    return window[0]  # type: ignore[no-any-return]


def _end(window: Any) -> int:
    return window[1]  # type: ignore[no-any-return]


class _Merges(MergingWindowAssigner.MergeCallback[Any]):
    """Collects the merges that an assigner requests."""

    def __init__(self) -> None:
        self.found: list[tuple[list[Any], Any]] = []

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        self.found.append((list(to_be_merged), merge_result))
