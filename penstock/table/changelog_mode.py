"""ChangelogMode: the kinds of changes that a stream may bring."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.base.arguments import check_arguments
from penstock.common.types import RowKind

__all__ = ["ChangelogMode"]


@check_arguments
@dataclass(frozen=True)
class ChangelogMode:
    """The kinds of rows in a changelog."""

    kinds: frozenset[RowKind]

    @staticmethod
    def insert_only() -> ChangelogMode:
        """Return the mode of a stream that only inserts rows."""
        return ChangelogMode(frozenset({RowKind.INSERT}))

    @staticmethod
    def upsert() -> ChangelogMode:
        """Return the mode of a stream in which a row replaces the earlier row with its key.

        The stream does not repeat the replaced row.
        """
        return ChangelogMode(frozenset({RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE}))

    @staticmethod
    def all() -> ChangelogMode:
        """Return the mode of a stream with all kinds of changes."""
        return ChangelogMode(frozenset(RowKind))
