"""Triangles: each vertex keeps its neighbours of higher rank, and parts check which of these are neighbours, too.

The rank of a vertex is its degree, so that vertices with many neighbours keep few of them. All edges count in both
directions; two bits say which directions there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from penstock.gelly.columns.column_parts import ColumnPart, run_starts
from penstock.gelly.columns.kernels import SIZES, Kernel

FORWARD, REVERSE = 2, 1
"""Bits of an edge between two vertices: from the first to the second, and the other way."""
PAIRS_AT_ONCE = 1_000_000
DEGREES, LISTS = 1, 2
"""The supersteps in which parts exchange degrees, and lists of neighbours."""


def flip(bits: Any) -> Any:
    """Return the bits of an edge seen from the other side."""
    return ((bits & 1) << 1) | (bits >> 1)


class Neighbors:
    """The distinct neighbours of the vertices of a part. Vertices of all parts have global numbers."""

    def __init__(self, part: ColumnPart, sizes: Sequence[int]) -> None:
        self.number, self.parts, self.size = part.number, part.parts, len(part)
        self.base = max(sizes) * part.parts
        """A number above all global numbers."""
        keys, bits = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for links, bit in ((part.out, FORWARD), (part.into, REVERSE)):
            for other, link in links.items():
                ends = link.targets * part.parts + other
                no_loop = ends != self.global_numbers(link.sources)
                keys.append(link.sources[no_loop] * self.base + ends[no_loop])
                bits.append(np.full(len(keys[-1]), bit))
        all_keys, all_bits = np.concatenate(keys), np.concatenate(bits)
        order = np.argsort(all_keys, kind="stable")
        all_keys, all_bits = all_keys[order], all_bits[order]
        starts = run_starts(all_keys)
        self.keys = all_keys[starts]
        self.bits = np.bitwise_or.reduceat(all_bits, starts) if len(starts) else all_bits
        self.vertices, self.others = np.divmod(self.keys, self.base)
        self.degrees = np.bincount(self.vertices, minlength=self.size)
        self.counts = np.zeros(self.size, dtype=np.int64)
        """Numbers of triangles by vertex."""
        self.found: list[Any] = []
        """Results that the algorithm has collected from the triangles."""
        self.by_bits = np.zeros(64, dtype=np.int64)
        """Numbers of triangles by the bits of their edges."""

    def global_numbers(self, numbers: Any) -> Any:
        """Return the global numbers of vertices of this part."""
        return numbers * self.parts + self.number

    def count_bits(self, bits: int) -> Any:
        """Return how many neighbours each vertex has whose edges have exactly these bits."""
        return np.bincount(self.vertices[self.bits == bits], minlength=self.size)

    # --- degrees ---
    def degree_batches(self) -> Iterator[tuple[int, Any]]:
        """Yield the degrees of the vertices for all their neighbours."""
        owners = self.others % self.parts
        for part in range(self.parts):
            chosen = owners == part
            if chosen.any():
                vertices = self.vertices[chosen]
                batch = self.others[chosen] // self.parts, self.global_numbers(vertices), self.degrees[vertices]
                yield part, batch

    def keep_higher(self, batches: Sequence[Any]) -> None:
        """Keep the neighbours of higher rank, sorted by rank. `batches` has the degrees of all neighbours."""
        keys, degrees = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        if batches:
            keys = np.concatenate([numbers * self.base + others for numbers, others, _ in batches])
            degrees = np.concatenate([degrees for _, _, degrees in batches])
        # Being a neighbour is mutual, so each neighbour has sent its degree, once.
        degrees = degrees[np.argsort(keys)]
        own_degrees, own = self.degrees[self.vertices], self.global_numbers(self.vertices)
        is_higher = (own_degrees < degrees) | ((own_degrees == degrees) & (own < self.others))
        vertices, others, degrees = self.vertices[is_higher], self.others[is_higher], degrees[is_higher]
        self.higher_keys, self.higher_bits = self.keys[is_higher], self.bits[is_higher]
        order = np.lexsort((others, degrees, vertices))
        self.list_vertices, self.list_others = vertices[order], others[order]
        self.list_bits = self.higher_bits[order]

    # --- lists ---
    def list_batches(self) -> Iterator[tuple[int, Any]]:
        """Yield, for each part, the lists in which one of its vertices is."""
        owners = self.list_others % self.parts
        for part in range(self.parts):
            is_wanted = np.zeros(self.size, dtype=bool)
            is_wanted[self.list_vertices[owners == part]] = True
            chosen = is_wanted[self.list_vertices]
            if chosen.any():
                vertices = self.global_numbers(self.list_vertices[chosen])
                yield part, (vertices, self.list_others[chosen], self.list_bits[chosen])

    def triangles(self, batch: Any) -> Iterator[tuple[Any, ...]]:
        """Yield triangles with one vertex that heads a list and another that is in this part.

        They are arrays: three global numbers, and the bits between first and second, first and third, second and third.
        """
        vertices, others, bits = batch
        starts = run_starts(vertices)
        ends = np.repeat(np.append(starts[1:], len(vertices)), np.diff(np.append(starts, len(vertices))))
        middles = np.flatnonzero(others % self.parts == self.number)
        counts = ends[middles] - middles - 1
        totals = np.cumsum(counts)
        begin = 0
        while begin < len(middles):
            done = totals[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(totals, done + PAIRS_AT_ONCE, side="right")))
            middle = np.repeat(middles[begin:end], counts[begin:end])
            first = np.repeat(totals[begin:end] - counts[begin:end] - done, counts[begin:end])
            last = middle + 1 + np.arange(len(middle)) - first
            begin = end
            keys = (others[middle] // self.parts) * self.base + others[last]
            places = np.searchsorted(self.higher_keys, keys)
            places[places == len(self.higher_keys)] = 0
            found = np.flatnonzero(self.higher_keys[places] == keys) if len(self.higher_keys) else places[:0]
            middle, last = middle[found], last[found]
            between = self.higher_bits[places[found]]
            yield vertices[middle], others[middle], others[last], bits[middle], bits[last], between


class TriangleKernel(Kernel):
    """Base of the algorithms on triangles. It finds them in the second superstep."""

    supersteps = 2

    def send(self, part: ColumnPart, task: Any) -> Iterable[tuple[int, Any]]:
        superstep = task.get_superstep_number()
        if superstep == DEGREES:
            part.state = Neighbors(part, task.get_broadcast_variable(SIZES))
            return part.state.degree_batches()  # type: ignore[no-any-return]
        if superstep == LISTS:
            return part.state.list_batches()  # type: ignore[no-any-return]
        return self.send_more(part, superstep)

    def receive(self, part: ColumnPart, batches: Sequence[Any], task: Any) -> float:
        superstep = task.get_superstep_number()
        if superstep == DEGREES:
            part.state.keep_higher(batches)
        elif superstep == LISTS:
            for batch in batches:
                for triangles in part.state.triangles(batch):
                    self.take(part, *triangles)
        else:
            self.receive_more(part, superstep, batches)
        return 0

    def take(self, part: ColumnPart, *triangles: Any) -> None:
        """Take triangles of a part."""
        raise NotImplementedError

    def send_more(self, part: ColumnPart, superstep: int) -> Iterable[tuple[int, Any]]:
        """Send in a superstep after the second."""
        return ()

    def receive_more(self, part: ColumnPart, superstep: int, batches: Sequence[Any]) -> None:
        """Receive in a superstep after the second."""


class CountOfVertices(TriangleKernel):
    """Counts the neighbours of each vertex and the edges between them. If `directed`, opposite edges count as two."""

    supersteps = 3

    def __init__(self, directed: bool) -> None:
        self.directed = directed

    def take(self, part: ColumnPart, *triangles: Any) -> None:
        first, second, third, *bits = triangles
        for vertices, opposite in zip((first, second, third), reversed(bits), strict=True):
            weights = (1 + (opposite == FORWARD + REVERSE)) if self.directed else np.ones(len(vertices), dtype=np.int64)
            numbers, places = np.unique(vertices, return_inverse=True)
            sums = np.bincount(places, weights=weights)
            for owner in range(part.parts):
                chosen = numbers % part.parts == owner
                if chosen.any():
                    batch = numbers[chosen] // part.parts, sums[chosen].astype(np.int64)
                    part.state.found.append((owner, batch))

    def send_more(self, part: ColumnPart, superstep: int) -> Iterable[tuple[int, Any]]:
        found, part.state.found = part.state.found, []
        return found  # type: ignore[no-any-return]

    def receive_more(self, part: ColumnPart, superstep: int, batches: Sequence[Any]) -> None:
        for numbers, sums in batches:
            part.state.counts[numbers] += sums

    def results(self, part: ColumnPart) -> Iterable[Any]:
        state = part.state
        return zip(part.ids.values, state.degrees.tolist(), state.counts.tolist(), strict=True)


class CountOfGraph(TriangleKernel):
    """Counts pairs of neighbours by the bits of their edges, triangles by all their bits, and dyads by their bits."""

    def take(self, part: ColumnPart, *triangles: Any) -> None:
        *_, one, two, three = triangles
        part.state.by_bits += np.bincount(one * 16 + two * 4 + three, minlength=64)

    def results(self, part: ColumnPart) -> Iterable[Any]:
        state = part.state
        outs, ins, both = (state.count_bits(bits) for bits in (FORWARD, REVERSE, FORWARD + REVERSE))
        pairs = {
            (FORWARD, FORWARD): outs * (outs - 1) // 2,
            (REVERSE, REVERSE): ins * (ins - 1) // 2,
            (FORWARD, REVERSE): outs * ins,
            (FORWARD, FORWARD + REVERSE): outs * both,
            (REVERSE, FORWARD + REVERSE): ins * both,
            (FORWARD + REVERSE, FORWARD + REVERSE): both * (both - 1) // 2,
        }
        yield {
            "vertices": len(part),
            "one-way": int(outs.sum()),
            "both ways": int(both.sum()),
            "pairs": {kind: int(count.sum()) for kind, count in pairs.items()},
            "triangles": state.by_bits.tolist(),
        }


class Listing:
    """The triangles of a part by global numbers, and the ids of their vertices."""

    def __init__(self, found: list[tuple[Any, ...]]) -> None:
        self.columns = [np.concatenate(column) for column in zip(*found, strict=True)]
        self.names: dict[int, Any] = {}
        self.questions: Sequence[Any] = ()

    def numbers(self) -> Any:
        """Return the global numbers of all vertices, each once."""
        return np.unique(np.concatenate(self.columns[:3])) if self.columns else np.empty(0, dtype=np.int64)


class ListOfTriangles(TriangleKernel):
    """Lists triangles, with the ids of their vertices. The parts ask each other for the ids."""

    supersteps = 4

    def __init__(self, is_sorted: bool, permutes: bool) -> None:
        self.is_sorted = is_sorted
        self.permutes = permutes

    def take(self, part: ColumnPart, *triangles: Any) -> None:
        part.state.found.append(triangles)

    def send_more(self, part: ColumnPart, superstep: int) -> Iterable[tuple[int, Any]]:
        if superstep == 3:
            part.state = Listing(part.state.found)
            numbers = part.state.numbers()
            for owner in range(part.parts):
                chosen = numbers[numbers % part.parts == owner]
                if len(chosen):
                    yield owner, (part.number, chosen)
        else:
            for asking, numbers in part.state.questions:
                yield asking, (numbers, [part.ids.values[at] for at in (numbers // part.parts).tolist()])

    def receive_more(self, part: ColumnPart, superstep: int, batches: Sequence[Any]) -> None:
        if superstep == 3:
            part.state.questions = batches
        else:
            for numbers, names in batches:
                part.state.names.update(zip(numbers.tolist(), names, strict=True))

    def results(self, part: ColumnPart) -> Iterator[Any]:
        names = part.state.names
        for first, second, third, *bits in zip(*(column.tolist() for column in part.state.columns), strict=True):
            ids = names[first], names[second], names[third]
            if self.is_sorted:
                yield arrange(ids, bits, sorted(range(3), key=ids.__getitem__))
            elif not self.permutes:
                yield (*ids, bits[0] * 16 + bits[1] * 4 + bits[2])
            if self.permutes:
                for order in permutations(range(3)):
                    if not (self.is_sorted and list(order) == sorted(range(3), key=ids.__getitem__)):
                        yield arrange(ids, bits, order)


def arrange(ids: Sequence[Any], bits: Sequence[int], order: Sequence[int]) -> tuple[Any, ...]:
    """Return the ids of a triangle in an order, with the bits of the edges between them as one number."""
    between = {(0, 1): bits[0], (0, 2): bits[1], (1, 2): bits[2]}
    between.update({(high, low): flip(found) for (low, high), found in list(between.items())})
    first, second, third = order
    code = between[first, second] * 16 + between[first, third] * 4 + between[second, third]
    return ids[first], ids[second], ids[third], code
