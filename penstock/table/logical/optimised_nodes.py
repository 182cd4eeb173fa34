"""Relations that only the optimiser makes. Each stands for one operator."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.table.logical.nodes import Relation, WindowTable
from penstock.table.logical.rex import AggregateCall, Rex, SortKey


@dataclass(frozen=True)
class Calc(Relation):
    """A filter and a projection, both over the columns of the input."""

    input: Relation
    exprs: tuple[Rex, ...]
    condition: Rex | None

    def details(self) -> str:
        select = ", ".join(
            str(expr) if str(expr) == name else f"{expr} AS {name}"
            for expr, name in zip(self.exprs, self.names(), strict=True)
        )
        return f"select=[{select}]" + ("" if self.condition is None else f", where=[{self.condition}]")


@dataclass(frozen=True)
class TopN(Relation):
    """The rows of each partition in a range of ranks. With `rank_column`, the rank is the last column."""

    input: Relation
    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    first: int
    last: int
    """The first and the last rank, both included. Ranks count from 1."""
    rank_column: bool
    function: str = "ROW_NUMBER"
    """ROW_NUMBER or RANK. With RANK, equal rows have the same rank."""

    def details(self) -> str:
        by = ", ".join(map(str, self.order))
        return (
            f"rankType=[{self.function}], rankRange=[{self.first}, {self.last}], partitionBy={list(self.partition)}, "
            f"orderBy=[{by}], rankColumn=[{self.rank_column}]"
        )


@dataclass(frozen=True)
class Deduplicate(Relation):
    """The first or the last row of each partition, by a time attribute. With `rank_column`, the last column is 1."""

    input: Relation
    partition: tuple[int, ...]
    time: int
    keep_last: bool
    rank_column: bool = False
    every_version: bool = False
    """True if each row that was the last one is sent, even if another row of the same epoch replaces it."""

    def details(self) -> str:
        kept = "LastRow" if self.keep_last else "FirstRow"
        return f"keep=[{kept}], key={list(self.partition)}, order=[${self.time}]"


@dataclass(frozen=True)
class WindowTableAggregate(Relation):
    """flat_aggregate over windows: keys, the columns of the function's rows, then properties of the window.

    The input is a window table. Its last three columns are start, end and time.
    """

    input: Relation
    keys: tuple[int, ...]
    call: AggregateCall
    properties: tuple[str, ...]

    def details(self) -> str:
        return f"by={list(self.keys)}, {self.call}, properties={list(self.properties)}"


@dataclass(frozen=True)
class SliceTable(WindowTable):
    """A window table before an aggregate that needs each row once, with the end of its slice, or with its own time.

    Window_start, window_end and window_time are all this time.
    """
