"""Which windows of a key are in flight where windows merge, and under which window each keeps its contents.

A merged window keeps the contents of one of those it came from in place: only the others are moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.datastream.window import MergingWindowAssigner
from penstock.errors import UnsupportedOperation

OnMerge = Callable[[Any, list[Any], Any, list[Any]], None]
"""Called with (result, windows merged into it, its state window, state windows to move there)."""


class MergingWindowSet:
    """The windows of one key: a map from each to the window under which its contents are stored."""

    def __init__(self, assigner: MergingWindowAssigner[Any, Any], mapping: dict[Any, Any]) -> None:
        self._assigner = assigner
        self.mapping = mapping

    def state_window(self, window: Any) -> Any | None:
        """Where a window's contents are, or None if there is no such window."""
        return self.mapping.get(window)

    def retire(self, window: Any) -> None:
        """A window is over."""
        self.mapping.pop(window, None)

    def add(self, window: Any, on_merge: OnMerge) -> Any:
        """Bring a window in, merge what it touches, and return the window that it became part of."""
        merges = _Merges()
        self._assigner.merge_windows([*self.mapping, window], merges)
        result, merged_new = window, False
        for merged, cover in merges.found:
            if window in merged:
                result, merged_new = cover, True
            self._merge([w for w in merged if w != window or w in self.mapping], cover, on_merge)
        if result == window and not merged_new:
            self.mapping.setdefault(window, window)
        return result

    def _merge(self, merged: list[Any], cover: Any, on_merge: OnMerge) -> None:
        if not merged:
            raise UnsupportedOperation(
                f"merge_windows reported {cover} as merged from one window; it takes two or more"
            )
        state_windows = [self.mapping.pop(window) for window in merged]
        self.mapping[cover] = state_windows[0]
        if merged != [cover]:
            on_merge(cover, merged, state_windows[0], state_windows[1:])


class _Merges(MergingWindowAssigner.MergeCallback[Any]):
    """Collects what an assigner wants merged."""

    def __init__(self) -> None:
        self.found: list[tuple[list[Any], Any]] = []

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        self.found.append((list(to_be_merged), merge_result))
