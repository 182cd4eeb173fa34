"""Relations that only the optimiser makes: each stands for one operator."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.table.logical.nodes import Relation, WindowTable
from penstock.table.logical.rex import AggregateCall, Rex, SortKey


@dataclass(frozen=True)
class Calc(Relation):
    """Filter and projection at once, both over the columns of the input."""

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
    """The rows of each partition whose rank is between two numbers; with `rank_column`, the rank is the last column."""

    input: Relation
    partition: tuple[int, ...]
    order: tuple[SortKey, ...]
    first: int
    last: int
    """Ranks count from 1; both ends are included."""
    rank_column: bool
    function: str = "ROW_NUMBER"
    """ROW_NUMBER or RANK; with RANK rows that are equal have the same rank."""

    def details(self) -> str:
        by = ", ".join(map(str, self.order))
        return (
            f"rankType=[{self.function}], rankRange=[{self.first}, {self.last}], partitionBy={list(self.partition)}, "
            f"orderBy=[{by}], rankColumn=[{self.rank_column}]"
        )


@dataclass(frozen=True)
class Deduplicate(Relation):
    """The first or the last row of each partition, by a time attribute; with `rank_column`, 1 is the last column."""

    input: Relation
    partition: tuple[int, ...]
    time: int
    keep_last: bool
    rank_column: bool = False
    every_version: bool = False
    """Whether each row that is the last one for a while comes out, even if others of the same epoch replace it."""

    def details(self) -> str:
        kept = "LastRow" if self.keep_last else "FirstRow"
        return f"keep=[{kept}], key={list(self.partition)}, order=[${self.time}]"


@dataclass(frozen=True)
class WindowTableAggregate(Relation):
    """flat_aggregate over windows: keys, the columns of the function's rows, then properties of the window.

    The input is a window table, whose last three columns are start, end and time.
    """

    input: Relation
    keys: tuple[int, ...]
    call: AggregateCall
    properties: tuple[str, ...]

    def details(self) -> str:
        return f"by={list(self.keys)}, {self.call}, properties={list(self.properties)}"


@dataclass(frozen=True)
class SliceTable(WindowTable):
    """A window table below an aggregate that asks for each row once: with the end of its slice, or its own time.

    Window_start, window_end and window_time all are this time.
    """
