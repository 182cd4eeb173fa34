"""The parts of an open slot, sorted by use. They are sorted once, because an idle epoch should cost nothing."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from penstock.engine.exchange.writers import Writer
from penstock.engine.operators.operator import Gate, Operator
from penstock.graph.partitioning import Forward

if TYPE_CHECKING:
    from penstock.engine.slot.slot import Slot

Leaving = tuple[tuple[int, int], Writer, bool]
"""(address of a channel, its writer, True if its frames stay in the slot)"""


class SlotParts:
    """Lists of a slot's operators, gates and writers. Use it only when every operator is open."""

    def __init__(self, slot: Slot) -> None:
        self._slot = slot

    @cached_property
    def sources(self) -> list[tuple[int, Operator]]:
        """The sources, as (node, operator), ordered by node."""
        return [(node, operator) for node, operator in sorted(self._slot.operators.items()) if operator.is_source]

    @cached_property
    def by_stage(self) -> list[list[Operator]]:
        """The operators of each stage, upstream first."""
        plan, operators = self._slot.plan, self._slot.operators
        own = [node for node in plan.nodes if node.id in operators]
        return [[operators[node.id] for node in own if node.stage == stage] for stage in range(plan.stages)]

    @cached_property
    def leaving(self) -> list[list[Leaving]]:
        """The writers of each sending stage."""
        plan, index = self._slot.plan, self._slot.index
        leaving: list[list[Leaving]] = [[] for _ in range(plan.stages)]
        for number, writer in self._slot.writers.items():
            edge = plan.edges[number]
            stays = isinstance(edge.partitioning, Forward)
            leaving[plan.nodes[edge.source].stage].append(((number, index), writer, stays))
        return leaving

    @cached_property
    def upstream_first(self) -> list[Gate]:
        """The gates, upstream first."""
        return [gate for _, gate in sorted(self._slot.gates.items())]
