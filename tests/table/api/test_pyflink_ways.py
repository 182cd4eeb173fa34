"""Ways in which PyFlink's own examples use tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.common import Row, Types
from penstock.common.time import Instant
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import ValidationException
from penstock.table import DataTypes, Schema, StreamTableEnvironment
from penstock.table.expression.expression_functions import col
from penstock.table.expression.function_declarations import udtf
from penstock.testing import in_process


@pytest.fixture
def t_env() -> Iterator[StreamTableEnvironment]:
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        yield StreamTableEnvironment.create(env)


def rows(table):
    return [tuple(row) for row in table.execute().collect()]


def test_a_table_stands_in_a_statement(t_env):
    table = t_env.from_elements([(1, "a"), (2, "b")], ["n", "s"])
    doubled = t_env.sql_query(f"SELECT n * 2 AS m FROM {table} WHERE s <> 'a'")
    assert rows(t_env.sql_query(f"SELECT m, n FROM {doubled}, {table} WHERE m > n")) == [(4, 1), (4, 2)]
    assert str(table) == str(table) != str(doubled)


def test_a_function_without_arguments_gets_the_row(t_env):
    @udtf(result_types=[DataTypes.STRING()])
    def split(row: Row):
        yield from row.s.split("-")

    table = t_env.from_elements([(1, "a-b"), (2, "c")], ["n", "s"])
    assert rows(table.join_lateral(split.alias("part")).select(col("n"), col("part"))) == [(1, "a"), (1, "b"), (2, "c")]
    assert rows(table.left_outer_join_lateral(split.alias("part")).select(col("part"))) == [("a",), ("b",), ("c",)]


@pytest.mark.parametrize("kind", [Types.ROW, Types.TUPLE])
def test_computed_columns_see_fields_that_the_schema_leaves_out(t_env, kind):
    stream = t_env._env.from_collection(
        [(Instant.of_epoch_milli(1500), "x", 1.5)], type_info=kind([Types.INSTANT(), Types.STRING(), Types.DOUBLE()])
    )
    schema = (
        Schema.new_builder()
        .column("f2", DataTypes.DOUBLE())
        .column_by_expression("ts", "CAST(f0 AS TIMESTAMP(3))")
        .column("f1", DataTypes.STRING())
        .build()
    )
    table = t_env.from_data_stream(stream, schema)
    assert table.get_schema().get_field_names() == ["f2", "ts", "f1"]
    ((number, moment, text),) = rows(table)
    assert (number, moment.isoformat(), text) == (1.5, "1970-01-01T00:00:01.500000", "x")
    with pytest.raises(ValidationException, match="no field f9"):
        t_env.from_data_stream(stream, Schema.new_builder().column("f9", DataTypes.INT()).build())


def test_values_are_printed_as_java_does(t_env, capfd):
    columns = (
        "a BOOLEAN, b DOUBLE, c DECIMAL(5, 2), d DATE, e TIME, f TIMESTAMP(3), g TIMESTAMP(3), h TIMESTAMP_LTZ(3), "
        "i BYTES, j ARRAY<STRING>, k MAP<STRING, INT>, l ROW<x INT, y STRING>, m STRING"
    )
    t_env.execute_sql(f"CREATE TABLE p ({columns}) WITH ('connector' = 'print')")
    t_env.execute_sql("""
        INSERT INTO p SELECT TRUE, 1e20, 1.5, DATE '2024-01-31', TIME '10:00:00', TIMESTAMP '2024-01-31 10:00:00',
        TIMESTAMP '2024-01-31 10:00:01.5', TO_TIMESTAMP_LTZ(0, 3), X'01FF', ARRAY['a', CAST(NULL AS STRING)],
        MAP['k', 1], ROW(1, 'z'), CAST(NULL AS STRING)
    """).wait()
    expected = (
        "+I[true, 1.0E20, 1.50, 2024-01-31, 10:00, 2024-01-31T10:00, 2024-01-31T10:00:01.500, 1970-01-01T00:00:00Z, "
        "[1, -1], [a, null], {k=1}, +I[1, z], null]"
    )
    assert capfd.readouterr().out.strip() == expected


def test_modes_change_within_a_session(t_env):
    t_env.execute_sql("CREATE TEMPORARY VIEW v AS SELECT * FROM (VALUES (2), (1)) AS t(n)")
    t_env.execute_sql("SET 'execution.runtime-mode' = 'batch'")
    assert [tuple(row) for row in t_env.execute_sql("SELECT n FROM v ORDER BY n").collect()] == [(1,), (2,)]
    t_env.execute_sql("RESET 'execution.runtime-mode'")
    with pytest.raises(Exception, match="Sort"):
        t_env.execute_sql("SELECT n FROM v ORDER BY n")
    with pytest.raises(ValidationException, match="streaming or batch"):
        t_env.execute_sql("SET 'execution.runtime-mode' = 'both'")


def test_a_row_is_flattened_into_its_fields(t_env):
    inner = DataTypes.ROW([DataTypes.FIELD("x", DataTypes.STRING()), DataTypes.FIELD("y", DataTypes.INT())])
    declared = DataTypes.ROW([DataTypes.FIELD("i", DataTypes.INT()), DataTypes.FIELD("r", inner)])
    table = t_env.from_elements([(1, Row("a", 2)), (2, None)], declared).select(col("i").flatten, col("r").flatten)
    assert table.get_schema().get_field_names() == ["i", "r$x", "r$y"]
    assert sorted(rows(table)) == [(1, "a", 2), (2, None, None)]


def test_plus_joins_to_a_text_and_not_to_a_number(t_env):
    table = t_env.from_elements([(1, "a")], ["n", "s"])
    assert rows(table.select(col("s") + col("n"), col("s") + "x")) == [("a1", "ax")]
    with pytest.raises(ValidationException):
        table.select(col("n") + col("s"))


def test_types_of_no_elements(t_env):
    with pytest.raises(ValueError, match="no elements"):
        t_env.from_elements([], ["a"])
