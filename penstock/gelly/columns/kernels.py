"""The common base of the kernels of all algorithms: messages along links, and the start and the end of an iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from penstock.dataset import DataSet
from penstock.dataset.aggregators import Aggregator, ConvergenceCriterion, DoubleSumAggregator
from penstock.errors import InvalidArgument
from penstock.gelly.columns.column_parts import ColumnPart, Link, column_parts, run_starts
from penstock.gelly.columns.packing import Packing
from penstock.gelly.graph_base import GraphBase
from penstock.gelly.supersteps.engine import SuperstepProgram, Supersteps

SIZES = "sizes of the parts"
"""Name of the broadcast set with the numbers of vertices of the parts."""


class Kernel(SuperstepProgram):
    """Base of the algorithms on columns."""

    def results(self, part: ColumnPart) -> Iterable[Any]:
        """Return the results of a part, after the last superstep."""
        raise NotImplementedError


class Change(ConvergenceCriterion):
    """Ends an iteration when the sum of changes is at most a threshold, which is looked at in some supersteps."""

    def __init__(self, threshold: float | None, first: int, every: int) -> None:
        self.threshold = threshold
        self.first = first
        self.every = every

    def is_converged(self, iteration: int, value: Any) -> bool:
        if self.threshold is None or iteration < self.first or (iteration - self.first) % self.every:
            return False
        return bool(value <= self.threshold)


def run_kernel(
    graph: GraphBase,
    kernel: Kernel,
    packing: Packing,
    supersteps: int,
    sums: Iterable[str] = (),
    criterion: ConvergenceCriterion | None = None,
) -> DataSet:
    """Return the results of an algorithm. `sums` are the names of the sums over all parts that it uses."""
    parts = column_parts(graph, packing)
    sizes = parts.map(lambda parcel: len(parcel.content)).name("Sizes")
    aggregators: dict[str, Aggregator] = {name: DoubleSumAggregator() for name in sums}
    steps = Supersteps(type(kernel).__name__, kernel, supersteps, packing.parts, aggregators, {SIZES: sizes})
    if criterion is not None:
        steps.work, steps.criterion = DoubleSumAggregator(), criterion
    results = kernel.results
    return steps.run(parts).flat_map(lambda parcel: results(parcel.content)).name("Results")


def number_of_vertices(task: Any) -> int:
    """Return the number of vertices of the graph."""
    return sum(task.get_broadcast_variable(SIZES))


def send_sums(links: dict[int, Link], values: Any) -> Iterator[tuple[int, Any]]:
    """Yield, for each part, its vertices that edges lead to, and the sum of the values at the other ends."""
    for part, link in links.items():
        yield part, (link.distinct, np.add.reduceat(values[link.sources], link.starts))


def add_sums(size: int, batches: Iterable[Any]) -> Any:
    """Return the sums that have come for each vertex."""
    total = np.zeros(size)
    for targets, sums in batches:
        total[targets] += sums
    return total


def send_least(
    links: dict[int, Link], state: Any, active: Any, weigh: Callable[[Any, Any], Any] | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield, for each part, its vertices that edges of active vertices lead to, and the least values for them."""
    everything = bool(active.all())
    for part, link in links.items():
        sources, targets, values = link.sources, link.targets, link.values
        starts, reached = link.starts, link.distinct
        if not everything:
            chosen = np.flatnonzero(active[sources])
            if not len(chosen):
                continue
            sources, targets = sources[chosen], targets[chosen]
            values = None if values is None else values[chosen]
            starts = run_starts(targets)
            reached = targets[starts]
        carried = state[sources] if weigh is None else weigh(state[sources], values)
        yield part, (reached, np.minimum.reduceat(carried, starts))


def keep_least(state: Any, batches: Iterable[Any]) -> Any:
    """Store the values that are less than those of their vertices. Return True for each vertex that changed."""
    changed = np.zeros(len(state), dtype=bool)
    for targets, values in batches:
        is_less = (values < state[targets]).astype(bool)
        less = targets[is_less]
        state[less] = values[is_less]
        changed[less] = True
    return changed


def check_rounds(name: str, rounds: Any) -> int:
    """Return a number of rounds. Raise an error if it is no whole number above 0."""
    if not isinstance(rounds, int) or isinstance(rounds, bool) or rounds < 1:
        raise InvalidArgument(f"{name}: the number of iterations must be a whole number of at least 1, not {rounds!r}")
    return rounds


def check_limits(name: str, first: Any, second: Any) -> tuple[int, float | None]:
    """Return the number of iterations and the threshold. If only one is given, a float is the threshold."""
    iterations, threshold = (2**31 - 1, first) if isinstance(first, float) and second is None else (first, second)
    if threshold is not None and (not isinstance(threshold, float) or not threshold > 0):
        raise InvalidArgument(f"{name}: the threshold must be a float above 0, not {threshold!r}")
    return check_rounds(name, iterations), threshold
