"""The way of vertices and edges from rows to the columns of the part that they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.dataset.operators.dataset_operator import DataSetOperator
from penstock.engine.records.elements import Values
from penstock.engine.state.key_groups import hashes_of_numbers
from penstock.gelly.supersteps.engine import Parcel, owner_of

PACKED_ELEMENTS = 100_000
"""Number of elements that are gathered before they are sent as columns."""


@dataclass(frozen=True)
class Packing:
    """The edges that a part needs, and where its vertices come from."""

    parts: int
    outward: bool = True
    """True if a part has the edges that begin at its vertices."""
    inward: bool = False
    """True if a part has, apart from these, the edges that end at its vertices."""
    undirected: bool = False
    """True if each edge counts as two, one in either direction."""
    with_values: bool = False
    """True if edges have values."""
    of_edges: bool = False
    """True if the vertices are those of the edges, without values."""


def as_ids(ids: Sequence[Any]) -> Any:
    """Return ids as an array of 64-bit integers if they all are such, or else as they are."""
    if all(type(each) is int for each in ids):
        try:
            return np.array(ids, dtype=np.int64)
        except OverflowError:
            pass
    return ids


def owners_of(ids: Any, parts: int) -> Any:
    """Return the numbers of the parts that have some vertices."""
    if parts == 1:
        return np.zeros(len(ids), dtype=np.int64)
    if isinstance(ids, np.ndarray):
        hashes = hashes_of_numbers(ids)
        if hashes is not None:
            return hashes % parts
        ids = ids.tolist()
    return np.fromiter((owner_of(each, parts) for each in ids), dtype=np.int64, count=len(ids))


def distinct(ids: Any) -> Any:
    """Return each id once."""
    return np.unique(ids) if isinstance(ids, np.ndarray) else list(dict.fromkeys(ids))


def pick(values: Any, positions: Any) -> Any:
    """Return the values at some positions, of an array or a list."""
    if isinstance(values, np.ndarray):
        return values[positions]
    return [values[at] for at in positions.tolist()]


class PackOperator(DataSetOperator):
    """Sends elements as columns to the parts that they belong to."""

    def __init__(self, packing: Packing) -> None:
        super().__init__()
        self.packing = packing

    def begin(self) -> None:
        self._gathered: list[Any] = []

    def process(self, index: int, values: Values) -> None:
        self._gathered += values
        if len(self._gathered) >= PACKED_ELEMENTS:
            self._flush()

    def rest(self) -> Iterator[None]:
        self._flush()
        return iter(())

    def _flush(self) -> None:
        gathered, self._gathered = self._gathered, []
        if gathered:
            self.give(self.pack(gathered))

    def pack(self, elements: list[Any]) -> Iterator[Parcel]:
        """Yield the columns of some elements."""
        raise NotImplementedError

    def parcels(self, kind: str, ids: Any, *columns: Any) -> Iterator[Parcel]:
        """Yield columns by the owner of the ids."""
        owners = owners_of(ids, self.packing.parts)
        for part in range(self.packing.parts):
            positions = np.flatnonzero(owners == part)
            if len(positions):
                yield Parcel(part, False, (kind, *(pick(column, positions) for column in (ids, *columns))))


class PackVertices(PackOperator):
    """Sends vertices as columns."""

    def pack(self, elements: list[Any]) -> Iterator[Parcel]:
        yield from self.parcels("vertices", as_ids([each[0] for each in elements]), [each[1] for each in elements])


class PackEdges(PackOperator):
    """Sends edges as columns."""

    def pack(self, elements: list[Any]) -> Iterator[Parcel]:
        packing = self.packing
        sources, targets = as_ids([each[0] for each in elements]), as_ids([each[1] for each in elements])
        values = [[each[2] for each in elements]] if packing.with_values else []
        if packing.of_edges:
            for ids in (sources, targets):
                yield from self.parcels("vertices", distinct(ids))
        if packing.outward:
            yield from self.parcels("out", sources, targets, *values)
        if packing.inward:
            yield from self.parcels("in", targets, sources, *values)
        if packing.undirected:
            yield from self.parcels("out", targets, sources, *values)
