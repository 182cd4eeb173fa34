"""TO_CHANGELOG and FROM_CHANGELOG. The results and refusals are those of Flink 2.3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.common import Row, RowKind, Types
from penstock.errors import RecordError, TableException, ValidationException
from penstock.table import DataTypes, EnvironmentSettings, Schema, StreamTableEnvironment, Table
from penstock.table.changelog_mode import ChangelogMode
from penstock.table.expressions import descriptor, lit, map_
from penstock.testing import in_process

KINDS = {"+I": RowKind.INSERT, "-U": RowKind.UPDATE_BEFORE, "+U": RowKind.UPDATE_AFTER, "-D": RowKind.DELETE}
Log = list[tuple[Any, ...]]
SCORES: Log = [("+I", "Alice", 10), ("+I", "Bob", 20), ("-U", "Alice", 10), ("+U", "Alice", 30), ("-D", "Bob", 20)]
ALL = [
    ("+I", "INSERT", "Alice", 10),
    ("+I", "INSERT", "Bob", 20),
    ("+I", "UPDATE_BEFORE", "Alice", 10),
    ("+I", "UPDATE_AFTER", "Alice", 30),
    ("+I", "DELETE", "Bob", 20),
]
CODES: Log = [(1, "c", "Alice"), (2, "r", "Bob"), (1, "ub", "Alice"), (1, "ua", "Alice2"), (2, "d", "Bob")]
MAPPING = "MAP['c, r', 'INSERT', 'ub', 'UPDATE_BEFORE', 'ua', 'UPDATE_AFTER', 'd', 'DELETE']"
CHANGED = [("+I", 1, "Alice"), ("+I", 2, "Bob"), ("-U", 1, "Alice"), ("+U", 1, "Alice2"), ("-D", 2, "Bob")]


@pytest.fixture
def t_env() -> Iterator[StreamTableEnvironment]:
    with in_process():
        made = StreamTableEnvironment.create(environment_settings=EnvironmentSettings.in_streaming_mode())
        made.get_config().set("parallelism.default", "1")
        scores(made, "t", SCORES)
        texts = Types.ROW_NAMED(["id", "op", "name"], [Types.INT(), Types.STRING(), Types.STRING()])
        rows = [Row(*row) for row in CODES]
        made.create_temporary_view("cdc", made.from_data_stream(made._env.from_collection(rows, texts)))
        yield made


def scores(t_env: StreamTableEnvironment, name: str, log: Log, mode: ChangelogMode | None = None) -> None:
    rows = [Row.of_kind(KINDS[kind], *row) for kind, *row in log]
    stream = t_env._env.from_collection(rows, Types.ROW_NAMED(["name", "score"], [Types.STRING(), Types.LONG()]))
    schema = Schema.new_builder().column("name", DataTypes.STRING().not_null()).column("score", DataTypes.BIGINT())
    t_env.create_temporary_view(name, t_env.from_changelog_stream(stream, schema.primary_key("name").build(), mode))


def changes(query: Table) -> Log:
    with query.execute().collect() as rows:
        return [(str(row.get_row_kind()), *row) for row in rows]


def test_each_change_becomes_a_row(t_env: StreamTableEnvironment) -> None:
    query = t_env.sql_query("SELECT * FROM TO_CHANGELOG(input => TABLE t)")
    assert changes(query) == ALL
    columns = query.get_resolved_schema()
    assert columns.get_column_names() == ["op", "name", "score"]
    assert changes(t_env.from_path("t").to_changelog()) == ALL


def test_upserts_get_the_row_before() -> None:
    with in_process(epoch_records=1):
        t_env = StreamTableEnvironment.create(environment_settings=EnvironmentSettings.in_streaming_mode())
        t_env.get_config().set("parallelism.default", "1")
        scores(t_env, "u", [SCORES[0], SCORES[1], ("+U", "Alice", 30), ("-D", "Bob", None)], ChangelogMode.upsert())
        assert changes(t_env.sql_query("SELECT * FROM TO_CHANGELOG(TABLE u)")) == ALL


def test_changes_without_a_code_are_left_out(t_env: StreamTableEnvironment) -> None:
    query = "SELECT * FROM TO_CHANGELOG(input => TABLE t, op => DESCRIPTOR(deleted), op_mapping => {})"
    flags = t_env.sql_query(query.format("MAP['INSERT, UPDATE_AFTER', 'false', 'DELETE', 'true']"))
    expected = [("+I", "false", "Alice", 10), ("+I", "false", "Bob", 20), ("+I", "false", "Alice", 30)]
    assert changes(flags) == [*expected, ("+I", "true", "Bob", 20)]
    mapping = map_(lit("INSERT, UPDATE_AFTER"), lit("false"), lit("DELETE"), lit("true")).as_argument("op_mapping")
    built = t_env.from_path("t").to_changelog(descriptor("deleted").as_argument("op"), mapping)
    assert changes(built) == [*expected, ("+I", "true", "Bob", 20)]


def test_the_changes_of_an_aggregate_become_rows(t_env: StreamTableEnvironment) -> None:
    query = "SELECT op, c FROM TO_CHANGELOG(input => (SELECT COUNT(*) AS c FROM cdc)) WHERE op <> 'UPDATE_BEFORE'"
    assert changes(t_env.sql_query(query))[-1] == ("+I", "UPDATE_AFTER", 5)


@pytest.mark.parametrize("sink", ["SELECT * FROM q", "SELECT id, name FROM q WHERE id > 0"])
def test_rows_become_changes(t_env: StreamTableEnvironment, sink: str) -> None:
    call = f"SELECT * FROM FROM_CHANGELOG(input => TABLE cdc, op => DESCRIPTOR(op), op_mapping => {MAPPING})"
    assert changes(t_env.sql_query(f"WITH q AS ({call}) {sink}")) == CHANGED


def test_what_was_made_rows_becomes_changes_again(t_env: StreamTableEnvironment) -> None:
    t_env.execute_sql("CREATE TEMPORARY VIEW v AS SELECT * FROM TO_CHANGELOG(input => TABLE t)")
    assert changes(t_env.sql_query("SELECT * FROM FROM_CHANGELOG(input => TABLE v)")) == SCORES
    assert changes(t_env.from_path("t").to_changelog().from_changelog()) == SCORES


def test_a_lone_row_of_an_update_is_a_deletion(t_env: StreamTableEnvironment) -> None:
    rows = [Row("UPDATE_BEFORE", 1), Row("INSERT", 2)]
    stream = t_env._env.from_collection(rows, Types.ROW_NAMED(["op", "n"], [Types.STRING(), Types.INT()]))
    query = t_env.from_data_stream(stream).from_changelog()
    assert changes(query) == [("-D", 1), ("+I", 2)]


@pytest.mark.parametrize(("code", "says"), [("UNKNOWN", "Received invalid op code 'UNKNOWN'"), (None, "Received NULL")])
def test_a_code_without_a_meaning_is_an_error(t_env: StreamTableEnvironment, code: str | None, says: str) -> None:
    stream = t_env._env.from_collection([Row(code, 1)], Types.ROW_NAMED(["op", "n"], [Types.STRING(), Types.INT()]))
    with pytest.raises(RecordError, match=says):
        changes(t_env.from_data_stream(stream).from_changelog())


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("TO_CHANGELOG(TABLE t, DESCRIPTOR(name))", r"Field names must be unique. Found duplicates: \[name\]"),
        ("TO_CHANGELOG(input => TABLE t PARTITION BY name)", "Only tables with set semantics may be partitioned"),
        ("TO_CHANGELOG(input => TABLE t, op => DESCRIPTOR(a, b))", "must contain exactly one column name"),
        ("TO_CHANGELOG(input => TABLE t, op_mapping => MAP['insert', 'x'])", "Unknown change operation: 'insert'"),
        ("TO_CHANGELOG(input => TABLE t, op_mapping => MAP['INSERT, DELETE', 'A', 'DELETE', 'B'])", "Duplicate change"),
        ("TO_CHANGELOG(input => TABLE t, op_mapping => MAP['DELETE', CAST(NULL AS STRING)])", "constant MAP literal"),
        ("TO_CHANGELOG(input => 3)", "Argument 'input' expects a table"),
        ("TO_CHANGELOG(input => TABLE t, mapping => MAP['DELETE', 'd'])", "no argument 'mapping'"),
        ("TO_CHANGELOG(op => DESCRIPTOR(a))", "misses its table"),
        ("FROM_CHANGELOG(input => TABLE cdc, op => DESCRIPTOR(nope))", "op column 'nope' does not exist"),
        ("FROM_CHANGELOG(input => TABLE cdc, op => DESCRIPTOR(id))", "must be of STRING type, but was 'INT'"),
        ("FROM_CHANGELOG(input => TABLE cdc, op_mapping => MAP['c', 'INSERT', 'r', 'INSERT'])", "comma-separated keys"),
        ("FROM_CHANGELOG(input => TABLE cdc, op_mapping => MAP['u', 'UPDATE_AFTER'])", "must include UPDATE_BEFORE"),
        ("FROM_CHANGELOG(input => TABLE cdc, op_mapping => MAP['c, c', 'INSERT'])", "Duplicate code: 'c'"),
    ],
)
def test_wrong_arguments_are_refused(t_env: StreamTableEnvironment, call: str, says: str) -> None:
    with pytest.raises(ValidationException, match=says):
        t_env.sql_query(f"SELECT * FROM {call}")


def test_a_table_that_changes_describes_no_changes(t_env: StreamTableEnvironment) -> None:
    with pytest.raises(TableException, match="doesn't support consuming update and delete changes"):
        t_env.sql_query("SELECT * FROM FROM_CHANGELOG(input => TABLE t, op => DESCRIPTOR(name))").execute()


def test_arguments_of_other_forms_are_refused(t_env: StreamTableEnvironment) -> None:
    with pytest.raises(ValidationException, match="to_changelog takes descriptor"):
        t_env.from_path("t").to_changelog(lit(1))


def test_batch_mode_has_no_changes() -> None:
    t_env = StreamTableEnvironment.create(environment_settings=EnvironmentSettings.in_batch_mode())
    with pytest.raises(TableException, match="are for STREAMING mode"):
        t_env.from_elements([("INSERT", 1)], ["op", "n"]).from_changelog()
