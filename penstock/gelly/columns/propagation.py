"""Values that spread along edges until nothing changes: components, distances, labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from penstock.gelly.columns.column_parts import ColumnPart, join_columns, run_starts, values_column
from penstock.gelly.columns.kernels import Kernel, keep_least, send_least
from penstock.gelly.elements import Vertex


class Spread:
    """The values of the vertices of a part, and those that changed in the last superstep."""

    def __init__(self, values: Any) -> None:
        self.values = values
        self.active = np.ones(len(values), dtype=bool)

    def admit(self, values: Any) -> Any:
        """Return received values in the type of this part's values. If the types differ, all become objects.

        The values of one part may all be integers, while another part has other values.
        """
        if values.dtype != self.values.dtype:
            self.values, values = self.values.astype(object), values.astype(object)
        return values


class Propagation(Kernel):
    """Base of the algorithms in which vertices that changed send their values."""

    def initial(self, part: ColumnPart) -> Any:
        """Return the values before the first superstep."""
        return values_column(part.values)

    def spread(self, part: ColumnPart) -> Spread:
        """Return the state of a part."""
        if part.state is None:
            part.state = Spread(self.initial(part))
        return part.state  # type: ignore[no-any-return]

    def results(self, part: ColumnPart) -> Iterable[Any]:
        return map(Vertex, part.ids.values, self.spread(part).values.tolist())


class LeastValue(Propagation):
    """Every vertex learns the least value that reaches it."""

    def send(self, part: ColumnPart, task: Any) -> Iterable[tuple[int, Any]]:
        spread = self.spread(part)
        return send_least(part.out, spread.values, spread.active)

    def receive(self, part: ColumnPart, batches: Sequence[Any], task: Any) -> float:
        spread = self.spread(part)
        admitted = [(targets, spread.admit(values)) for targets, values in batches]
        spread.active = keep_least(spread.values, [(targets, spread.admit(values)) for targets, values in admitted])
        return int(spread.active.sum())


class Distances(LeastValue):
    """Every vertex learns its distance from a source, which is the sum of the values of edges."""

    UNREACHABLE = float(np.finfo(np.float64).max)

    def __init__(self, source: Any) -> None:
        self.source = source

    def initial(self, part: ColumnPart) -> Any:
        distances = np.full(len(part), self.UNREACHABLE)
        (number,) = part.ids.find([self.source])
        if number >= 0:
            distances[number] = 0.0
        return distances

    def send(self, part: ColumnPart, task: Any) -> Iterable[tuple[int, Any]]:
        spread = self.spread(part)
        with np.errstate(over="ignore"):
            return list(send_least(part.out, spread.values, spread.active, np.add))


class CommonLabel(Propagation):
    """Every vertex takes the label that most of its neighbours have, and of several the greatest."""

    def send(self, part: ColumnPart, task: Any) -> Iterator[tuple[int, Any]]:
        spread = self.spread(part)
        for other, link in part.out.items():
            chosen = spread.active[link.sources]
            if chosen.any():
                yield other, (link.targets[chosen], spread.values[link.sources[chosen]])

    def receive(self, part: ColumnPart, batches: Sequence[Any], task: Any) -> float:
        spread = self.spread(part)
        spread.active = np.zeros(len(part), dtype=bool)
        if not batches:
            return 0
        targets, labels = choose_labels(
            np.concatenate([targets for targets, _ in batches]),
            spread.admit(join_columns([labels for _, labels in batches])),
            spread.values,
        )
        spread.values[targets] = labels
        spread.active[targets] = True
        return len(targets)


def choose_labels(targets: Any, labels: Any, own: Any) -> tuple[Any, Any]:
    """Return the vertices with messages, and the label of each.

    If no label comes twice, a vertex keeps its own label, provided that it is the greatest.
    """
    distinct, codes = np.unique(labels, return_inverse=True)
    pairs, counts = np.unique(targets * len(distinct) + codes, return_counts=True)
    vertices, codes = np.divmod(pairs, len(distinct))
    starts = run_starts(vertices)
    most = np.maximum.reduceat(counts, starts)
    sizes = np.diff(np.append(starts, len(vertices)))
    is_most = counts == np.repeat(most, sizes)
    chosen = distinct[np.maximum.reduceat(np.where(is_most, codes, -1), starts)]
    vertices = vertices[starts]
    keeps = (most == 1) & (own[vertices] > chosen).astype(bool)
    chosen[keeps] = own[vertices][keeps]
    return vertices, chosen


class Cores(Propagation):
    """Removes vertices with too few neighbours, until all others have enough."""

    def __init__(self, least: int) -> None:
        self.least = least

    def initial(self, part: ColumnPart) -> Any:
        degrees = np.zeros(len(part), dtype=np.int64)
        for link in part.out.values():
            degrees += np.bincount(link.sources, minlength=len(part))
        return degrees

    def send(self, part: ColumnPart, task: Any) -> Iterator[tuple[int, Any]]:
        if task.get_superstep_number() == 1:
            spread = self.spread(part)
            spread.active = spread.values < self.least
        spread = self.spread(part)
        for other, link in part.out.items():
            targets, losses = np.unique(link.targets[spread.active[link.sources]], return_counts=True)
            if len(targets):
                yield other, (targets, losses)
        # A vertex that was removed has no neighbours, and is not removed again.
        spread.values[spread.active] = 0

    def receive(self, part: ColumnPart, batches: Sequence[Any], task: Any) -> float:
        spread = self.spread(part)
        had_enough = spread.values >= self.least
        for targets, losses in batches:
            spread.values[targets] -= losses
        spread.active = had_enough & (spread.values < self.least)
        return int(spread.active.sum())

    def results(self, part: ColumnPart) -> Iterable[Any]:
        kept = np.flatnonzero(self.spread(part).values >= self.least)
        return [part.ids.values[at] for at in kept.tolist()]
