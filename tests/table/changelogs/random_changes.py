"""Random queries over rows that change, whose results go into a table that holds one row of each key.

A query is written once for the stream and once for SQLite, which computes what the table must hold.
"""

from __future__ import annotations

import random
import sqlite3
from dataclasses import dataclass, field
from typing import Any

Change = tuple[str, int, str, int]
"""(kind, id, k, n)."""
Rows = list[tuple[Any, ...]]
COLUMNS = {"t": "(id INTEGER, k TEXT, n INTEGER)", "r": "(id INTEGER, k TEXT, n INTEGER)"}


@dataclass(frozen=True)
class Query:
    """A query, and the table that it goes into."""

    name: str
    stream: str
    columns: str
    """Of the table that is written, as SQLite declares them."""
    key: tuple[str, ...]
    conflict: str = ""
    sqlite: str = ""
    youngest: bool = False
    """Whether several rows of the query can have one key, and the table has any of them."""

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.split()[0] for column in self.columns.split(", ")]

    @property
    def oracle(self) -> str:
        return self.sqlite or self.stream


@dataclass
class Case:
    """What one seed asks for: tables with their changes, and a query."""

    seed: int
    random: random.Random = field(init=False)
    changes: dict[str, list[Change]] = field(init=False)
    grows: dict[str, bool] = field(init=False)
    """By table, whether it has inserts alone."""
    query: Query = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(f"changes {self.seed}")
        self.grows = {name: self.random.random() < 0.35 for name in COLUMNS}
        self.changes = {name: self._changes(self.grows[name]) for name in COLUMNS}
        shapes = [getattr(self, name) for name in dir(self) if name.startswith("ask_")]
        self.query = shapes[self.seed % len(shapes)]()

    # --- rows ---
    def _changes(self, grows: bool) -> list[Change]:
        pick, left, log, fresh = self.random, dict[int, tuple[str, int]](), list[Change](), 0
        for _ in range(pick.randint(0, 14)):
            kind = "insert" if grows or not left else pick.choice(["insert", "insert", "update", "update", "delete"])
            row = (pick.choice("abcd"), pick.randint(-3, 9))
            if kind == "insert":
                gone = [number for number in range(fresh) if number not in left]
                number = pick.choice(gone) if gone and not grows and pick.random() < 0.4 else fresh
                fresh = max(fresh, number + 1)
                log.append(("+I", number, *row))
                left[number] = row
                continue
            number = pick.choice(sorted(left))
            if kind == "update":
                log += [("-U", number, *left[number]), ("+U", number, *row)]
                left[number] = row
            else:
                log.append(("-D", number, *left.pop(number)))
        return log

    # --- parts of queries ---
    def _one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def _where(self, side: str = "") -> str:
        low = self.random.randint(-2, 6)
        return self._one(f"{side}n > {low}", f"{side}n < {low + 3}", f"{side}k IN ('a', 'c')", f"{side}id > 2", "TRUE")

    def _having(self) -> str:
        few = self.random.randint(1, 4)
        return self._one("", f" HAVING COUNT(*) < {few}", f" HAVING SUM(n) > {few}", f" HAVING MAX(n) < {few + 3}")

    def _aggregate(self, side: str = "") -> str:
        return self._one(
            "COUNT(*)", f"SUM({side}n)", f"MIN({side}n)", f"MAX({side}n)", f"COUNT(DISTINCT {side}n)", f"MAX({side}id)"
        )

    def _groups(self, table: str = "t") -> str:
        return f"SELECT k, COUNT(*) AS c, {self._aggregate()} AS m FROM {table} WHERE {self._where()} GROUP BY k"

    def _on(self) -> str:
        return self._one("l.k = r.k", "l.id = r.id", "l.k = r.k AND l.n < r.n", "l.id = r.id AND l.n <= r.n")

    # --- queries ---
    def ask_group(self) -> Query:
        text = f"{self._groups()}{self._having()}"
        return Query("group", text, "k TEXT, c BIGINT, m BIGINT", ("k",))

    def ask_whole(self) -> Query:
        text = f"SELECT 1 AS u, COUNT(*) AS c, {self._aggregate()} AS m FROM t WHERE {self._where()}"
        sqlite = f"SELECT * FROM ({text}) WHERE c > 0"
        return Query("whole", text, "u INT, c BIGINT, m BIGINT", ("u",), "", sqlite)

    def ask_filter(self) -> Query:
        text = f"SELECT id, k, n * 2 AS n FROM t WHERE {self._where()} AND {self._where()}"
        return Query("filter", text, "id INT, k TEXT, n INT", ("id",))

    def ask_join(self) -> Query:
        kind = self._one("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
        text = (
            "SELECT COALESCE(l.id, -1) AS i, COALESCE(r.id, -1) AS j, l.n AS n, r.n AS m "
            f"FROM t l {kind} r ON {self._on()}"
        )
        return Query("join", text, "i INT, j INT, n INT, m INT", ("i", "j"), "DEDUPLICATE")

    def ask_join_by_id(self) -> Query:
        kind, more = self._one("JOIN", "LEFT JOIN"), self._one("", " AND l.n < r.n", " AND l.k = 'a'")
        where = self._one("", " WHERE l.n > 1", " WHERE COALESCE(r.n, 3) < l.n + 4")
        text = f"SELECT l.id AS i, l.n AS n, r.n AS m FROM t l {kind} r ON l.id = r.id{more}{where}"
        return Query("join by id", text, "i INT, n INT, m INT", ("i",))

    def ask_join_of_groups(self) -> Query:
        kind = self._one("JOIN", "LEFT JOIN")
        text = (
            f"SELECT x.k AS k, x.c AS c, y.m AS m FROM ({self._groups()}) x {kind} ({self._groups('r')}) y "
            f"ON x.k = y.k WHERE x.c < {self._one('4', 'COALESCE(y.m, 1) + 2', '9')}"
        )
        return Query("join of groups", text, "k TEXT, c BIGINT, m BIGINT", ("k",))

    def ask_group_of_join(self) -> Query:
        kind = self._one("JOIN", "LEFT JOIN")
        text = (
            f"SELECT l.k AS k, COUNT(*) AS c, SUM(r.n) AS s FROM t l {kind} r ON {self._on()} "
            f"WHERE {self._where('l.')} GROUP BY l.k{self._one('', ' HAVING COUNT(*) < 4')}"
        )
        return Query("group of join", text, "k TEXT, c BIGINT, s BIGINT", ("k",))

    def ask_semi(self) -> Query:
        same = self._one("r.k = t.k", "r.id = t.id", "r.k = t.k AND r.n > t.n")
        text = f"SELECT id, k, n FROM t WHERE {self._one('', 'NOT ')}EXISTS (SELECT 1 FROM r WHERE {same})"
        return Query("semi", text, "id INT, k TEXT, n INT", ("id",), "DEDUPLICATE")

    def ask_in(self) -> Query:
        inner = self._one("SELECT n FROM r", "SELECT MAX(n) FROM r GROUP BY k", "SELECT id FROM r WHERE n > 2")
        text = f"SELECT id, k, n FROM t WHERE n {self._one('IN', 'NOT IN')} ({inner})"
        return Query("in", text, "id INT, k TEXT, n INT", ("id",), "DEDUPLICATE")

    def ask_nested(self) -> Query:
        having = self._one("", " HAVING COUNT(*) < 3")
        text = f"SELECT c, COUNT(*) AS a, SUM(m) AS s FROM ({self._groups()}) q GROUP BY c{having}"
        return Query("nested", text, "c BIGINT, a BIGINT, s BIGINT", ("c",))

    def ask_distinct(self) -> Query:
        return Query("distinct", f"SELECT DISTINCT k, n FROM t WHERE {self._where()}", "k TEXT, n INT", ("k", "n"))

    def ask_groups_within_a_key(self) -> Query:
        text = self._one("SELECT DISTINCT id, k, n FROM t", "SELECT id, k, SUM(n) AS n FROM t GROUP BY id, k")
        return Query("groups within a key", text, "id INT, k TEXT, n INT", ("id",))

    def ask_top(self) -> Query:
        ranked = (
            f"SELECT id, k, n, ROW_NUMBER() OVER (PARTITION BY k ORDER BY n {self._one('ASC', 'DESC')}, id) AS r "
            f"FROM t WHERE {self._where()}"
        )
        last = self.random.randint(1, 3)
        if self.random.random() < 0.5:
            text = f"SELECT k, r, id, n FROM ({ranked}) q WHERE r <= {last}"
            return Query("top with ranks", text, "k TEXT, r BIGINT, id INT, n INT", ("k", "r"))
        text = f"SELECT id, k, n FROM ({ranked}) q WHERE r <= {last}"
        if last == 1:
            return Query("first", text, "id INT, k TEXT, n INT", ("k",))
        return Query("top", text, "id INT, k TEXT, n INT", ("id",), "DEDUPLICATE")

    def ask_top_of_groups(self) -> Query:
        by, bounds = self._one("c DESC, k", "m, k", "m DESC, c, k"), self._one("r <= 2", "r <= 3", "r BETWEEN 2 AND 3")
        ranked = f"SELECT k, c, m, ROW_NUMBER() OVER (ORDER BY {by}) AS r FROM ({self._groups()}) q"
        key = self._one("k", "r")
        text = f"SELECT k, r, c, m FROM ({ranked}) p WHERE {bounds}"
        return Query("top of groups", text, "k TEXT, r BIGINT, c BIGINT, m BIGINT", (key,))

    def ask_limit(self) -> Query:
        text = f"SELECT id, n FROM t ORDER BY n {self._one('ASC', 'DESC')}, id LIMIT {self.random.randint(1, 4)}"
        return Query("limit", text, "id INT, n INT", ("id",), "DEDUPLICATE")

    def ask_over(self) -> Query:
        call = self._one("SUM(n)", "COUNT(*)", "MAX(id)", "RANK()", "DENSE_RANK()")
        text = f"SELECT id, k, n, {call} OVER (PARTITION BY k ORDER BY n) AS x FROM t WHERE {self._where()}"
        return Query("over", text, "id INT, k TEXT, n INT, x BIGINT", ("id",), "DEDUPLICATE")

    def ask_over_groups(self) -> Query:
        text = f"SELECT k, c, m, SUM(c) OVER (PARTITION BY k ORDER BY m) AS x FROM ({self._groups()}) q"
        return Query("over groups", text, "k TEXT, c BIGINT, m BIGINT, x BIGINT", ("k",))

    def ask_sets(self) -> Query:
        word = self._one("UNION", "INTERSECT", "EXCEPT")
        text = f"SELECT k, n FROM t WHERE {self._where()} {word} SELECT k, n FROM r"
        return Query("sets", text, "k TEXT, n INT", ("k", "n"))

    def ask_union_all(self) -> Query:
        text = f"SELECT 'x' AS w, id, n FROM t WHERE {self._where()} UNION ALL SELECT 'yy', id, n FROM r"
        return Query("union all", text, "w TEXT, id INT, n INT", ("w", "id"), "DEDUPLICATE")

    def ask_unnest(self) -> Query:
        where = self._where()
        text = f"SELECT id, v, n FROM t CROSS JOIN UNNEST(ARRAY[n, n + 1]) AS u(v) WHERE {where}"
        sqlite = f"SELECT id, n AS v, n FROM t WHERE {where} UNION ALL SELECT id, n + 1, n FROM t WHERE {where}"
        return Query("unnest", text, "id INT, v INT, n INT", ("id", "v"), "DEDUPLICATE", sqlite)

    def ask_rollup(self) -> Query:
        text = "SELECT COALESCE(k, '-') AS k, COUNT(*) AS c, SUM(n) AS s FROM t GROUP BY ROLLUP (k)"
        sqlite = (
            "SELECT k, COUNT(*) AS c, SUM(n) AS s FROM t GROUP BY k "
            "UNION ALL SELECT * FROM (SELECT '-', COUNT(*) AS c, SUM(n) FROM t) WHERE c > 0"
        )
        return Query("rollup", text, "k TEXT, c BIGINT, s BIGINT", ("k",), "DEDUPLICATE", sqlite)

    def ask_total(self) -> Query:
        """Rows of one subtask and of several in one union."""
        text = f"SELECT '-' AS k, COUNT(*) AS c, {self._aggregate()} AS m FROM t{{}} UNION ALL {self._groups()}"
        sqlite = text.format(" HAVING COUNT(*) > 0")
        return Query("total", text.format(""), "k TEXT, c BIGINT, m BIGINT", ("k",), "DEDUPLICATE", sqlite)

    def ask_whole_by_value(self) -> Query:
        text = f"SELECT COUNT(*) AS c, {self._aggregate()} AS m FROM t WHERE {self._where()}"
        return Query("whole by value", text, "c BIGINT, m BIGINT", ("c",), "", f"SELECT * FROM ({text}) WHERE c > 0")

    def ask_other_key(self) -> Query:
        text = f"SELECT c, k FROM ({self._groups()}) q"
        return Query("another key", text, "c BIGINT, k TEXT", ("c",), "DEDUPLICATE", youngest=True)

    def ask_scalar(self) -> Query:
        # As in Flink, a stream without rows has no count, where SQLite counts 0.
        call, text = self._one("MIN(n)", "COUNT(*)"), "SELECT id, n FROM t WHERE n > (SELECT {} FROM r)"
        sqlite = text.format(f"NULLIF({call}, 0)" if call == "COUNT(*)" else call)
        return Query("scalar subquery", text.format(call), "id INT, n INT", ("id",), "DEDUPLICATE", sqlite)


class Oracle:
    """SQLite's answers: what the query gives after so many changes of each table."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.database = sqlite3.connect(":memory:")
        for name, columns in COLUMNS.items():
            self.database.execute(f"CREATE TABLE {name} {columns}")

    def rows(self, seen: dict[str, int] | None = None) -> Rows:
        """The result, sorted; after all changes, if none are named."""
        for name, changes in self.case.changes.items():
            left: dict[int, tuple[Any, ...]] = {}
            for kind, number, *row in changes[: len(changes) if seen is None else seen[name]]:
                if kind[0] == "+":
                    left[number] = (number, *row)
                else:
                    left.pop(number, None)
            self.database.execute(f"DELETE FROM {name}")
            self.database.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", left.values())
        return sorted(self.database.execute(self.case.query.oracle).fetchall(), key=repr)

    def allows(self, table: Rows, seen: dict[str, int] | None = None) -> bool:
        """Whether a table may have these rows after so many changes."""
        rows = self.rows(seen)
        if not self.case.query.youngest:
            return rows == table
        return {row[0] for row in table} == {row[0] for row in rows} and set(table) <= set(rows)

    def has_prefix(self, table: Rows) -> bool:
        """Whether a table is the result after some changes of each table."""
        firsts, seconds = (range(len(self.case.changes[name]), -1, -1) for name in ("t", "r"))
        return any(self.allows(table, {"t": one, "r": other}) for one in firsts for other in seconds)
