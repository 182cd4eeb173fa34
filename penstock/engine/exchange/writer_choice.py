"""The choice of a writer for a partitioning."""

from __future__ import annotations

from typing import Any

from penstock.engine.exchange.writers import (
    BroadcastWriter,
    CustomWriter,
    KeyGroupWriter,
    Owner,
    RoundRobinWriter,
    ShuffleWriter,
    SingleWriter,
    Writer,
)
from penstock.graph.partitioning import Broadcast, ByKey, Custom, Forward, Global, Rebalance, Rescale, Shuffle
from penstock.graph.plan import Edge, Plan

_SIMPLE_WRITERS: dict[type, type[Writer]] = {
    Forward: SingleWriter,
    Global: SingleWriter,
    Rebalance: RoundRobinWriter,
    Rescale: RoundRobinWriter,
    Shuffle: ShuffleWriter,
    Broadcast: BroadcastWriter,
}


def writer_for(plan: Plan, subtask: int, edge: Edge, partitioning: Any) -> Writer:
    """Create the writer that routes the output of a subtask over an edge."""
    targets = edge.connects(plan, subtask)
    source, target = plan.nodes[edge.source], plan.nodes[edge.target]
    if isinstance(partitioning, ByKey):
        owner = Owner(f"key_by of {target.name}", target.uid)
        return KeyGroupWriter(owner, subtask, targets, partitioning.selector, target.max_parallelism)
    if isinstance(partitioning, Custom):
        owner = Owner(f"partition_custom before {target.name}", target.uid)
        return CustomWriter(owner, subtask, targets, partitioning.partitioner, partitioning.selector)
    return _SIMPLE_WRITERS[type(partitioning)](Owner(source.name, source.uid), subtask, targets)
