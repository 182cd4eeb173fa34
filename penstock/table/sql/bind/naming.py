"""Names of columns: Flink's rules for expressions without a name and for repeated names."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from penstock.table.logical.nodes import PROCTIME, Column, Columns, Project, Relation
from penstock.table.logical.rex import Call, InputRef, Rex
from penstock.table.sql.parse.syntax import Invoke, Item, Name

_UNBRACKETED = {"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"}


def item_name(item: Item, ordinal: int) -> str:
    """Return the alias, or the name of the column, or EXPR$n."""
    if item.alias is not None:
        return item.alias
    if isinstance(item.value, Name):
        return item.value.parts[-1]
    if isinstance(item.value, Invoke) and item.value.name in _UNBRACKETED:
        return item.value.name
    return f"EXPR${ordinal}"


def uniquely(names: Sequence[str]) -> list[str]:
    """Append a number to names that occurred before.

    >>> uniquely(["a", "a", "b", "a"])
    ['a', 'a0', 'b', 'a1']
    """
    used: set[str] = set()
    found = []
    for name in names:
        unique = name if name not in used else next(one for n in count() if (one := f"{name}{n}") not in used)
        used.add(unique)
        found.append(unique)
    return found


def column_of(name: str, rex: Rex, columns: Columns) -> Column:
    """Return the column of an expression. A time attribute that is passed unchanged remains one."""
    if isinstance(rex, InputRef):
        return Column(name, rex.type, columns[rex.index].time)
    proctime = isinstance(rex, Call) and rex.function == "PROCTIME" and not rex.args
    return Column(name, rex.type, PROCTIME if proctime else None)


def projection(plan: Relation, exprs: Sequence[Rex], names: Sequence[str]) -> Relation:
    """Return a projection whose names occur once."""
    made = zip(uniquely(names), exprs, strict=True)
    return Project(tuple(column_of(name, rex, plan.columns) for name, rex in made), plan, tuple(exprs))


def position(exprs: list[Rex], rex: Rex) -> int:
    """Return the index of an expression in a list. Append the expression if it is missing."""
    if rex not in exprs:
        exprs.append(rex)
    return exprs.index(rex)


def cut(plan: Relation, width: int) -> Relation:
    """Return a projection to the first columns."""
    return Project(plan.columns[:width], plan, tuple(plan.ref(index) for index in range(width)))
