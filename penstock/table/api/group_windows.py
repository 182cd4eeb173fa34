"""Tumble, Slide, Session and Over: windows of the Table API."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from penstock.base.arguments import check_arguments
from penstock.table.expression.expression import Expression

__all__ = ["GroupWindow", "Over", "OverWindow", "Session", "Slide", "Tumble"]


@dataclass(frozen=True)
class GroupWindow:
    """A window with its time and its name, for `Table.window`."""

    kind: str
    size: Any
    slide: Any = None
    time: Any = None
    name: Any = None


@check_arguments
@dataclass(frozen=True)
class _Unnamed:
    """A window that still needs a time or a name."""

    _window: GroupWindow

    def on(self, time_field: Expression | str) -> _Unnamed:
        """Set the time attribute."""
        return _Unnamed(replace(self._window, time=time_field))

    def alias(self, alias: Expression | str) -> GroupWindow:
        """Set the name by which group_by and select refer to the window."""
        return replace(self._window, name=alias)


@check_arguments
@dataclass(frozen=True)
class _UnnamedSlide:
    """A sliding window that still needs its slide."""

    _window: GroupWindow

    def every(self, slide: Expression) -> _Unnamed:
        """Set the interval between the starts of windows."""
        return _Unnamed(replace(self._window, slide=slide))


@check_arguments
class Tumble:
    """Windows of a fixed size, one after the other: `Tumble.over(lit(10).minutes).on(col("ts")).alias("w")`."""

    @classmethod
    def over(cls, size: Expression) -> _Unnamed:
        """Begin a window of this size: an interval, or a number of rows as `row_interval(n)`."""
        return _Unnamed(GroupWindow("TUMBLE", size))


@check_arguments
class Slide:
    """Windows of a fixed size that overlap: `Slide.over(size).every(slide).on(time).alias("w")`."""

    @classmethod
    def over(cls, size: Expression) -> _UnnamedSlide:
        """Begin a window of this size: an interval, or a number of rows as `row_interval(n)`."""
        return _UnnamedSlide(GroupWindow("HOP", size))


@check_arguments
class Session:
    """Windows that end after a gap without rows: `Session.with_gap(gap).on(time).alias("w")`."""

    @classmethod
    def with_gap(cls, gap: Expression) -> _Unnamed:
        """Begin a window that ends when no row comes for this interval."""
        return _Unnamed(GroupWindow("SESSION", gap))


@dataclass(frozen=True)
class OverWindow:
    """A window of rows around the current one, for `Table.over_window`."""

    partition: tuple[Any, ...] = ()
    order: Any = None
    before: Any = None
    behind: Any = None
    name: Any = None


@check_arguments
@dataclass(frozen=True)
class _UnnamedOver:
    """An over window that is not complete yet."""

    _window: OverWindow

    def order_by(self, order_by: Expression | str) -> _UnnamedOver:
        """Set the time attribute by which the rows are ordered."""
        return _UnnamedOver(replace(self._window, order=order_by))

    def preceding(self, preceding: Expression) -> _UnnamedOver:
        """Set the start of the window: a number of rows, an interval, UNBOUNDED_ROW or UNBOUNDED_RANGE."""
        return _UnnamedOver(replace(self._window, before=preceding))

    def following(self, following: Expression) -> _UnnamedOver:
        """Set the end of the window: a number of rows, an interval, CURRENT_ROW or CURRENT_RANGE."""
        return _UnnamedOver(replace(self._window, behind=following))

    def alias(self, alias: Expression | str) -> OverWindow:
        """Set the name by which select refers to the window."""
        return replace(self._window, name=alias)


@check_arguments
class Over:
    """Windows of rows: `Over.partition_by(col("k")).order_by(col("ts")).preceding(UNBOUNDED_RANGE).alias("w")`."""

    @classmethod
    def order_by(cls, order_by: Expression | str) -> _UnnamedOver:
        """Begin a window over all rows, in the order of a time attribute."""
        return _UnnamedOver(OverWindow(order=order_by))

    @classmethod
    def partition_by(cls, *partition_by: Expression | str) -> _UnnamedOver:
        """Begin a window over the rows that are equal in these columns."""
        return _UnnamedOver(OverWindow(partition=partition_by))
