"""Temporal table functions: the rows of a table that are valid at a time, one of each key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.errors import ValidationException
from penstock.table.expression.expression import Expression
from penstock.table.logical.nodes import PROCTIME, Relation
from penstock.table.rules.unique_keys import unique_keys

if TYPE_CHECKING:
    from penstock.table.api.table_api import Table


@dataclass(frozen=True)
class TemporalTableFunction:
    """The result of `Table.create_temporal_table_function`: register it, and call it in LATERAL TABLE with a time."""

    relation: Relation
    """A versioned table."""
    key: int
    """The column that is its key."""
    kind = "temporal"


def temporal_table_function(table: Table, time_attribute: Any, primary_key: Any) -> TemporalTableFunction:
    """Return the function for the versions of a table.

    Without a declared key, the version of a key is its last row by time.
    """
    time, key = _column(table, time_attribute, "time attribute"), _column(table, primary_key, "primary key")
    relation = table.relation
    kind = relation.columns[time].time
    if kind is None or kind == PROCTIME:
        found = f"the column '{relation.columns[time].name}' is {'processing time' if kind else 'no time attribute'}"
        raise ValidationException(
            f"a temporal table function needs a row time attribute, but {found}: declare a watermark for a column"
        )
    if {key} in unique_keys(relation):
        return TemporalTableFunction(relation, key)
    names = [f"`{name}`" for name in relation.names()]
    rank = next(name for name in ("row_num", *map("row_num_{}".format, range(len(names)))) if f"`{name}`" not in names)
    ranked = (
        f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {names[key]} ORDER BY {names[time]} DESC) AS {rank} FROM {table}"
    )
    versions = table.t_env.sql_query(f"SELECT {', '.join(names)} FROM ({ranked}) WHERE {rank} = 1")
    return TemporalTableFunction(versions.relation, key)


def _column(table: Table, given: Any, part: str) -> int:
    """Return the position of a column, which is given by its name or as an expression."""
    name = given.node[1] if isinstance(given, Expression) and given.node[0] == "column" else given
    names = table.relation.names()
    if name not in names:
        raise ValidationException(
            f"the {part} of a temporal table function must be a column of the table, not {given}; the columns are "
            f"{', '.join(names)}"
        )
    return names.index(name)
