"""The text of a view's query with every name in full, for SHOW CREATE VIEW."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from penstock.table.sql.parse.expression_printing import print_expression, quote_name
from penstock.table.sql.parse.syntax import (
    Aliased,
    Combined,
    Derived,
    Group,
    Invoke,
    Item,
    Joined,
    Name,
    Nested,
    Node,
    Ordered,
    Ordering,
    Query,
    Select,
    Source,
    Star,
    TableName,
    ValueRows,
)

Path = tuple[str, ...]
Scope = tuple[tuple[str, Sequence[str]], ...]
"""The names of the tables in FROM, with their columns."""


@dataclass(frozen=True)
class Names:
    """The names that a session can resolve."""

    whole: Callable[[Path], Path]
    """A function that returns the path of a table with its catalog and database."""
    columns: Callable[[Path], Sequence[str] | None]
    """A function that returns the columns of a table, or None if it does not exist."""
    outputs: Callable[[Query], Sequence[str]]
    """A function that returns the columns of a query."""
    function: Callable[[str], Path | None]
    """A function that returns the path of a user's function in a database, or None for other functions."""


class _Unprintable(Exception):
    """The error for a part of the query that has no full form here."""


def expand_query(query: Query, names: Names) -> str | None:
    """Return the query with full names, or None if this module cannot print a part of it."""
    try:
        return _query(query, names)
    except _Unprintable:
        return None


def _query(query: Query, names: Names) -> str:
    match query:
        case Select():
            return _select(query, names)
        case Combined():
            left, right = _query(query.left, names), _query(query.right, names)
            return f"{left}\n{query.kind}{' ALL' if query.all else ''}\n{right}"
        case ValueRows():
            rows = ((", ".join(_text(value, (), names) for value in row)) for row in query.rows)
            return "VALUES " + ",\n".join(f"ROW({row})" for row in rows)
        case Ordered() if isinstance(query.query, Select) and query.query.source is not None:
            return _order_text(query, query.query, names)
    raise _Unprintable


def _order_text(query: Ordered, below: Select, names: Names) -> str:
    text = _select(below, names)
    if query.order:
        assert below.source is not None
        scope, aliases = _scope(below.source, names), {item.alias for item in below.items}
        text += "\nORDER BY " + ", ".join(_ordering(one, scope, names, aliases) for one in query.order)
    if query.offset:
        text += f"\nOFFSET {query.offset} ROWS"
    return text if query.limit is None else f"{text}\nFETCH NEXT {query.limit} ROWS ONLY"


def _ordering(one: Ordering, scope: Scope, names: Names, aliases: set[str | None]) -> str:
    known = isinstance(one.value, Name) and len(one.value.parts) == 1 and one.value.parts[0] in aliases
    text = print_expression(one.value) if known else _text(one.value, scope, names)
    nulls = "" if one.nulls_first is None else f" NULLS {'FIRST' if one.nulls_first else 'LAST'}"
    return f"{text}{' DESC' if one.descending else ''}{nulls}"


def _select(query: Select, names: Names) -> str:
    if query.windows or query.qualify is not None or query.ttl:
        raise _Unprintable
    scope: Scope = () if query.source is None else _scope(query.source, names)
    items = ", ".join(text for item in query.items for text in _items(item, scope, names))
    lines = [f"SELECT {'DISTINCT ' if query.distinct else ''}{items}"]
    if query.source is not None:
        lines.append(f"FROM {_source(query.source, names)}")
    if query.where is not None:
        lines.append(f"WHERE {_text(query.where, scope, names)}")
    if query.groups is not None:
        lines.append("GROUP BY " + ", ".join(_group(group, scope, names) for group in query.groups))
    if query.having is not None:
        lines.append(f"HAVING {_text(query.having, scope, names)}")
    return "\n".join(lines)


def _items(item: Item, scope: Scope, names: Names) -> list[str]:
    if isinstance(item.value, Star):
        wanted = item.value.prefix
        if len(wanted) > 1 or (wanted and wanted[0] not in {alias for alias, _ in scope}):
            raise _Unprintable
        return [
            f"{quote_name(alias)}.{quote_name(column)}"
            for alias, columns in scope
            for column in columns
            if not wanted or alias == wanted[0]
        ]
    text = _text(item.value, scope, names)
    return [text if item.alias is None else f"{text} AS {quote_name(item.alias)}"]


def _group(group: Group, scope: Scope, names: Names) -> str:
    if group.kind:
        raise _Unprintable
    return ", ".join(_text(member, scope, names) for member in group.members)


# --- FROM ---
def _scope(source: Source, names: Names) -> Scope:
    match source:
        case TableName():
            columns = names.columns(source.path)
            if columns is not None:
                return ((source.path[-1], columns),)
        case Aliased(source=TableName() as table):
            known = names.columns(table.path)
            if known is not None:
                return ((source.alias, source.columns or known),)
        case Aliased(source=Derived() as derived):
            return ((source.alias, source.columns or names.outputs(derived.query)),)
        case Joined() if not source.natural and not source.using:
            return (*_scope(source.left, names), *_scope(source.right, names))
    raise _Unprintable


def _source(source: Source, names: Names) -> str:
    match source:
        case TableName():
            return f"{_table(source, names)} AS {quote_name(source.path[-1])}"
        case Aliased():
            columns = f" ({', '.join(map(quote_name, source.columns))})" if source.columns else ""
            return f"{_alias_text(source.source, names)} AS {quote_name(source.alias)}{columns}"
        case Joined():
            left, right = _source(source.left, names), _source(source.right, names)
            condition = (
                "" if source.condition is None else f" ON {_text(source.condition, _scope(source, names), names)}"
            )
            return f"{left}\n{source.kind} JOIN {right}{condition}"
    raise _Unprintable


def _alias_text(source: Source, names: Names) -> str:
    if isinstance(source, TableName):
        return _table(source, names)
    if isinstance(source, Derived) and not source.lateral:
        return f"({_query(source.query, names)})"
    raise _Unprintable


def _table(source: TableName, names: Names) -> str:
    if source.options or source.as_of is not None:
        raise _Unprintable
    return ".".join(map(quote_name, names.whole(source.path)))


# --- expressions ---
def _text(node: Node, scope: Scope, names: Names) -> str:
    return print_expression(_in_full(node, scope, names))


def _in_full(node: Any, scope: Scope, names: Names) -> Any:
    """Return an expression with the table before each column, and the database before each function."""
    match node:
        case Name():
            return _column(node, scope)
        case Nested():
            raise _Unprintable
        case Invoke() if node.filter or node.order or node.over or node.ignore_nulls is not None or any(node.names):
            raise _Unprintable
        case Invoke():
            whole = None if node.path else names.function(node.name)
            args = tuple(_in_full(arg, scope, names) for arg in node.args)
            if whole is None:
                return replace(node, args=args)
            return replace(node, args=args, path=whole[:-1], name=whole[-1])
        case Node():
            changed = {
                one.name: _in_full(value, scope, names)
                for one in fields(node)
                if isinstance(value := getattr(node, one.name), Node)
            }
            return replace(node, **changed) if changed else node
    return node


def _column(node: Name, scope: Scope) -> Name:
    first, *rest = node.parts
    if rest and first in {alias for alias, _ in scope}:
        return node
    found = [alias for alias, columns in scope if first in columns]
    if len(found) != 1:
        raise _Unprintable
    return replace(node, parts=(found[0], *node.parts))
