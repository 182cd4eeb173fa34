"""What an upsert sink holds at the end: the rows of the query and no others. The results are Flink's."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.common import Row, RowKind, Types
from penstock.errors import ExecutionException, ValidationException
from penstock.table import EnvironmentSettings, Schema, StreamTableEnvironment
from penstock.table.expression.function_declarations import udf
from penstock.table.types.data_types import DataTypes
from penstock.testing import in_process

KINDS = {"+I": RowKind.INSERT, "-U": RowKind.UPDATE_BEFORE, "+U": RowKind.UPDATE_AFTER, "-D": RowKind.DELETE}
KEY, ROWS = "PRIMARY KEY (k) NOT ENFORCED", Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.INT()])


class Sink:
    """A table in SQLite, written through the connector jdbc."""

    def __init__(self, path: Path, epoch_records: int | None = None) -> None:
        self.path = path
        self.env = StreamTableEnvironment.create(environment_settings=EnvironmentSettings.in_streaming_mode())
        self.env.get_config().set("parallelism.default", "1")
        if epoch_records is not None:
            self.stream_env.settings.max_records = epoch_records

    @property
    def stream_env(self) -> Any:
        return self.env._env

    def declare(self, name: str, columns: str, key: str) -> None:
        with sqlite3.connect(self.path) as database:
            database.execute(f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({key}))")
        self.env.execute_sql(
            f"CREATE TABLE {name} ({columns.replace('TEXT', 'STRING')}, PRIMARY KEY ({key}) NOT ENFORCED) "
            f"WITH ('connector' = 'jdbc', 'url' = 'jdbc:sqlite:{self.path}', 'table-name' = '{name}')"
        )

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        with sqlite3.connect(self.path) as database:
            return sorted(database.execute(f"SELECT * FROM {name}").fetchall(), key=repr)

    def changes(self, name: str, log: list[tuple[Any, ...]], key: bool = False) -> None:
        """A changelog of (k, n)."""
        rows = [Row.of_kind(KINDS[kind], *row) for kind, *row in log]
        stream = self.stream_env.from_collection(rows, ROWS)
        text = DataTypes.STRING().not_null() if key else DataTypes.STRING()
        schema = Schema.new_builder().column("k", text).column("n", DataTypes.INT())
        built = (schema.primary_key("k") if key else schema).build()
        self.env.create_temporary_view(name, self.env.from_changelog_stream(stream, built))


@pytest.fixture(params=[1, 2, None])
def sink(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Sink]:
    with in_process(epoch_records=request.param):
        yield Sink(tmp_path / "sink.db")


def inserts(*rows: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return [("+I", *row) for row in rows]


def test_a_row_that_leaves_having_leaves_the_sink(sink: Sink) -> None:
    sink.changes("t", inserts(("a", 1), ("b", 1), ("a", 2), ("a", 3)))
    sink.declare("s", "k TEXT, c BIGINT", "k")
    sink.env.execute_sql("INSERT INTO s SELECT k, COUNT(*) FROM t GROUP BY k HAVING COUNT(*) < 3").wait()
    assert sink.rows("s") == [("b", 1)]


def test_a_row_that_leaves_where_over_a_changing_source_leaves_the_sink(sink: Sink) -> None:
    log = [("+I", "a", 1), ("+I", "b", 1), ("-U", "a", 1), ("+U", "a", 9), ("-D", "b", 1), ("+I", "c", 2)]
    sink.changes("t", log, key=True)
    sink.declare("s", "k TEXT, n INT", "k")
    sink.env.execute_sql("INSERT INTO s SELECT k, n FROM t WHERE n < 5").wait()
    assert sink.rows("s") == [("c", 2)]


class Alternates:
    """A condition with another answer at each call for the same value."""

    def __init__(self, first: bool) -> None:
        self.first = first
        self.calls = Counter[int]()

    def __call__(self, n: int) -> bool:
        self.calls[n] += 1
        return self.first == (self.calls[n] % 2 == 1)


@pytest.mark.parametrize(("first", "kept"), [(True, [("b", 3), ("c", 4)]), (False, [])])
def test_a_row_goes_whatever_a_filter_says_by_then(sink: Sink, first: bool, kept: list[tuple[str, int]]) -> None:
    """Without a materialised filter, rows that came stay, and rows go that never came."""
    log = [("+I", "a", 1), ("+I", "b", 2), ("+I", "c", 4), ("-U", "b", 2), ("+U", "b", 3), ("-D", "a", 1)]
    sink.changes("t", log, key=True)
    sink.declare("s", "k TEXT, n INT", "k")
    function = udf(Alternates(first), result_type=DataTypes.BOOLEAN(), deterministic=False)
    sink.env.create_temporary_function("alternates", function)
    sink.env.execute_sql("INSERT INTO s SELECT k, n FROM t WHERE alternates(n)").wait()
    assert sink.rows("s") == kept
    with sink.env.execute_sql("SELECT COUNT(*) AS c FROM (SELECT k FROM t WHERE alternates(n))").collect() as rows:
        counts = list(rows)
    assert [row[0] for row in counts][-1:] == ([len(kept)] if kept else [])


def test_a_row_that_leaves_a_join_of_changing_rows_leaves_the_sink(sink: Sink) -> None:
    sink.changes("t", inserts(("a", 1), ("b", 1), ("a", 2), ("b", 5)))
    sink.changes("r", inserts(("a", 2), ("b", 4)))
    sink.declare("s", "k TEXT, c INT, m INT", "k")
    sink.env.execute_sql(
        "INSERT INTO s SELECT x.k, x.c, y.m FROM (SELECT k, SUM(n) AS c FROM t GROUP BY k) x "
        "JOIN (SELECT k, MAX(n) AS m FROM r GROUP BY k) y ON x.k = y.k WHERE x.c < y.m + 2"
    ).wait()
    assert sink.rows("s") == [("a", 3, 2)]


@pytest.mark.parametrize("kind", ["LEFT", "FULL"])
def test_an_outer_join_keeps_the_row_of_a_key_whose_match_comes_and_goes(sink: Sink, kind: str) -> None:
    sink.changes("t", [("+I", "a", 1), ("-U", "a", 1), ("+U", "a", 5), ("-U", "a", 5), ("+U", "a", 2)], key=True)
    sink.changes("r", inserts(("a", 4)), key=True)
    sink.declare("s", "k TEXT, n INT, m INT", "k")
    query = f"SELECT t.k, t.n, r.n FROM t {kind} JOIN r ON t.k = r.k AND t.n < r.n"
    on_conflict = "" if kind == "LEFT" else " WHERE t.k IS NOT NULL ON CONFLICT DO DEDUPLICATE"
    sink.env.execute_sql(f"INSERT INTO s {query}{on_conflict}").wait()
    assert sink.rows("s") == [("a", 2, 4)]


@pytest.mark.parametrize("kind", ["LEFT", "FULL"])
def test_an_outer_join_keeps_a_row_whose_only_match_comes_and_goes_at_once(sink: Sink, kind: str) -> None:
    sink.changes("t", inserts(("a", 1)), key=True)
    sink.changes("r", [("+I", "a", 4), ("-U", "a", 4), ("+U", "a", 5), ("-D", "a", 5)], key=True)
    sink.declare("s", "k TEXT, n INT, m INT", "k")
    query = f"SELECT t.k, t.n, r.n FROM t {kind} JOIN r ON t.k = r.k AND t.n < r.n"
    on_conflict = "" if kind == "LEFT" else " WHERE t.k IS NOT NULL ON CONFLICT DO DEDUPLICATE"
    sink.env.execute_sql(f"INSERT INTO s {query}{on_conflict}").wait()
    assert sink.rows("s") == [("a", 1, None)]


def test_over_changing_rows_takes_a_row_back_before_the_next_one_comes(sink: Sink) -> None:
    sink.changes("t", inserts(("a", 3), ("b", 1), ("a", 4), ("b", 6), ("a", -5)))
    sink.declare("s", "k TEXT, c INT, r BIGINT", "k")
    sink.env.execute_sql(
        "INSERT INTO s SELECT k, c, r FROM (SELECT k, c, SUM(c) OVER (PARTITION BY k ORDER BY c) AS r "
        "FROM (SELECT k, SUM(n) AS c FROM t GROUP BY k))"
    ).wait()
    assert sink.rows("s") == [("a", 2, 2), ("b", 7, 7)]


def test_a_rank_that_changes_keeps_the_row_of_a_key(sink: Sink) -> None:
    sink.changes("t", inserts(("a", 3), ("b", 5), ("a", 4), ("c", 6), ("b", 7), ("a", 9)))
    sink.declare("s", "k TEXT, c INT, r BIGINT", "k")
    sink.env.execute_sql(
        "INSERT INTO s SELECT k, c, r FROM (SELECT k, c, ROW_NUMBER() OVER (ORDER BY c DESC) AS r "
        "FROM (SELECT k, SUM(n) AS c FROM t GROUP BY k)) WHERE r <= 2"
    ).wait()
    assert sink.rows("s") == [("a", 16, 1), ("b", 12, 2)]


def test_changes_keep_their_order_on_the_way_into_a_parallel_sink(sink: Sink) -> None:
    """The source has one subtask, and so has the sink: changes of a key would overtake each other in several."""
    log: list[tuple[Any, ...]] = [("+I", "a", 0)]
    for number in range(12):
        log += [("-U", "a", number), ("+U", "a", number + 1)]
    sink.changes("t", log, key=True)
    sink.env.get_config().set("parallelism.default", "3")
    sink.declare("s", "k TEXT, n INT", "k")
    sink.env.execute_sql("INSERT INTO s SELECT k, n FROM t WHERE n > -1").wait()
    assert sink.rows("s") == [("a", 12)]


@pytest.mark.parametrize("grouped", ["SELECT k, COUNT(*) AS c FROM t GROUP BY k", "SELECT k, MAX(n) FROM t GROUP BY k"])
def test_changes_of_one_subtask_keep_their_order_in_a_union_with_those_of_several(sink: Sink, grouped: str) -> None:
    log: list[tuple[Any, ...]] = [("+I", "a", 0)]
    for number in range(8):
        log += [("-U", "a", number), ("+U", "a", number + 1)]
    sink.changes("t", [*log, ("+I", "b", 1), ("-D", "a", 8)], key=True)
    sink.env.get_config().set("parallelism.default", "3")
    sink.declare("s", "k TEXT, c BIGINT", "k")
    total = "SELECT 'total' AS k, CAST(SUM(n) AS BIGINT) AS c FROM t"
    sink.env.execute_sql(f"INSERT INTO s {total} UNION ALL {grouped} ON CONFLICT DO DEDUPLICATE").wait()
    assert sink.rows("s") == [("b", 1), ("total", 1)]


def test_an_update_whose_rows_are_separated_by_a_shuffle_moves_the_row(sink: Sink) -> None:
    sink.changes("t", inserts(("a", 1), ("b", 2), ("c", 3), ("d", 4)))
    sink.env.get_config().set("parallelism.default", "3")
    sink.env.get_config().set("table.exec.sink.keyed-shuffle", "FORCE")
    sink.declare("s", "c BIGINT, m INT", "c")
    sink.env.execute_sql("INSERT INTO s SELECT COUNT(*) AS c, MAX(n) AS m FROM t").wait()
    assert sink.rows("s") == [(4, 4)]


# --- keys of the query that differ from those of the sink ---
COUNTS = "SELECT c, k FROM (SELECT k, COUNT(*) AS c FROM t GROUP BY k)"


def counts(sink: Sink, option: str | None = None) -> None:
    sink.changes("t", inserts(("a", 1), ("b", 1), ("b", 1), ("c", 1), ("c", 1)))
    sink.declare("s", "c BIGINT, k TEXT", "c")
    if option is not None:
        sink.env.get_config().set(*option.split("="))


def test_a_query_with_another_key_needs_a_strategy(sink: Sink) -> None:
    counts(sink)
    with pytest.raises(ValidationException, match=r"Primary key: \[c\], upsert key: \[k\].*ON CONFLICT"):
        sink.env.execute_sql(f"INSERT INTO s {COUNTS}")


@pytest.mark.parametrize("way", ["clause", "option", "force"])
def test_the_row_before_is_restored_when_the_last_one_goes(sink: Sink, way: str) -> None:
    option = {
        "option": "table.exec.sink.require-on-conflict=false",
        "force": "table.exec.sink.upsert-materialize=FORCE",
    }
    counts(sink, option.get(way))
    sink.env.execute_sql(f"INSERT INTO s {COUNTS}{' ON CONFLICT DO DEDUPLICATE' if way == 'clause' else ''}").wait()
    assert sink.rows("s") == [(1, "a"), (2, "c")]


def test_without_materialisation_the_last_change_of_a_key_decides(sink: Sink) -> None:
    counts(sink, "table.exec.sink.upsert-materialize=NONE")
    sink.env.execute_sql(f"INSERT INTO s {COUNTS}").wait()
    assert sink.rows("s") == [(2, "c")]


FIRST = "SELECT k, n FROM (SELECT k, n, ROW_NUMBER() OVER (PARTITION BY k ORDER BY n DESC) AS r FROM t) WHERE r = 1"


@pytest.mark.parametrize(
    ("log", "kept"),
    [
        ([("+I", "a", 3), ("+I", "b", 5), ("+I", "a", 4), ("+I", "b", 1)], [("a", 4), ("b", 5)]),
        ([("+I", "a", 3), ("+I", "a", 4), ("+I", "b", 5), ("-D", "a", 4), ("-D", "b", 5)], [("a", 3)]),
    ],
)
def test_the_first_row_of_each_partition_has_its_key(sink: Sink, log: list[Any], kept: list[Any]) -> None:
    sink.changes("t", log)
    sink.declare("s", "k TEXT, n INT", "k")
    sink.env.execute_sql(f"INSERT INTO s {FIRST}").wait()
    assert sink.rows("s") == kept


@pytest.mark.parametrize(
    "query", ["SELECT DISTINCT k, n FROM t", "SELECT k, n FROM (SELECT k, n, COUNT(*) AS c FROM t GROUP BY k, n)"]
)
def test_groups_within_the_rows_of_a_key_have_it_and_are_put_in_order(sink: Sink, query: str) -> None:
    """Groups of one key are in several subtasks, so that its next row can overtake the deletion of the last one."""
    log: list[tuple[Any, ...]] = [("+I", "a", 0), ("+I", "b", 7)]
    for number in range(12):
        log += [("-U", "a", number), ("+U", "a", number + 1)]
    sink.changes("t", log, key=True)
    sink.env.get_config().set("parallelism.default", "3")
    sink.declare("s", "k TEXT, n INT", "k")
    sink.env.execute_sql(f"INSERT INTO s {query}").wait()
    assert sink.rows("s") == [("a", 12), ("b", 7)]


@pytest.mark.parametrize("kind", ["BIGINT", "STRING"])
def test_a_cast_there_and_back_keeps_a_key(sink: Sink, kind: str) -> None:
    sink.changes("t", inserts(("a", 1), ("b", 2), ("a", 3)))
    sink.declare("s", "c INT, k TEXT", "c")
    groups = f"SELECT CAST(CAST(n AS {kind}) AS INT) AS c, MAX(k) AS k FROM t GROUP BY n"
    sink.env.execute_sql(f"INSERT INTO s {groups}").wait()
    assert sink.rows("s") == [(1, "a"), (2, "b"), (3, "a")]


def test_a_cast_that_loses_digits_loses_the_key(sink: Sink) -> None:
    sink.changes("t", inserts(("a", 1)))
    sink.declare("s", "c INT, k TEXT", "c")
    with pytest.raises(ValidationException, match="upsert key: none"):
        sink.env.execute_sql("INSERT INTO s SELECT CAST(CAST(n AS SMALLINT) AS INT), MAX(k) FROM t GROUP BY n")


def test_rows_without_a_key_need_a_strategy_too(sink: Sink) -> None:
    sink.changes("t", inserts(("a", 1), ("a", 2)))
    sink.declare("s", "k TEXT, n INT", "k")
    query = "INSERT INTO s SELECT k, n FROM t"
    with pytest.raises(ValidationException, match="upsert key: none"):
        sink.env.execute_sql(query)
    sink.env.execute_sql(f"{query} ON CONFLICT DO DEDUPLICATE").wait()
    assert sink.rows("s") == [("a", 2)]


def timed(sink: Sink, watermark: bool = True) -> None:
    """Rows of (id, k, n), each of which takes the watermark on."""
    rows = [Row(1, "a", 10), Row(2, "a", 20), Row(3, "b", 30)]
    names = Types.ROW_NAMED(["id", "k", "n"], [Types.INT(), Types.STRING(), Types.INT()])
    stream = sink.stream_env.from_collection(rows, names)
    schema = Schema.new_builder().column("id", DataTypes.INT().not_null()).column("k", DataTypes.STRING())
    schema = schema.column("n", DataTypes.INT()).column_by_expression("ts", "TO_TIMESTAMP_LTZ(n, 3)").primary_key("id")
    built = (schema.watermark("ts", "ts") if watermark else schema).build()
    sink.env.get_config().set("pipeline.auto-watermark-interval", "0 ms")
    sink.env.create_temporary_view("e", sink.env.from_data_stream(stream, built))
    sink.declare("s", "k TEXT, id INT", "k")


def test_the_first_row_of_a_key_stays_with_do_nothing(sink: Sink) -> None:
    timed(sink)
    sink.env.execute_sql("INSERT INTO s SELECT k, id FROM e ON CONFLICT DO NOTHING").wait()
    assert sink.rows("s") == [("a", 1), ("b", 3)]


def test_a_conflict_fails_with_do_error(sink: Sink) -> None:
    timed(sink)
    with pytest.raises(ExecutionException, match=r"Conflicting key: \[k=a\]"):
        sink.env.execute_sql("INSERT INTO s SELECT k, id FROM e ON CONFLICT DO ERROR").wait()


def test_strategies_that_wait_need_watermarks(sink: Sink) -> None:
    timed(sink, watermark=False)
    with pytest.raises(ValidationException, match="requires all source tables to define watermarks"):
        sink.env.execute_sql("INSERT INTO s SELECT k, id FROM e ON CONFLICT DO NOTHING")


def test_on_conflict_is_for_sinks_with_one_row_of_each_key(sink: Sink) -> None:
    timed(sink)
    sink.env.execute_sql("CREATE TABLE p (k STRING, id INT) WITH ('connector' = 'print')")
    with pytest.raises(ValidationException, match="only allowed for upsert sinks"):
        sink.env.execute_sql("INSERT INTO p SELECT k, id FROM e ON CONFLICT DO NOTHING")
