"""Parts of a graph in columns: how dense numbers are found for vertices, and how edges become sorted arrays.

A part numbers its own vertices. The other end of an edge may be in any part, so each part asks the others, once, for
the numbers of the vertices that its edges lead to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from penstock.dataset import DataSet
from penstock.errors import ProgramError
from penstock.gelly.columns.packing import PackEdges, Packing, PackVertices, as_ids, distinct, owners_of
from penstock.gelly.graph_base import GraphBase
from penstock.gelly.supersteps.engine import Parcel, PartOperator, to_parts

UNKNOWN = -1


class Ids:
    """The ids of the vertices of a part, which are numbered from 0 on."""

    def __init__(self, batches: Sequence[Any]) -> None:
        """Create the table of these ids, which may come several times, in arrays and lists."""
        self._sorted: Any = None
        self._numbers: dict[Any, int] | None = None
        if all(isinstance(batch, np.ndarray) for batch in batches):
            self._sorted = np.unique(np.concatenate(batches)) if batches else np.empty(0, dtype=np.int64)
            self.values = self._sorted.tolist()
        else:
            self.values = list(dict.fromkeys(each for batch in batches for each in as_list(batch)))
            self._numbers = {each: number for number, each in enumerate(self.values)}

    def __len__(self) -> int:
        return len(self.values)

    def find(self, ids: Any) -> Any:
        """Return the numbers of some ids as an array, with UNKNOWN for those that are not there."""
        if self._sorted is not None and len(self._sorted):
            ids = as_ids(ids) if not isinstance(ids, np.ndarray) else ids
            if isinstance(ids, np.ndarray):
                places = np.minimum(np.searchsorted(self._sorted, ids), len(self._sorted) - 1)
                return np.where(self._sorted[places] == ids, places, UNKNOWN)
        if self._numbers is None:
            self._numbers = {each: number for number, each in enumerate(self.values)}
        numbers = self._numbers
        return np.array([numbers.get(each, UNKNOWN) for each in as_list(ids)], dtype=np.int64)


def as_list(values: Any) -> list[Any]:
    """Return an array or a list as a list."""
    return list(values.tolist() if isinstance(values, np.ndarray) else values)


class Link:
    """The edges from one part to another, sorted by target."""

    def __init__(self, sources: Any, targets: Any, values: Any) -> None:
        order = np.argsort(targets, kind="stable")
        self.sources = sources[order]
        """Numbers of the vertices in the own part."""
        self.targets = targets[order]
        """Numbers of the vertices in the other part."""
        self.values = None if values is None else values[order]
        self.starts = run_starts(self.targets)
        """Positions at which another target begins."""
        self.distinct = self.targets[self.starts]
        """The targets, each once."""


def run_starts(values: Any) -> Any:
    """Return the positions at which runs of equal values begin."""
    if not len(values):
        return np.empty(0, dtype=np.int64)
    return np.concatenate(([0], np.flatnonzero(values[1:] != values[:-1]) + 1))


class Wanted:
    """Edges of a part, until the numbers of the vertices at their other ends are known."""

    def __init__(self, sources: Any, ids: Any, values: Any, parts: int) -> None:
        self.sources, self.values = sources, values
        self.distinct: Any
        if isinstance(ids, np.ndarray):
            self.distinct, self.places = np.unique(ids, return_inverse=True)
        else:
            self.distinct = distinct(ids)
            numbers = {each: number for number, each in enumerate(self.distinct)}
            self.places = np.array([numbers[each] for each in ids], dtype=np.int64)
        self.owners: Any = owners_of(self.distinct, parts)
        self.numbers = np.full(len(self.distinct), UNKNOWN)

    def ask(self, part: int) -> Any:
        """Return the ids of the vertices in a part that are wanted."""
        positions = np.flatnonzero(self.owners == part)
        if isinstance(self.distinct, np.ndarray):
            return self.distinct[positions]
        return [self.distinct[at] for at in positions.tolist()]

    def learn(self, part: int, numbers: Any) -> None:
        """Take the numbers that a part has sent, in the order in which they were wanted."""
        positions = np.flatnonzero(self.owners == part)
        self.numbers[positions] = numbers
        missing = positions[numbers == UNKNOWN]
        if len(missing):
            unknown = as_list(self.distinct)[missing[0]]
            raise ProgramError(f"an edge begins or ends at the vertex {unknown!r}, which is not in the graph")

    def links(self, parts: int) -> dict[int, Link]:
        """Return the edges to each part."""
        owners, targets = self.owners[self.places], self.numbers[self.places]
        links = {}
        for part in range(parts):
            chosen = np.flatnonzero(owners == part)
            if len(chosen):
                values = None if self.values is None else self.values[chosen]
                links[part] = Link(self.sources[chosen], targets[chosen], values)
        return links


class ColumnPart:
    """The vertices of one part and their edges."""

    def __init__(self, number: int, batches: Sequence[Any], packing: Packing) -> None:
        columns: dict[str, list[Any]] = defaultdict(list)
        for kind, *batch in batches:
            columns[kind].append(batch)
        self.number = number
        self.parts = packing.parts
        self.ids = Ids([batch[0] for batch in columns["vertices"]])
        self.values: list[Any] = [None] * len(self.ids)
        """Initial values of the vertices."""
        if not packing.of_edges:
            for ids, values in columns["vertices"]:
                for at, value in zip(self.ids.find(ids).tolist(), values, strict=True):
                    self.values[at] = value
        self.wanted = {kind: self._edges(columns[kind], packing) for kind in ("out", "in") if columns[kind]}
        self.out: dict[int, Link] = {}
        """Edges that begin at a vertex of this part, by the part of their targets."""
        self.into: dict[int, Link] = {}
        """Edges that end at a vertex of this part, turned round, by the part of their sources."""
        self.state: Any = None
        """State of the algorithm that runs."""

    def _edges(self, batches: list[Any], packing: Packing) -> Wanted:
        sources = np.concatenate([self.ids.find(batch[0]) for batch in batches])
        ends = [batch[1] for batch in batches]
        known = sources != UNKNOWN
        if not known.all():
            unknown = [each for batch in batches for each in as_list(batch[0])][int(np.flatnonzero(~known)[0])]
            raise ProgramError(f"an edge begins or ends at the vertex {unknown!r}, which is not in the graph")
        values = numbers_of([value for batch in batches for value in batch[2]]) if packing.with_values else None
        if all(isinstance(end, np.ndarray) for end in ends):
            return Wanted(sources, np.concatenate(ends), values, packing.parts)
        return Wanted(sources, [each for end in ends for each in as_list(end)], values, packing.parts)

    def __len__(self) -> int:
        return len(self.ids)

    def complete(self) -> None:
        """Make links of the edges, when all numbers are known."""
        links = {kind: wanted.links(self.parts) for kind, wanted in self.wanted.items()}
        self.out, self.into, self.wanted = links.get("out", {}), links.get("in", {}), {}


def numbers_of(values: list[Any]) -> Any:
    """Return the values of edges as floating-point numbers. Raise an error if they are none."""
    for value in values:
        if not isinstance(value, (int, float)):
            raise ProgramError(f"the algorithm needs numbers as values of edges, and there is {value!r}")
    return np.array(values, dtype=np.float64)


def join_columns(columns: Sequence[Any]) -> Any:
    """Return columns as one. If their types differ, it is one of objects."""
    if len({column.dtype for column in columns}) > 1:
        columns = [column.astype(object) for column in columns]
    return np.concatenate(columns)


# --- operators ---
class NumberVertices(PartOperator):
    """Makes parts, and asks other parts for the numbers of vertices."""

    def __init__(self, packing: Packing) -> None:
        super().__init__()
        self.packing = packing

    def complete(self, number: int, part: Any, batches: list[Any]) -> Iterator[Parcel]:
        part = ColumnPart(number, batches, self.packing)
        for kind, wanted in part.wanted.items():
            for other in range(part.parts):
                ids = wanted.ask(other)
                if len(ids):
                    yield Parcel(other, False, (number, kind, ids))
        yield Parcel(number, True, part)


class AnswerNumbers(PartOperator):
    """Sends the numbers of vertices to the parts that have asked for them."""

    def complete(self, number: int, part: ColumnPart | None, batches: list[Any]) -> Iterator[Parcel]:
        for asking, kind, ids in batches:
            numbers = np.full(len(ids), UNKNOWN) if part is None else part.ids.find(ids)
            yield Parcel(asking, False, (number, kind, numbers))
        if part is not None:
            yield Parcel(number, True, part)


class CompleteLinks(PartOperator):
    """Completes the edges of parts."""

    def complete(self, number: int, part: ColumnPart, batches: list[Any]) -> Iterator[Parcel]:
        for other, kind, numbers in batches:
            part.wanted[kind].learn(other, numbers)
        part.complete()
        yield Parcel(number, True, part)


def column_parts(graph: GraphBase, packing: Packing) -> DataSet:
    """Return the parts of a graph."""
    elements = graph.get_edges().add("Pack Edges", PackEdges(packing))
    if not packing.of_edges:
        elements = elements.union(graph.get_vertices().add("Pack Vertices", PackVertices(packing)))
    numbered = to_parts(elements, "Number Vertices", NumberVertices(packing), packing.parts)
    answered = to_parts(numbered, "Answer Numbers", AnswerNumbers(), packing.parts)
    return to_parts(answered, "Complete Links", CompleteLinks(), packing.parts)


def values_column(values: list[Any]) -> Any:
    """Return values as an array: of integers or floating-point numbers if they all are such, or else of objects."""
    kinds = set(map(type, values))
    if kinds == {float}:
        return np.array(values, dtype=np.float64)
    if kinds == {int}:
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            pass
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
