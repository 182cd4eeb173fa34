"""The removal of group keys that other group keys determine.

If some of the group keys are a unique key of the input, the others cannot split any group.
"""

from __future__ import annotations

from penstock.table.logical.building import aggregate, project
from penstock.table.logical.nodes import Aggregate, Relation
from penstock.table.logical.rex import AggregateCall
from penstock.table.rules.unique_keys import unique_keys
from penstock.table.types import data_types as t

_NUMBERS = (t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType, t.DecimalType)
_OTHERS = (t.CharType, t.VarCharType, t.DateType, t.TimestampType, t.LocalZonedTimestampType)
"""With `_NUMBERS`, the types whose MIN means the same on all engines."""


def with_needed_keys(relation: Relation) -> Relation:
    """Group an aggregate by a unique key of its input alone, as Flink does in BATCH mode.

    This needs group keys that contain the unique key and more columns. Those columns become MIN. A group has a single
    value of each, unless rows violate the unique key.
    """
    if not isinstance(relation, Aggregate):
        return relation
    keys = [key for key in unique_keys(relation.input) if key < set(relation.keys)]
    needed = min(keys, key=lambda key: (len(key), sorted(key)), default=None)
    if not needed:
        return relation
    columns = relation.input.columns
    others = [key for key in relation.keys if key not in needed]
    if not all(isinstance(columns[key].type, _NUMBERS + _OTHERS) for key in others):
        return relation
    kept = [key for key in relation.keys if key in needed]
    values = [AggregateCall("MIN", (key,), columns[key].type, columns[key].name) for key in others]
    smaller = aggregate(relation.input, kept, [*relation.calls, *values])
    places = {key: place for place, key in enumerate(kept)}
    places |= {key: len(kept) + len(relation.calls) + place for place, key in enumerate(others)}
    calls = range(len(kept), len(kept) + len(relation.calls))
    exprs = [smaller.ref(place) for place in (*(places[key] for key in relation.keys), *calls)]
    return project(smaller, exprs, relation.names())
