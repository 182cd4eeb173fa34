"""A session for tests of the binder: tables by their columns, functions by their wrappers."""

from __future__ import annotations

from typing import Any

from penstock.table.logical.nodes import PROCTIME, ROWTIME, Column, Relation, Scan
from penstock.table.sql import Binder, parse_type


class Tables:
    """Tables of a session; `ts` is the event time and `p` the processing time wherever a table has them."""

    def __init__(self, batch: bool = False, **tables: str) -> None:
        self.batch = batch
        self.has_core = True
        self.functions: dict[str, Any] = {}
        self.tables = {name: table(name, columns) for name, columns in tables.items()}
        self.hinted: list[tuple[tuple[str, str], ...]] = []

    def relation(self, path: tuple[str, ...], options: tuple[tuple[str, str], ...] = ()) -> Relation | None:
        if options:
            self.hinted.append(options)
        return self.tables.get(path[-1])

    def function(self, name: str) -> Any | None:
        return self.functions.get(name.lower())

    def get(self, name: str, default: str) -> str:
        return default

    def suggestions(self, kind: str) -> list[str]:
        return list(self.tables) if kind == "table" else list(self.functions)


def table(name: str, columns: str) -> Relation:
    """A scan of "id INT; k STRING"."""
    made = []
    for one in columns.split("; "):
        column, kind = one.split(" ", 1)
        made.append(Column(column, parse_type(kind), {"ts": ROWTIME, "p": PROCTIME}.get(column)))
    return Scan(tuple(made), (name,), None)


A = "id INT; k STRING; x INT; ts TIMESTAMP(3); p TIMESTAMP_LTZ(3) NOT NULL"
B = "id INT; k STRING; y BIGINT; ts TIMESTAMP(3)"
ROW = "r ROW<p INT, q ROW<z STRING NOT NULL> NOT NULL>"
N = f"id INT NOT NULL; {ROW}; m MAP<STRING, INT>; xs ARRAY<INT>; rs ARRAY<ROW<u INT, v STRING>>"


def tables(batch: bool = False) -> Tables:
    return Tables(batch, a=A, b=B, n=N)


def bound(text: str, batch: bool = False) -> Relation:
    return Binder(tables(batch)).query(text)


def schema(relation: Relation) -> str:
    """Names, types and time attributes, as Flink shows them."""
    return ", ".join(
        f"`{one.name}` {one.type.as_sql()}" + (f" *{one.time}*" if one.time else "") for one in relation.columns
    )
