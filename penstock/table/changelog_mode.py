"""ChangelogMode: which kinds of changes a stream may bring."""

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
        return ChangelogMode(frozenset({RowKind.INSERT}))

    @staticmethod
    def upsert() -> ChangelogMode:
        """Rows that replace the one with their key; nothing says what was there before."""
        return ChangelogMode(frozenset({RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE}))

    @staticmethod
    def all() -> ChangelogMode:
        return ChangelogMode(frozenset(RowKind))
