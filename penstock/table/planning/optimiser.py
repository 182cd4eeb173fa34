"""The optimiser: rewrites a logical plan into relations of which each stands for one operator."""

from __future__ import annotations

from penstock.table.plan.nodes import GroupWindow, Relation, rewritten_plan
from penstock.table.planning.calcs import fused
from penstock.table.planning.group_windows import window_table_of


def optimised(relation: Relation, batch: bool) -> Relation:
    """The plan that is run."""
    return rewritten_plan(relation, _changed)


def _changed(relation: Relation) -> Relation:
    """A relation whose inputs are optimised already."""
    if isinstance(relation, GroupWindow) and not relation.by_rows:
        return rewritten_plan(window_table_of(relation), fused)
    return fused(relation)
