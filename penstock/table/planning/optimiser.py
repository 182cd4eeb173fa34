"""The optimiser: rewrites a logical plan into relations of which each stands for one operator."""

from __future__ import annotations

from penstock.table.plan.building import aggregate, set_operation
from penstock.table.plan.nodes import GroupWindow, Join, Relation, SetOperation, rewritten_plan
from penstock.table.planning.calcs import fused
from penstock.table.planning.group_windows import window_table_of
from penstock.table.planning.join_conditions import with_computed_keys


def optimised(relation: Relation, batch: bool) -> Relation:
    """The plan that is run."""
    return rewritten_plan(relation, _changed)


def _changed(relation: Relation) -> Relation:
    """A relation whose inputs are optimised already."""
    match relation:
        case GroupWindow() if not relation.by_rows:
            return rewritten_plan(window_table_of(relation), fused)
        case SetOperation() if relation.kind == "UNION" and not relation.all:
            return aggregate(set_operation(relation.parts, "UNION", True, relation.columns), _all(relation), [])
        case Join():
            return rewritten_plan(with_computed_keys(relation), fused)
    return fused(relation)


def _all(relation: Relation) -> range:
    return range(len(relation.columns))
