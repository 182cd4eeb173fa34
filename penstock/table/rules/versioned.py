"""The conditions on a versioned table of a temporal join: it has a key, and no version is left out."""

from __future__ import annotations

from dataclasses import replace

from penstock.errors import TableException, ValidationException
from penstock.table.logical.kinds import JoinKind
from penstock.table.logical.nodes import (
    ROWTIME,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    StreamScan,
    Watermark,
    rewritten_plan,
)
from penstock.table.logical.optimised_nodes import Calc, Deduplicate
from penstock.table.logical.rex import Rex
from penstock.table.rules.join_conditions import JoinKeys
from penstock.table.rules.unique_keys import unique_keys


def version_time(join: Join, keys: JoinKeys) -> int:
    """Return the column with the start of a version's validity. Refuse a table without versions, as Flink does."""
    table, names = join.right, ", ".join(join.right.names())
    if join.kind not in {JoinKind.INNER, JoinKind.LEFT}:
        raise TableException(f"a temporal join is an INNER or LEFT JOIN, not a {join.kind} JOIN")
    time = next((index for index, column in enumerate(table.columns) if column.time == ROWTIME), None)
    if time is None:
        raise ValidationException(
            f"a temporal join by event time needs a row time attribute in the versioned table, and ({names}) has none: "
            "declare a watermark"
        )
    if not keys.right:
        raise ValidationException(
            "a temporal join needs an equality with the key of the versioned table, and "
            f"{join.condition or 'this join'} has none"
        )
    declared = unique_keys(table)
    if not any(key <= set(keys.right) for key in declared):
        keyed = [", ".join(table.columns[column].name for column in sorted(key)) for key in declared]
        found = f"the key ({keyed[0]})" if keyed else "no primary key"
        raise ValidationException(
            "a temporal join by event time needs a versioned table with a primary key whose columns its condition "
            f"makes equal to columns of the left: ({names}) has {found}, and the condition is {join.condition}"
        )
    _check_unfiltered(table)
    return time


def with_every_version(table: Relation) -> Relation:
    """Return a versioned table that keeps all versions, even if a later one comes in the same epoch.

    A version that is deleted stays valid until the time of its deletion.
    """
    return _with_dated_deletions(rewritten_plan(table, _every_version))


def _with_dated_deletions(relation: Relation) -> Relation:
    if isinstance(relation, Calc | Project | Filter | Watermark):
        return relation.with_inputs([_with_dated_deletions(relation.input)])
    changes = isinstance(relation, Scan | StreamScan) and relation.changelog
    return replace(relation, dated_deletions=True) if changes else relation  # type: ignore[call-arg]


def _every_version(relation: Relation) -> Relation:
    last = isinstance(relation, Deduplicate) and relation.keep_last
    changes = isinstance(relation, Scan | StreamScan) and relation.changelog
    return replace(relation, every_version=True) if last or changes else relation  # type: ignore[call-arg]


def _check_unfiltered(table: Relation) -> None:
    """Refuse a filtered table. Without some versions, a row would seem valid after it was replaced."""
    conditions: list[Rex] = []
    while isinstance(table, Calc | Project | Filter | Watermark):
        if isinstance(table, Calc | Filter) and table.condition is not None:
            conditions.append(table.condition)
        table = table.input
    if conditions and isinstance(table, Scan | StreamScan):
        raise TableException(
            f"the versioned table of a temporal join cannot be filtered by {conditions[0]}, as older versions would "
            "stay valid: filter what comes out of the join"
        )
