"""Flame graphs: sampled stacks as a tree of frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

from penstock.engine.job.job_record import VertexRecord
from penstock.engine.observe.profiling import WAITING, Seen
from penstock.service.rest.answers.flink_numbers import Json

TERMINATED, DISABLED, NOT_YET = -1, -2, -3
"""The values that replace the time in Flink's answer if there is no graph."""


class Kind(Enum):
    """The kind of stacks in a graph."""

    FULL = "FULL"
    ON_CPU = "ON_CPU"
    OFF_CPU = "OFF_CPU"

    def takes(self, seen: Seen) -> bool:
        """Return True if a sampled stack is of this kind."""
        return self is Kind.FULL or seen.on_cpu == (self is Kind.ON_CPU)


def without_graph(why: int) -> Json:
    """Return the answer if there is no graph, for one of the reasons above."""
    return {"endTimestamp": why}


def flame_graph(seen: Sequence[Seen], vertex: VertexRecord, kind: Kind, subtask: int | None, ended: int) -> Json:
    """Return the graph of one vertex, for all its subtasks or for one.

    Time in which no operator was at work belongs to the slot, and is part of the graph of every vertex in that slot.
    """
    uids = {WAITING, *(operator.uid for operator in vertex.operators)}
    subtasks = range(vertex.parallelism) if subtask is None else (subtask,)
    wanted = [one for one in seen if one.uid in uids and one.subtask in subtasks and kind.takes(one)]
    return {"endTimestamp": ended, "data": _tree("root", [(one.frames, one.count) for one in wanted])}


def _tree(name: str, stacks: Iterable[tuple[tuple[str, ...], int]]) -> Json:
    """Return a frame and the frames that it called, the most frequent first."""
    within: dict[str, list[tuple[tuple[str, ...], int]]] = {}
    total = 0
    for frames, count in stacks:
        total += count
        if frames:
            within.setdefault(frames[0], []).append((frames[1:], count))
    children = [_tree(frame, inner) for frame, inner in within.items()]
    return {"name": name, "value": total, "children": sorted(children, key=lambda child: -child["value"])}
