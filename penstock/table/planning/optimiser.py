"""The optimiser: rewrites a logical plan into relations of which each stands for one operator."""

from __future__ import annotations

from penstock.table.plan.nodes import Relation, rewritten_plan
from penstock.table.planning.calcs import fused


def optimised(relation: Relation, batch: bool) -> Relation:
    """The plan that is run."""
    return rewritten_plan(relation, fused)
