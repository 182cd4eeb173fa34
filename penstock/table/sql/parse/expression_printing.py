"""Expressions as text, with names in backquotes, for computed columns and watermarks of tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.table.sql.parse.syntax import (
    CastTo,
    Constant,
    Descriptor,
    FieldOf,
    Invoke,
    Name,
    Nested,
    Node,
    Star,
    Word,
)

_LEVELS = {"OR": 1, "AND": 2, "NOT": 3, "=": 5, "<>": 5, "<": 5, "<=": 5, ">": 5, ">=": 5, "LIKE": 6, "SIMILAR TO": 6}
_LEVELS |= {"+": 7, "-": 7, "*": 8, "/": 8, "%": 8, "||": 8, "NEGATE": 9}
_ATOM = 10


def print_expression(node: Node) -> str:
    """Return the expression as SQL.

    >>> from penstock.table.sql.parse.statement_parser import parse_expression
    >>> print_expression(parse_expression("upper(name) || 'x'").tree)
    "UPPER(`name`) || 'x'"
    """
    return _PRINTERS[type(node)](node)


def quote_name(name: str) -> str:
    """Return a name in backquotes."""
    return "`" + name.replace("`", "``") + "`"


def _name(node: Name) -> str:
    return ".".join(quote_name(part) for part in node.parts)


def _level(node: Node) -> int:
    if not isinstance(node, Invoke):
        return _ATOM
    if node.name.startswith("IS "):
        return 4
    return 6 if node.name in {"IN", "BETWEEN"} else _LEVELS.get(node.name, _ATOM)


def _inside(node: Node, level: int) -> str:
    return print_expression(node) if _level(node) >= level else f"({print_expression(node)})"


def _invoke(node: Invoke) -> str:
    own = _OWN.get(node.name)
    if own is not None:
        return own(node)
    if node.name.startswith("IS "):
        return _test(node)
    if node.name in _LEVELS and len(node.args) == 2:
        level = _LEVELS[node.name]
        return f"{_inside(node.args[0], level)} {node.name} {_inside(node.args[1], level + 1)}"
    return _call(node)


def _call(node: Invoke) -> str:
    name = ".".join([*map(quote_name, node.path), node.name if node.path else node.name.upper()])
    if not node.args and not node.star and node.name in _UNBRACKETED:
        return name
    inside = "*" if node.star else _list(node.args)
    return f"{name}({'DISTINCT ' if node.distinct else ''}{inside})"


_UNBRACKETED = {"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"}


def _list(nodes: Sequence[Node]) -> str:
    return ", ".join(map(print_expression, nodes))


def _test(node: Invoke) -> str:
    if node.name.endswith("DISTINCT FROM"):
        return f"{_inside(node.args[0], 5)} {node.name} {_inside(node.args[1], 7)}"
    return " ".join([_inside(node.args[0], 5), node.name, *map(print_expression, node.args[1:])])


def _case(node: Invoke) -> str:
    *pairs, otherwise = map(print_expression, node.args)
    whens = " ".join(f"WHEN {pairs[n]} THEN {pairs[n + 1]}" for n in range(0, len(pairs), 2))
    return f"CASE {whens} ELSE {otherwise} END"


def _between(node: Invoke) -> str:
    value, low, high = (_inside(arg, 7) for arg in node.args)
    return f"{value} BETWEEN {low} AND {high}"


def _pattern(node: Invoke) -> str:
    escape = f" ESCAPE {print_expression(node.args[2])}" if len(node.args) > 2 else ""
    return f"{_inside(node.args[0], 7)} {node.name} {_inside(node.args[1], 7)}{escape}"


def _to_unit(node: Invoke) -> str:
    return f"{node.name}({' TO '.join(map(print_expression, node.args))})"


def _trim(node: Invoke) -> str:
    side, chars, text = map(print_expression, node.args)
    return f"TRIM({side} {chars} FROM {text})"


_OWN: dict[str, Callable[[Invoke], str]] = {
    "CASE": _case,
    "BETWEEN": _between,
    "LIKE": _pattern,
    "SIMILAR TO": _pattern,
    "NOT": lambda node: f"NOT {_inside(node.args[0], 3)}",
    "POSITIVE": lambda node: f"+ {_inside(node.args[0], 9)}",
    "NEGATE": lambda node: f"- {_inside(node.args[0], 9)}",
    "IN": lambda node: f"{_inside(node.args[0], 7)} IN ({_list(node.args[1:])})",
    "ITEM": lambda node: f"{_inside(node.args[0], _ATOM)}[{print_expression(node.args[1])}]",
    "ARRAY": lambda node: f"ARRAY[{_list(node.args)}]",
    "MAP": lambda node: f"MAP[{_list(node.args)}]",
    "EXTRACT": lambda node: f"EXTRACT({print_expression(node.args[0])} FROM {print_expression(node.args[1])})",
    "POSITION": lambda node: f"POSITION({' IN '.join(map(print_expression, node.args[:2]))})",
    "TRIM": _trim,
    "FLOOR": _to_unit,
    "CEIL": _to_unit,
}


def _cast(node: CastTo) -> str:
    return f"{'TRY_CAST' if node.safe else 'CAST'}({print_expression(node.value)} AS {node.aim.as_sql()})"


def _query(node: Nested) -> str:
    return f"{node.kind}(query)"


_PRINTERS: dict[type[Node], Callable[[Any], str]] = {
    Name: _name,
    Star: lambda node: ".".join([*map(quote_name, node.prefix), "*"]),
    Constant: lambda node: node.text or f"CAST(NULL AS {node.type.as_sql()})",
    Word: lambda node: str(node.word),
    Invoke: _invoke,
    CastTo: _cast,
    FieldOf: lambda node: f"{_inside(node.value, _ATOM)}.{quote_name(node.field)}",
    Nested: _query,
    Descriptor: lambda node: f"DESCRIPTOR({', '.join(map(quote_name, node.columns))})",
}
