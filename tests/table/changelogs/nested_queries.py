"""Random queries within queries over rows that change, and what SQLite answers at the end.

`random_changes.py` has queries of one shape each, with a key. These nest operators of any kind three levels deep: keys
and values may be NULL, and rows have no key in general.
"""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.common import Row, RowKind, Types
from penstock.datastream import DataStream
from penstock.table import ChangelogMode, DataTypes, EnvironmentSettings, Schema, StreamTableEnvironment
from penstock.testing import in_process

KINDS = {"+I": RowKind.INSERT, "-U": RowKind.UPDATE_BEFORE, "+U": RowKind.UPDATE_AFTER, "-D": RowKind.DELETE}
Change = tuple[Any, ...]
"""(kind, id, k, n); in `w` and `o` also the time m in seconds."""
Columns = list[tuple[str, str]]
"""Names, with N for numbers and T for texts."""
TUMBLE = "TUMBLE(TABLE w, DESCRIPTOR(ts), INTERVAL '10' SECOND)"


@dataclass
class Part:
    """A query for the stream and for SQLite."""

    stream: str
    columns: Columns
    sqlite: str

    def names(self) -> str:
        return ", ".join(name for name, _ in self.columns)

    def wrapped(self, text: Callable[[str], str], columns: Columns | None = None) -> Part:
        """A query over this one. `text` makes it of the text of this one."""
        return Part(text(self.stream), self.columns if columns is None else columns, text(self.sqlite))


class Case:
    """What a seed asks for: tables with their changes, and a query."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"nested {seed}")
        self._names = 0
        self.tables = {name: self._changes(upserts=name == "u") for name in "tru"}
        self.tables["g"] = [("+I", number, *self._row()) for number in range(self.random.randint(0, 12))]
        self.tables["w"] = self._with_times(self._changes())
        self.tables["o"] = [("+I", number, *self._row(), self.random.randint(0, 30)) for number in range(6)]
        self.versions = self._versions()
        self.query = self._part(self.random.choice([1, 2, 2, 3, 3]))

    # --- rows ---
    def _row(self) -> tuple[str | None, int | None]:
        return self.random.choice(["a", "b", "c", None]), self.random.choice([None, *range(-2, 6)])

    def _changes(self, upserts: bool = False) -> list[Change]:
        left, log, fresh = dict[int, tuple[Any, ...]](), list[Change](), 0
        for _ in range(self.random.randint(0, 14)):
            kind = self.random.choice(["insert", "insert", "update", "delete"]) if left else "insert"
            if kind == "insert":
                number, fresh = fresh, fresh + 1
            else:
                number = self.random.choice(sorted(left))
            if kind == "delete":
                log.append(("-D", number, *left.pop(number)))
                continue
            if kind == "update" and not upserts:
                log.append(("-U", number, *left[number]))
            left[number] = self._row()
            log.append(("+U" if kind == "update" else "+I", number, *left[number]))
        return log

    def _with_times(self, log: list[Change]) -> list[Change]:
        times, timed = dict[int, int](), list[Change]()
        for kind, number, *row in log:
            if kind[0] == "+":
                times[number] = self.random.randint(0, 29)
            timed.append((kind, number, *row, times[number]))
        return timed

    def _versions(self) -> list[Change]:
        """Changes (kind, k, n, m) in order of time. A deletion has no value."""
        there, log = set[str](), list[Change]()
        for time in sorted(self.random.sample(range(31), self.random.randint(0, 10))):
            key = self.random.choice("abc")
            gone = key in there and self.random.random() < 0.3
            log.append(("-D", key, None, time) if gone else ("+U", key, self.random.randint(0, 9), time))
            (there.discard if gone else there.add)(key)
        return log

    # --- pieces ---
    def _name(self) -> str:
        self._names += 1
        return f"x{self._names}"

    def _column(self, part: Part, kind: str) -> str | None:
        return self.random.choice([name for name, own in part.columns if own == kind] or [None])

    def _condition(self, part: Part) -> str:
        name, kind = self.random.choice(part.columns)
        if kind == "T":
            return self.random.choice([f"{name} = 'a'", f"{name} <> 'b'", f"{name} IS NULL", f"{name} IN ('a', 'c')"])
        low = self.random.randint(-2, 4)
        other = self._column(part, "N")
        return self.random.choice(
            [
                f"{name} > {low}",
                f"{name} IS NOT NULL",
                f"NOT ({name} > {low} AND {other} < {low})",
                f"{name} >= {other}",
            ]
        )

    def _on(self, left: Part, right: Part) -> str | None:
        kind = self.random.choice("NNT")
        one, other = self._column(left, kind), self._column(right, kind)
        if one is None or other is None:
            return None
        on = f"{one} {self.random.choice(['=', '=', 'IS NOT DISTINCT FROM'])} {other}"
        one, other = self._column(left, "N"), self._column(right, "N")
        return f"{on} AND {one} <= {other}" if one and other and self.random.random() < 0.3 else on

    def _order(self, part: Part) -> str:
        """All columns, so that equal ranks are of equal rows."""
        names = self.random.sample([name for name, _ in part.columns], len(part.columns))
        return ", ".join(f"{name} {self.random.choice(['ASC', 'DESC'])}" for name in names)

    def _aggregates(self, part: Part) -> tuple[list[str], Columns]:
        texts, columns = list[str](), Columns()
        for _ in range(self.random.randint(1, 2)):
            name, number = self._name(), self._column(part, "N")
            calls = ["COUNT(*)"]
            if number is not None:
                calls += [f"{call}({number})" for call in ("SUM", "MIN", "MAX", "COUNT")] + [
                    f"COUNT(DISTINCT {number})"
                ]
            condition = f" FILTER (WHERE {self._condition(part)})" if self.random.random() < 0.25 else ""
            texts.append(f"{self.random.choice(calls)}{condition} AS {name}")
            columns.append((name, "N"))
        return texts, columns

    # --- queries ---
    def _part(self, depth: int) -> Part:
        if depth <= 0:
            return self._table()
        shapes = sorted(name for name in dir(self) if name.startswith("ask_"))
        part: Part = getattr(self, self.random.choice(shapes))(depth - 1)
        return part

    def _table(self) -> Part:
        number, text, value = self._name(), self._name(), self._name()
        query = f"SELECT id AS {number}, k AS {text}, n AS {value} FROM {self.random.choice('ttrrug')}"
        return Part(query, [(number, "N"), (text, "T"), (value, "N")], query)

    def ask_filter(self, depth: int) -> Part:
        part, alias = self._part(depth), self._name()
        condition = self._condition(part)
        return part.wrapped(lambda query: f"SELECT * FROM ({query}) {alias} WHERE {condition}")

    def ask_project(self, depth: int) -> Part:
        part, alias, texts, columns = self._part(depth), self._name(), list[str](), Columns()
        for name, kind in self.random.sample(part.columns, self.random.randint(1, len(part.columns))):
            new, more = (
                self._name(),
                [f"COALESCE({name}, 'z')"] if kind == "T" else [f"{name} * 2", f"NULLIF({name}, 1)"],
            )
            texts.append(f"{self.random.choice([name, *more])} AS {new}")
            columns.append((new, kind))
        return part.wrapped(lambda query: f"SELECT {', '.join(texts)} FROM ({query}) {alias}", columns)

    def ask_group(self, depth: int) -> Part:
        part, alias = self._part(depth), self._name()
        name, kind = self.random.choice(part.columns)
        key, (texts, columns) = self._name(), self._aggregates(part)
        having = self.random.choice(["", "", " HAVING COUNT(*) < 3"])
        return part.wrapped(
            lambda query: f"SELECT {name} AS {key}, {', '.join(texts)} FROM ({query}) {alias} GROUP BY {name}{having}",
            [(key, kind), *columns],
        )

    def ask_whole(self, depth: int) -> Part:
        part, alias = self._part(depth), self._name()
        texts, columns = self._aggregates(part)
        made = part.wrapped(lambda query: f"SELECT {', '.join(texts)} FROM ({query}) {alias}", columns)
        return Part(made.stream, columns, f"{made.sqlite} HAVING COUNT(*) > 0")

    def ask_join(self, depth: int) -> Part:
        left, right, one, other = self._part(depth), self._part(depth), self._name(), self._name()
        on = self._on(left, right)
        if on is None:
            return left
        kind = self.random.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        columns = self.random.sample(both := left.columns + right.columns, min(len(both), 5))
        names = ", ".join(name for name, _ in columns)

        def text(first: str, second: str) -> str:
            return f"SELECT {names} FROM ({first}) {one} {kind} ({second}) {other} ON {on}"

        return Part(text(left.stream, right.stream), columns, text(left.sqlite, right.sqlite))

    def ask_semi(self, depth: int) -> Part:
        left, right, one, other = self._part(depth), self._part(depth), self._name(), self._name()
        on, mine, own = self._on(left, right), self._column(left, "N"), self._column(right, "N")
        if on is None or mine is None or own is None:
            return left
        where = self.random.choice(
            [
                f"EXISTS (SELECT 1 FROM ({{}}) {other} WHERE {on})",
                f"NOT EXISTS (SELECT 1 FROM ({{}}) {other} WHERE {on})",
                f"{mine} IN (SELECT {own} FROM ({{}}) {other})",
                f"{mine} NOT IN (SELECT {own} FROM ({{}}) {other})",
                f"{mine} > (SELECT MIN({own}) FROM ({{}}) {other})",
            ]
        )

        def text(first: str, second: str) -> str:
            return f"SELECT * FROM ({first}) {one} WHERE {where.format(second)}"

        return Part(text(left.stream, right.stream), left.columns, text(left.sqlite, right.sqlite))

    def ask_sets(self, depth: int) -> Part:
        left, right, one, other = self._part(depth), self._part(depth), self._name(), self._name()
        kind = self.random.choice("NT")
        mine, own, name = self._column(left, kind), self._column(right, kind), self._name()
        if mine is None or own is None:
            return left
        word = self.random.choice(["UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT"])

        def text(first: str, second: str) -> str:
            return f"SELECT {mine} AS {name} FROM ({first}) {one} {word} SELECT {own} AS {name} FROM ({second}) {other}"

        return Part(text(left.stream, right.stream), [(name, kind)], text(left.sqlite, right.sqlite))

    def ask_top(self, depth: int) -> Part:
        part, alias, outer, rank = self._part(depth), self._name(), self._name(), self._name()
        partition = self.random.choice(["", f"PARTITION BY {self.random.choice(part.columns)[0]} "])
        last, order, names = self.random.randint(1, 3), self._order(part), part.names()
        ranked = self.random.random() < 0.5
        return part.wrapped(
            lambda query: (
                f"SELECT {'*' if ranked else names} FROM (SELECT {names}, ROW_NUMBER() OVER "
                f"({partition}ORDER BY {order}) AS {rank} FROM ({query}) {alias}) {outer} WHERE {rank} <= {last}"
            ),
            [*part.columns, (rank, "N")] if ranked else part.columns,
        )

    def ask_over(self, depth: int) -> Part:
        part, alias, name = self._part(depth), self._name(), self._name()
        number, partition = self._column(part, "N"), self.random.choice(part.columns)[0]
        call = self.random.choice(["COUNT(*)", "RANK()", f"SUM({number})", f"MAX({number})"])
        if number is None:
            return part
        over = f"{call} OVER (PARTITION BY {partition} ORDER BY {number}) AS {name}"
        return part.wrapped(
            lambda query: f"SELECT {part.names()}, {over} FROM ({query}) {alias}", [*part.columns, (name, "N")]
        )

    def ask_distinct(self, depth: int) -> Part:
        part, alias = self._part(depth), self._name()
        name, kind = self.random.choice(part.columns)
        return part.wrapped(lambda query: f"SELECT DISTINCT {name} FROM ({query}) {alias}", [(name, kind)])

    def ask_unnest(self, depth: int) -> Part:
        part, alias, name, array = self._part(depth), self._name(), self._name(), self._name()
        number, names = self._column(part, "N"), part.names()
        if number is None:
            return part
        elements = f"UNNEST(ARRAY[{number}, 7]) AS {array} ({name})"
        stream = f"SELECT {names}, {name} FROM ({part.stream}) {alias} CROSS JOIN {elements}"
        sqlite = (
            f"SELECT {names}, {number} AS {name} FROM ({part.sqlite}) UNION ALL SELECT {names}, 7 FROM ({part.sqlite})"
        )
        return Part(stream, [*part.columns, (name, "N")], sqlite)

    def ask_trip(self, depth: int) -> Part:
        """As rows that describe changes, and back."""
        part, op = self._part(depth), self._name()
        rows = f"SELECT * FROM TO_CHANGELOG(input => ({part.stream}), op => DESCRIPTOR({op}))"
        changes = f"SELECT * FROM FROM_CHANGELOG(input => ({rows}), op => DESCRIPTOR({op}))"
        return Part(changes, part.columns, part.sqlite)

    def ask_window(self, depth: int) -> Part:
        """A window aggregate over rows that change, none of which is late."""
        key, value = self._name(), self._name()
        call = self.random.choice(["COUNT(*)", "SUM(n)", "MAX(n)", "COUNT(DISTINCT n)"])
        select = f"SELECT k AS {key}, {call} AS {value} FROM"
        stream = f"{select} TABLE({TUMBLE}) GROUP BY k, window_start, window_end"
        return Part(stream, [(key, "T"), (value, "N")], f"{select} w GROUP BY k, m / 10")

    def ask_version(self, depth: int) -> Part:
        """A join with the version of a time."""
        names = [self._name() for _ in range(4)]
        kind = self.random.choice(["JOIN", "LEFT JOIN"])
        select = "SELECT o.id AS {}, o.k AS {}, o.n AS {}, v.n AS {} FROM o".format(*names)
        stream = f"{select} {kind} v FOR SYSTEM_TIME AS OF o.ts ON o.k = v.k"
        sqlite = f"{select} {kind} v ON o.k = v.k AND v.since <= o.m AND o.m < v.until"
        return Part(stream, list(zip(names, "NTNN", strict=True)), sqlite)


def expected(case: Case) -> Counter[Change]:
    """The rows that the query has at the end, from SQLite."""
    database = sqlite3.connect(":memory:")
    for table, log in case.tables.items():
        database.execute(f"CREATE TABLE {table} (id INTEGER, k TEXT, n INTEGER, m INTEGER)")
        left: dict[int, Change] = {}
        for kind, number, *row in log:
            left.pop(number, None)
            if kind[0] == "+":
                left[number] = (number, *row, None)[:4]
        database.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", left.values())
    database.execute("CREATE TABLE v (k TEXT, n INTEGER, since INTEGER, until INTEGER)")
    for place, (kind, key, value, since) in enumerate(case.versions):
        until = next((time for _, other, _, time in case.versions[place + 1 :] if other == key), 99)
        if kind == "+U":
            database.execute("INSERT INTO v VALUES (?, ?, ?, ?)", (key, value, since, until))
    return Counter(database.execute(case.query.sqlite).fetchall())


def found(case: Case) -> Counter[Change]:
    """The rows that are left of the changelog of the query. A row that goes has come before."""
    rows: Counter[Change] = Counter()
    with in_process(epoch_records=case.random.choice([1, 2, 3, None])):
        t_env = StreamTableEnvironment.create(environment_settings=EnvironmentSettings.in_streaming_mode())
        t_env.get_config().set("parallelism.default", str(case.random.choice([1, 2, 3])))
        for name, log in case.tables.items():
            _declare(t_env, name, ["id", "k", "n", "m"][: 4 if name in "wo" else 3], log, "id")
        _declare(t_env, "v", ["k", "n", "m"], case.versions, "k")
        with t_env.execute_sql(case.query.stream).collect() as changes:
            for row in changes:
                adds = row.get_row_kind() in {RowKind.INSERT, RowKind.UPDATE_AFTER}
                rows[tuple(row)] += 1 if adds else -1
                assert rows[tuple(row)] >= 0, f"{tuple(row)} goes before it comes: {case.query.stream}"
    return +rows


def _declare(t_env: StreamTableEnvironment, name: str, columns: list[str], log: list[Change], key: str) -> None:
    types = [Types.STRING() if column == "k" else Types.INT() for column in columns]
    rows = [Row.of_kind(KINDS[kind], *row) for kind, *row in log]
    stream: DataStream = t_env._env.from_collection(rows, Types.ROW_NAMED(columns, types))  # type: ignore[attr-defined]
    schema = Schema.new_builder()
    for column in columns:
        kind = DataTypes.STRING() if column == "k" else DataTypes.INT()
        schema = schema.column(column, kind.not_null() if column == key else kind)
    if "m" in columns:
        schema = schema.column_by_expression("ts", "CAST(TO_TIMESTAMP_LTZ(m, 0) AS TIMESTAMP(3))")
        schema = schema.watermark("ts", "ts - INTERVAL '1' HOUR")
    if name in "go":
        t_env.create_temporary_view(name, t_env.from_data_stream(stream, schema.build()))
        return
    mode = ChangelogMode.upsert() if name in "uv" else ChangelogMode.all()
    built = schema.build() if name == "r" else schema.primary_key(key).build()
    t_env.create_temporary_view(name, t_env.from_changelog_stream(stream, built, mode))
