"""The columns that make a row of a relation unique at any time, as far as the plan tells."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.table.logical.nodes import Aggregate, Filter, Project, Relation, Scan, StreamScan, Watermark
from penstock.table.logical.optimised_nodes import Calc, Deduplicate, TopN
from penstock.table.rules.upsert_keys import same_column

Key = frozenset[int]


def unique_keys(relation: Relation) -> list[Key]:
    """Return sets of columns that make a row unique. The list is empty if nothing is known."""
    match relation:
        case Scan():
            names = relation.names()
            declared = relation.table.schema.primary_key
            return [frozenset(map(names.index, declared))] if declared and set(declared) <= set(names) else []
        case StreamScan():
            key = relation.primary_key or relation.upsert_key
            return [frozenset(key)] if key else []
        case Watermark(input=below) | Filter(input=below):
            return unique_keys(below)
        case Calc(input=below, exprs=exprs) | Project(input=below, exprs=exprs):
            return _project_keys(unique_keys(below), [same_column(expr) for expr in exprs])
        case Deduplicate(partition=partition):
            return [frozenset(partition)]
        case TopN(partition=partition) if relation.first == relation.last:
            return [frozenset(partition)]
        case Aggregate(keys=keys) if keys:
            return [*_project_keys(unique_keys(relation.input), relation.keys), frozenset(range(len(keys)))]
    return []


def _project_keys(keys: Sequence[Key], columns: Sequence[int | None]) -> list[Key]:
    """Return the keys whose columns all remain."""
    places = {column: place for place, column in enumerate(columns) if column is not None}
    return [frozenset(places[column] for column in key) for key in keys if key <= set(places)]
