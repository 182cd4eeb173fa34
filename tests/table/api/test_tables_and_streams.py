"""What goes from streams to tables and back, and types of tables where streams want theirs."""

import datetime

import pytest

from penstock.common import Row, Types
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.file_system import FileSource
from penstock.datastream.formats.csv import CsvReaderFormat, CsvSchema
from penstock.datastream.formats.json import JsonRowDeserializationSchema
from penstock.datastream.formats.orc import OrcBulkWriters
from penstock.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from penstock.errors import UnsupportedOperation, ValidationException
from penstock.table import ChangelogMode, DataTypes, Schema, StreamTableEnvironment
from penstock.table.expression.expression_functions import array, col, map_, row
from penstock.table.expression.function_declarations import udf
from penstock.testing import in_process

PAIR = DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT()), DataTypes.FIELD("b", DataTypes.STRING())])


@pytest.fixture
def t_env():
    with in_process():
        yield StreamTableEnvironment.create(StreamExecutionEnvironment().set_parallelism(1))


def held(stream):
    with stream.execute_and_collect() as found:
        return list(found)


def rows(table):
    with table.execute().collect() as found:
        return [tuple(one) for one in found]


def test_rows_tell_their_names():
    assert Row(a=1, b=2)._fields == ["a", "b"]
    assert not hasattr(Row(1, 2), "_fields")


def test_a_changelog_has_the_columns_of_its_schema(t_env):
    table = t_env.from_elements([(1, "x")], DataTypes.ROW([("a", DataTypes.INT()), ("b", DataTypes.STRING())]))
    schema = Schema.new_builder().column("n", DataTypes.BIGINT()).column("s", "STRING").build()
    assert held(t_env.to_changelog_stream(table, schema)) == [Row(n=1, s="x")]
    few = Schema.new_builder().column("n", DataTypes.BIGINT()).build()
    with pytest.raises(ValidationException, match="give as many"):
        t_env.to_changelog_stream(table, few)
    wrong = Schema.new_builder().column("n", DataTypes.DATE()).column("s", "STRING").build()
    with pytest.raises(ValidationException, match="INT does not fit"):
        t_env.to_changelog_stream(table, wrong)
    with pytest.raises(UnsupportedOperation, match="leave the mode out"):
        t_env.to_changelog_stream(table, schema, ChangelogMode.upsert())


def test_the_time_of_a_changelog_is_that_of_its_rows(t_env):
    t_env.execute_sql("CREATE TEMPORARY VIEW v AS SELECT 'x' AS s, TO_TIMESTAMP_LTZ(1500, 3) AS ts")
    named = Schema.new_builder().column("name", "STRING").build()
    schema = Schema.new_builder().from_schema(named).column_by_metadata("ts", "TIMESTAMP_LTZ(3)", "rowtime").build()
    assert held(t_env.to_changelog_stream(t_env.from_path("v"), schema)) == [Row(name="x")]
    other = Schema.new_builder().from_schema(named).column_by_metadata("ts", "TIMESTAMP_LTZ(3)", "offset").build()
    with pytest.raises(ValidationException, match="'rowtime', not"):
        t_env.to_changelog_stream(t_env.from_path("v"), other)


def test_rows_of_older_streams_have_the_names_of_their_type(t_env):
    table = t_env.from_elements([(1, "x")], ["a", "b"])
    named = Types.ROW_NAMED(["n", "s"], [Types.LONG(), Types.STRING()])
    assert held(t_env.to_append_stream(table, named)) == [Row(n=1, s="x")]
    assert held(t_env.to_retract_stream(table, Types.TUPLE([Types.LONG(), Types.STRING()]))) == [(True, (1, "x"))]
    assert held(t_env.to_retract_stream(table, Types.ROW([Types.LONG(), Types.STRING()]))) == [
        (True, Row(f0=1, f1="x"))
    ]


def test_values_of_no_declared_type_pass_through_a_table(t_env):
    stream = t_env._env.from_collection([(1,), {"a": datetime.date(2024, 1, 1)}, Row(x=2)])
    table = t_env.from_data_stream(stream)
    assert [column.as_summary_string() for column in table.get_resolved_schema().get_columns()] == [
        "`f0` RAW('[B', '...')"
    ]
    assert rows(table.select(col("f0"))) == [((1,),), ({"a": datetime.date(2024, 1, 1)},), (Row(2),)]


def test_elements_can_be_calls_of_row(t_env):
    elements = [row(1, array("x", None), map_("k", 2))]
    assert rows(t_env.from_elements(elements)) == [(1, ["x", None], {"k": 2})]
    with pytest.raises(ValidationException, match="row, array, map_ and lit"):
        t_env.from_elements([row(1, col("a") + 1)])


def test_a_system_function_takes_the_place_of_one_of_sql(t_env):
    t_env.create_temporary_system_function("plus", udf(lambda a, b: 10 * a + b, result_type=DataTypes.BIGINT()))
    table = t_env.from_elements([(1, 2)], ["a", "b"])
    assert rows(table.select(col("a") + col("b"), col("a") - col("b"))) == [(12, -1)]
    t_env.drop_temporary_system_function("plus")
    assert rows(table.select(col("a") + col("b"))) == [(3,)]


@pytest.mark.parametrize("writers", [ParquetBulkWriters, OrcBulkWriters])
def test_columnar_files_take_types_of_tables(writers):
    declared = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()])
    assert writers.for_row_type(PAIR) == writers.for_row_type(declared)
    with pytest.raises(TypeError, match="must be a RowTypeInfo"):
        writers.for_row_type(DataTypes.INT())


def test_formats_take_types_of_tables():
    declared = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()])
    assert ParquetColumnarRowInputFormat(PAIR).row_type == declared
    made = JsonRowDeserializationSchema.builder().type_info(PAIR).build()
    assert made.get_produced_type() == declared


def test_columns_of_csv_take_types_of_tables(tmp_path):
    (tmp_path / "in.csv").write_text("1,2024-01-02,x;y\n")
    builder = CsvSchema.builder().add_number_column("n", DataTypes.INT()).add_column("d", DataTypes.DATE())
    schema = builder.add_array_column("t", ";", DataTypes.STRING()).build()
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), str(tmp_path / "in.csv")).build()
    with in_process():
        env = StreamExecutionEnvironment().set_parallelism(1)
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "csv")
        assert held(stream) == [Row(n=1, d=datetime.date(2024, 1, 2), t=["x", "y"])]


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_an_empty_folder_is_an_empty_table(t_env, tmp_path, mode):
    t_env.get_config().set("execution.runtime-mode", mode).set("table.exec.batch.engine", "penstock")
    t_env.execute_sql(f"CREATE TABLE t (a INT) WITH ('connector'='filesystem', 'path'='{tmp_path}', 'format'='csv')")
    assert rows(t_env.from_path("t")) == []
    (tmp_path / "one.csv").write_text("7\n")
    assert rows(t_env.from_path("t")) == [(7,)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("'connector.type'='kafka', 'format.type'='json'", "no longer supported"),
        ("'connector.type'='filesystem', 'format.type'='csv', 'format.ignore-first-line'='true'", "is 'false' here"),
        ("'connector.type'='filesystem', 'format.type'='csv', 'format.x'='1'", r"no option 'format\.x'"),
    ],
)
def test_options_from_before_flink_1_11_that_are_not_read(t_env, options, words):
    t_env.execute_sql(f"CREATE TABLE t (a INT) WITH ({options}, 'connector.path'='/x')")
    with pytest.raises(ValidationException, match=words):
        t_env.from_path("t").execute()


def test_the_old_format_passes_over_surplus_fields(t_env, tmp_path):
    (tmp_path / "lines.csv").write_text("1,a,surplus\n2,b\n")
    t_env.execute_sql(
        "CREATE TABLE t (a INT, b STRING) WITH ('connector.type'='filesystem', 'format.type'='csv', "
        f"'connector.path'='{tmp_path}')"
    )
    assert sorted(rows(t_env.from_path("t"))) == [(1, "a"), (2, "b")]
