"""One run of a random query into a table, in this process, in which anything may die at any step."""

from __future__ import annotations

import random
import sqlite3
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from penstock.common import Row, RowKind, Types
from penstock.connectors.jdbc.jdbc_writers import OnceCommitter
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import ValidationException
from penstock.table import Schema, StreamTableEnvironment
from penstock.table.types.data_types import DataTypes
from penstock.testing.crashes import Outcome, simulate
from tests.table.changelogs.random_changes import COLUMNS, Case, Oracle, Query, Rows

KINDS = {"+I": RowKind.INSERT, "-U": RowKind.UPDATE_BEFORE, "+U": RowKind.UPDATE_AFTER, "-D": RowKind.DELETE}
STEPS = {"durable": 50, "callback": 0}
"""About what a run has: 40 to 65 durable steps."""
OPTIONS = (None, None, "keyed-shuffle", "upsert-materialize")
"""What a run may force. The result must not depend on it."""


class Sink(ABC):
    """The table `s`, which holds one row of each key."""

    exactly_once = False
    commits: tuple[type, str] = (OnceCommitter, "_commit")
    """The method that makes changes visible, if it is exactly once."""

    @abstractmethod
    def options(self, query: Query) -> dict[str, str]:
        """Make the empty table, unless it is there; returns what Penstock needs to write into it."""

    @abstractmethod
    def rows(self, query: Query) -> Rows:
        """What it holds, sorted by `repr`."""

    def remove(self) -> None:
        """Leave nothing behind."""
        return


class Sqlite(Sink):
    """A file."""

    exactly_once = True

    def __init__(self, path: Path) -> None:
        self.path = path

    def options(self, query: Query) -> dict[str, str]:
        with closing(sqlite3.connect(self.path)) as database, database:
            database.execute(f"CREATE TABLE IF NOT EXISTS s ({query.columns}, PRIMARY KEY ({', '.join(query.key)}))")
        return {"connector": "jdbc", "url": f"jdbc:sqlite:{self.path}", "table-name": "s"}

    def rows(self, query: Query) -> Rows:
        with closing(sqlite3.connect(self.path)) as database:
            return sorted(database.execute("SELECT * FROM s").fetchall(), key=repr)


class Program:
    """Writes the query of a case into a table. Each driver may find another parallelism.

    It stays 1 or stays above 1: aggregation has one phase or two, and a sink is found by its place behind them.
    """

    def __init__(self, case: Case, sink: Sink) -> None:
        self.case = case
        self.sink = sink
        self.random = random.Random(f"program {case.seed}")
        self.one_subtask = self.random.random() < 0.5
        self.option = self.random.choice(OPTIONS)

    def __call__(self, env: StreamExecutionEnvironment) -> None:
        env.set_parallelism(1 if self.one_subtask else self.random.choice([2, 3])).set_max_parallelism(16)
        t_env = StreamTableEnvironment.create(env)
        if self.option is not None:
            t_env.get_config().set(f"table.exec.sink.{self.option}", "FORCE")
        for name in COLUMNS:
            self._declare(t_env, name)
        query, options = self.case.query, self.sink.options(self.case.query)
        if self.sink.exactly_once:
            options["sink.delivery-guarantee"] = "exactly-once"
        given = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
        columns = f"{query.columns.replace('TEXT', 'STRING')}, PRIMARY KEY ({', '.join(query.key)}) NOT ENFORCED"
        t_env.execute_sql(f"CREATE TABLE s ({columns}) WITH ({given})")
        conflict = f" ON CONFLICT DO {query.conflict}" if query.conflict else ""
        statements = t_env.create_statement_set()
        try:
            statements.add_insert_sql(f"INSERT INTO s {query.stream}{conflict}")
            statements.attach_as_datastream()
        except ValidationException as refused:
            # With inserts alone, Elasticsearch is no upsert sink, and has no conflicts.
            if "only allowed for upsert sinks" not in str(refused):
                raise
            statements = t_env.create_statement_set()
            statements.add_insert_sql(f"INSERT INTO s {query.stream}")
            statements.attach_as_datastream()

    def _declare(self, t_env: StreamTableEnvironment, name: str) -> None:
        rows = [Row.of_kind(KINDS[kind], *row) for kind, *row in self.case.changes[name]]
        fields = Types.ROW_NAMED(["id", "k", "n"], [Types.INT(), Types.STRING(), Types.INT()])
        stream = t_env._env.from_collection(rows, fields)  # type: ignore[attr-defined]
        stream.uid(name)
        number, text = DataTypes.INT().not_null(), DataTypes.STRING().not_null()
        schema = Schema.new_builder().column("id", number).column("k", text).column("n", number)
        built = schema.primary_key("id").build()
        grows = self.case.grows[name]
        made = t_env.from_data_stream(stream, built) if grows else t_env.from_changelog_stream(stream, built)
        t_env.create_temporary_view(name, made)

    def rows(self) -> Rows:
        return self.sink.rows(self.case.query)


@contextmanager
def noting_commits(program: Program, seen: list[Rows]) -> Iterator[None]:
    """Note the table after every commit."""
    owner, name = program.sink.commits
    commit = getattr(owner, name)

    def noting(self: Any, prepared: Any) -> None:
        commit(self, prepared)
        seen.append(program.rows())

    setattr(owner, name, noting)
    try:
        yield
    finally:
        setattr(owner, name, commit)


def check(seed: int) -> Outcome:
    """Run a seed into SQLite."""
    with tempfile.TemporaryDirectory() as folder:
        return check_sink(seed, Sqlite(Path(folder) / "sink.db"))


def check_sink(seed: int, sink: Sink) -> Outcome:
    """Run a seed. The table at the end is the result of the query; of one subtask, every commit is that of a prefix.

    Something dies only if the sink is exactly once: what another one writes again need not be the same changes.
    """
    case, seen = Case(seed), list[Rows]()
    program, oracle = Program(case, sink), Oracle(case)
    with noting_commits(program, seen):
        outcome = simulate(program, seed, steps=STEPS if sink.exactly_once else None)
    found = program.rows()
    sink.remove()
    about = f"seed {seed}, {case.query}, {case.changes}, {outcome.crashes}, {outcome.settings}"
    assert oracle.allows(found), f"{about}: the table has {found}, and the result is {oracle.rows()}"
    if program.one_subtask:
        for number, rows in enumerate(different(seen)):
            assert oracle.has_prefix(rows), f"{about}: commit {number} leaves {rows}, which is no result"
    return outcome


def different(tables: list[Rows]) -> list[Rows]:
    """The tables without those that are equal to the one before."""
    return [rows for number, rows in enumerate(tables) if not number or rows != tables[number - 1]]
