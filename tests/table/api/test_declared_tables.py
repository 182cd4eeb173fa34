"""Tables that take the watermarks of their streams, and how tables show what was declared. As Flink 2.3 has it."""

import pytest

from penstock.common import Row, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import TableException, ValidationException
from penstock.table import DataTypes, Schema, StreamTableEnvironment, connectors
from penstock.table.connectors import Connector
from penstock.table.expression.expression_functions import col
from penstock.testing import in_process

RECORDS = [(1000, "a", 1), (5000, "b", 2), (3000, "a", 3), (12000, "c", 4), (2000, "a", 5), (25000, "a", 6)]
TOTALS = """
    SELECT CAST(window_start AS STRING), k, SUM(v)
    FROM TABLE(TUMBLE(TABLE records, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end, k
"""
ALL_TOTALS = [
    ("1970-01-01 00:00:00.000", "a", 9),
    ("1970-01-01 00:00:00.000", "b", 2),
    ("1970-01-01 00:00:10.000", "c", 4),
    ("1970-01-01 00:00:20.000", "a", 6),
]


class OfRecord(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[0]


@pytest.fixture
def t_env():
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
        made = StreamTableEnvironment.create(env)
        made.get_config().set_local_timezone("UTC")
        made.env = env
        yield made


def of_stream():
    return Schema.new_builder().column("at", "BIGINT").column("k", "STRING").column("v", "INT")


def view(t_env, schema):
    kind = Types.ROW_NAMED(["at", "k", "v"], [Types.LONG(), Types.STRING(), Types.INT()])
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(OfRecord())
    stream = t_env.env.from_collection(RECORDS, kind).assign_timestamps_and_watermarks(strategy)
    t_env.create_temporary_view("records", stream, schema.watermark("ts", "SOURCE_WATERMARK()").build())


def rows(t_env, query):
    with t_env.execute_sql(query).collect() as found:
        return sorted(tuple(row) for row in found)


def test_the_timestamp_of_records_is_event_time(t_env):
    view(t_env, of_stream().column_by_metadata("ts", "TIMESTAMP_LTZ(3)", "rowtime"))
    assert rows(t_env, TOTALS) == ALL_TOTALS
    running = rows(t_env, "SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY ts) FROM records")
    assert running == [("a", 1, 1), ("a", 3, 9), ("a", 5, 6), ("a", 6, 15), ("b", 2, 2), ("c", 4, 4)]


def test_a_computed_column_is_event_time(t_env):
    view(t_env, of_stream().column_by_expression("ts", "TO_TIMESTAMP_LTZ(`at`, 3)"))
    assert rows(t_env, TOTALS) == ALL_TOTALS


def test_a_connector_has_no_watermarks_of_its_own(t_env):
    t_env.execute_sql(
        "CREATE TABLE made (ts TIMESTAMP(3), WATERMARK FOR ts AS SOURCE_WATERMARK()) WITH ('connector' = 'datagen')"
    )
    with pytest.raises(TableException, match=r"made declares SOURCE_WATERMARK\(\), and the connector 'datagen'"):
        rows(t_env, "SELECT * FROM made")


class Stamped(Connector):
    """A connector of a program, whose source has watermarks."""

    name = "stamped"
    sends_watermarks = True

    def source(self, env, table):
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(OfRecord())
        fields = Types.ROW_NAMED(["at", "k", "v"], [Types.LONG(), Types.STRING(), Types.INT()])
        records = [(1000, "a", 1), (12000, "c", 4), (2000, "a", 5), (25000, "a", 6)]
        stamped = env.from_collection(records).assign_timestamps_and_watermarks(strategy)
        return stamped.map(lambda record: Row(at=record[0], k=record[1], v=record[2]), fields)


def test_a_connector_can_have_watermarks_of_its_own(t_env, monkeypatch):
    monkeypatch.setitem(connectors._BUILT_IN, "stamped", f"{__name__}:Stamped")
    t_env.execute_sql(
        "CREATE TABLE records (`at` BIGINT, k STRING, v INT, ts AS TO_TIMESTAMP_LTZ(`at`, 3), "
        "WATERMARK FOR ts AS SOURCE_WATERMARK()) WITH ('connector' = 'stamped')"
    )
    assert rows(t_env, TOTALS) == [(ALL_TOTALS[0][0], "a", 6), *ALL_TOTALS[2:]]


def test_it_has_no_value(t_env):
    with pytest.raises(ValidationException, match=r"SOURCE_WATERMARK\(\) is allowed only in a WATERMARK"):
        rows(t_env, "SELECT SOURCE_WATERMARK()")


# --- how such tables are shown ---
SHOWN = """\
(
  `at` BIGINT,
  `k` STRING,
  `v` INT,
  `ts` TIMESTAMP_LTZ(3) *ROWTIME* METADATA FROM 'rowtime',
  WATERMARK FOR `ts`: TIMESTAMP_LTZ(3) AS SOURCE_WATERMARK()
)"""


def test_a_table_shows_what_was_declared_and_a_query_its_columns(t_env):
    view(t_env, of_stream().column_by_metadata("ts", "TIMESTAMP_LTZ(3)", "rowtime"))
    assert str(t_env.from_path("records").get_resolved_schema()) == SHOWN
    t_env.create_temporary_view("again", t_env.from_path("records"))
    assert str(t_env.from_path("again").get_resolved_schema()) == SHOWN
    described = rows(t_env, "DESCRIBE again")
    assert (
        "ts",
        "TIMESTAMP_LTZ(3) *ROWTIME*",
        True,
        None,
        "METADATA FROM 'rowtime'",
        "SOURCE_WATERMARK()",
    ) in described
    query = t_env.sql_query("SELECT k, ts FROM records")
    assert str(query.get_resolved_schema()) == "(\n  `k` STRING,\n  `ts` TIMESTAMP_LTZ(3) *ROWTIME*\n)"
    with pytest.raises(TableException, match="again is a view of a Table or a stream and has no SQL text to show"):
        t_env.execute_sql("SHOW CREATE VIEW again")


def test_a_table_of_a_connector_shows_what_was_declared(t_env):
    t_env.execute_sql(
        "CREATE TABLE made (k STRING, ts TIMESTAMP(3), c AS UPPER(k), PRIMARY KEY (k) NOT ENFORCED, "
        "WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'datagen')"
    )
    made = t_env.from_path("made")
    assert str(made.get_resolved_schema()).splitlines()[1:-1] == [
        "  `k` STRING NOT NULL,",
        "  `ts` TIMESTAMP(3) *ROWTIME*,",
        "  `c` STRING NOT NULL AS UPPER(`k`),",
        "  WATERMARK FOR `ts`: TIMESTAMP(3) AS `ts` - INTERVAL '5' SECOND,",
        "  CONSTRAINT `PK_k` PRIMARY KEY (`k`) NOT ENFORCED",
    ]
    assert repr(made.get_schema()).splitlines() == [
        "root",
        " |-- k: STRING NOT NULL",
        " |-- ts: TIMESTAMP(3) *ROWTIME*",
        " |-- c: STRING NOT NULL AS UPPER(`k`)",
        " |-- WATERMARK FOR ts: TIMESTAMP(3) AS `ts` - INTERVAL '5' SECOND",
        " |-- CONSTRAINT PK_k PRIMARY KEY (k)",
    ]


# --- rows and streams of them ---
def test_rows_of_results_have_no_names_and_rows_of_streams_have(t_env):
    query = "SELECT 1 AS a, CAST(ROW(2, 'x') AS ROW<b INT, c STRING>) AS r"
    with t_env.execute_sql(query).collect() as found:
        assert list(found) == [Row(1, Row(2, "x"))]
    with t_env.to_data_stream(t_env.sql_query(query)).execute_and_collect() as found:
        assert list(found) == [Row(a=1, r=Row(b=2, c="x"))]


def test_a_query_becomes_several_streams_of_one_program(t_env):
    """Their operators have identities of their own, and those of the next program the same as those of this one."""
    query = t_env.sql_query("SELECT a FROM (VALUES (1), (2)) AS t(a)")

    def uids():
        streams = [t_env.to_data_stream(query), t_env.to_changelog_stream(query)]
        streams[0].union(streams[1]).map(lambda row: row[0]).discard()
        found = {node.uid for node in t_env.env._plan(None).nodes if node.uid.startswith(("values-", "rows-"))}
        t_env.env.execute()
        return found

    first = uids()
    assert len(first) == 4 and uids() == first


def test_a_cast_makes_event_time_a_moment_as_any_other(t_env):
    view(t_env, of_stream().column_by_metadata("ts", "TIMESTAMP_LTZ(3)", "rowtime"))
    query = t_env.sql_query("SELECT ts, CAST(ts AS TIMESTAMP_LTZ(3)) AS plain FROM records")
    assert str(query.get_resolved_schema()) == "(\n  `ts` TIMESTAMP_LTZ(3) *ROWTIME*,\n  `plain` TIMESTAMP_LTZ(3)\n)"
    also = t_env.from_path("records").select(col("ts"), col("ts").cast(DataTypes.TIMESTAMP_LTZ(3)).alias("plain"))
    assert str(also.get_resolved_schema()) == str(query.get_resolved_schema())
    t_env.execute_sql("CREATE TABLE hole (a TIMESTAMP_LTZ(3), b TIMESTAMP_LTZ(3)) WITH ('connector' = 'blackhole')")
    t_env.execute_sql("INSERT INTO hole SELECT ts, CAST(ts AS TIMESTAMP_LTZ(3)) FROM records").wait()
    with pytest.raises(TableException, match="more than one rowtime attribute"):
        t_env.execute_sql("INSERT INTO hole SELECT ts, ts AS other FROM records")
