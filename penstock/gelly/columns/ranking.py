"""Scores of vertices that depend on those of their neighbours: PageRank, hubs and authorities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from penstock.gelly.columns.column_parts import ColumnPart
from penstock.gelly.columns.kernels import Kernel, add_sums, number_of_vertices, send_sums

SENT = "scores that were sent"
HUBS, AUTHORITIES = "squares of hub scores", "squares of authority scores"


class Ranks:
    """The scores of the vertices of a part."""

    def __init__(self, part: ColumnPart, vertices: int) -> None:
        self.scores = np.full(len(part), 1.0 / vertices)
        self.received = np.zeros(len(part))
        self.change = 0.0
        degrees = np.zeros(len(part), dtype=np.int64)
        for link in part.out.values():
            # Parallel edges count once.
            pairs = np.unique(link.sources * (int(link.targets.max()) + 1) + link.targets)
            degrees += np.bincount(pairs // (int(link.targets.max()) + 1), minlength=len(part))
        self.degrees = np.maximum(degrees, 1)


class PageRankKernel(Kernel):
    """Computes PageRank. A superstep completes the scores of the iteration before, and sends them.

    The scores of an iteration need the sum of all that were sent, which is known only when the next superstep begins.
    """

    def __init__(self, damping: float, iterations: int) -> None:
        self.damping = damping
        self.iterations = iterations

    def send(self, part: ColumnPart, task: Any) -> Iterable[tuple[int, Any]]:
        superstep = task.get_superstep_number()
        if superstep == 1:
            part.state = Ranks(part, number_of_vertices(task))
        else:
            self._complete(part.state, task)
        if superstep > self.iterations:
            return ()
        return send_sums(part.out, part.state.scores / part.state.degrees)

    def _complete(self, ranks: Ranks, task: Any) -> None:
        lost = 1 - task.get_previous_iteration_aggregate(SENT)
        everywhere = ((1 - self.damping) + self.damping * lost) / number_of_vertices(task)
        scores = everywhere + self.damping * ranks.received
        ranks.change = float(np.abs(scores - ranks.scores).sum())
        ranks.scores = scores

    def receive(self, part: ColumnPart, batches: Sequence[Any], task: Any) -> float:
        ranks = part.state
        ranks.received = add_sums(len(part), batches)
        task.get_iteration_aggregator(SENT).aggregate(float(ranks.received.sum()))
        return ranks.change  # type: ignore[no-any-return]

    def results(self, part: ColumnPart) -> Iterable[Any]:
        return zip(part.ids.values, part.state.scores.tolist(), strict=True)


class HubsState:
    """The scores of the vertices of a part, and what has come for the next ones."""

    def __init__(self, part: ColumnPart) -> None:
        self.hubs = np.zeros(len(part))
        self.authorities = np.zeros(len(part))
        for link in part.into.values():
            self.authorities += np.bincount(link.sources, minlength=len(part))
        self.next_hubs = self.next_authorities = self.hubs
        self.hub_squares = 1.0
        self.change = 0.0


class HitsKernel(Kernel):
    """Computes hubs and authorities. An iteration takes two supersteps, one for each kind of score."""

    def __init__(self, iterations: int) -> None:
        self.iterations = iterations

    def send(self, part: ColumnPart, task: Any) -> Iterable[tuple[int, Any]]:
        superstep = task.get_superstep_number()
        if superstep == 1:
            part.state = HubsState(part)
        state = part.state
        if superstep % 2 == 0:
            state.hub_squares = task.get_previous_iteration_aggregate(HUBS)
            return send_sums(part.out, state.next_hubs)
        if superstep > 1:
            self._complete(state, task)
        return () if superstep > 2 * self.iterations else send_sums(part.into, state.authorities)

    def _complete(self, state: HubsState, task: Any) -> None:
        hubs = state.next_hubs / np.sqrt(state.hub_squares)
        authorities = state.next_authorities / np.sqrt(task.get_previous_iteration_aggregate(AUTHORITIES))
        changes = np.abs(hubs - state.hubs).sum() + np.abs(authorities - state.authorities).sum()
        state.hubs, state.authorities, state.change = hubs, authorities, float(changes)

    def receive(self, part: ColumnPart, batches: Sequence[Any], task: Any) -> float:
        state, sums = part.state, add_sums(len(part), batches)
        squares = float((sums * sums).sum())
        if task.get_superstep_number() % 2 == 1:
            state.next_hubs = sums
            task.get_iteration_aggregator(HUBS).aggregate(squares)
        else:
            state.next_authorities = sums
            task.get_iteration_aggregator(AUTHORITIES).aggregate(squares)
        return state.change  # type: ignore[no-any-return]

    def results(self, part: ColumnPart) -> Iterable[Any]:
        state = part.state
        return zip(part.ids.values, state.hubs.tolist(), state.authorities.tolist(), strict=True)
