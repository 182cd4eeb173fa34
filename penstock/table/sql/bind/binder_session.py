"""The session of a query, as the binder sees it: tables, functions and settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from penstock.table.logical.nodes import Relation
from penstock.table.logical.rex import Literal, Rex
from penstock.table.types.data_types import DataType


class Session(Protocol):
    """The catalogs, functions and settings that a statement can use."""

    @property
    def batch(self) -> bool:
        """True in BATCH mode."""
        ...

    @property
    def has_core(self) -> bool:
        """True if the functions of SQL can be called by their names."""
        ...

    def relation(self, path: tuple[str, ...], options: tuple[tuple[str, str], ...] = ()) -> Relation | None:
        """Return the plan of a table or view, with computed columns and watermark, or None if it does not exist.

        `path` has one to three names, as written. `options` come from a hint, and override those of the table.
        """
        ...

    def function(self, name: str) -> Any | None:
        """Return the wrapper of a user's function, or None. The name may have any case, and dots if it is qualified."""
        ...

    def get(self, name: str, default: str) -> str:
        """Return a setting."""
        ...

    def suggestions(self, kind: str) -> list[str]:
        """Return names that exist. `kind` is "table" or "function"."""
        ...


class Functions(Protocol):
    """The registry of functions. The module penstock.table.functions implements it for the binder."""

    def resolve(self, name: str, args: Sequence[Rex]) -> Rex:
        """Return the typed call of a function."""
        ...

    def cast(self, rex: Rex, aim: DataType, safe: bool = False) -> Rex:
        """Return a value as another type. If `safe`, a value that cannot be converted becomes NULL."""
        ...

    def explicit_cast(self, rex: Rex, aim: DataType, safe: bool = False) -> Rex:
        """Return a cast that is written in a query."""
        ...

    def common_type(self, types: Sequence[DataType]) -> DataType | None:
        """Return the common type of several types, or None."""
        ...

    def resolve_aggregate(self, name: str, arg_types: Sequence[DataType], distinct: bool) -> DataType:
        """Return the type of an aggregate's result."""
        ...

    def is_aggregate(self, name: str) -> bool:
        """Return True for an aggregate function, or a function that needs OVER."""
        ...

    def is_table_function(self, name: str) -> bool:
        """Return True for a table function of SQL."""
        ...

    def constant(self, rex: Rex) -> Literal | None:
        """Return the value of an expression without columns whose value never changes, or None."""
        ...
