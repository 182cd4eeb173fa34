"""Tables made of streams of columns, and streams of columns made of tables, without a row between them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from penstock.common import Row, Types, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.file_system import FileSource
from penstock.datastream.formats.parquet import ParquetColumnarRowInputFormat
from penstock.formats.columnar import Projection
from penstock.table import Schema, StreamTableEnvironment
from penstock.table.operators.io.row_conversions import FromValues, ToRows
from penstock.testing import in_process

SALE = Types.ROW_NAMED(["shop", "sum", "day"], [Types.STRING(), Types.LONG(), Types.SQL_DATE()])
DAY = dt.date(2024, 5, 1)
ROWS = [("a", 1, DAY), ("b", None, None), ("c", 5, DAY)]


@pytest.fixture
def tables() -> Any:
    with in_process():
        yield StreamTableEnvironment.create(StreamExecutionEnvironment().set_parallelism(1))


def sales(tables: Any, tmp_path: Path, declared: Any = SALE, **columns: Any) -> Any:
    columns = columns or dict(zip(("shop", "sum", "day"), zip(*ROWS, strict=True), strict=True))
    parquet.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), tmp_path / "in.parquet")
    source = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(declared), str(tmp_path / "in.parquet"))
    return tables._env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "sales")


def forbid(monkeypatch: pytest.MonkeyPatch, *methods: tuple[type, str]) -> None:
    for owner, name in methods:
        monkeypatch.setattr(owner, name, lambda *_: pytest.fail("rows were looked at"))


def test_columns_of_a_stream_are_columns_of_its_table(tables, tmp_path, monkeypatch):
    forbid(monkeypatch, (FromValues, "records"), (ToRows, "_rows"))
    table = tables.from_data_stream(sales(tables, tmp_path))
    tables.create_temporary_view("sales", table)
    query = tables.sql_query("SELECT shop, `sum` * 2 AS twice, `day` FROM sales WHERE `sum` > 0")
    with tables.to_data_stream(query).execute_and_collect() as results:
        assert list(results) == [Row(shop=shop, twice=2 * total, day=day) for shop, total, day in ROWS if total]


def test_metadata_is_the_event_time_of_the_columns(tables, tmp_path, monkeypatch):
    stream = sales(tables, tmp_path, None, at=[1500, 3000]).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_field("at")
    )
    forbid(monkeypatch, (FromValues, "records"))
    stream._type = Types.ROW_NAMED(["at"], [Types.LONG()])
    schema = Schema.new_builder().column_by_metadata("rowtime", "TIMESTAMP(3)").build()
    with tables.to_data_stream(tables.from_data_stream(stream, schema)).execute_and_collect() as results:
        found = list(results)
    start = dt.datetime(1970, 1, 1)
    assert [row["rowtime"] - start for row in found] == [dt.timedelta(milliseconds=millis) for millis in (1500, 3000)]


@pytest.mark.parametrize(
    ("declared", "value"),
    [(Types.FLOAT(), 0.5), (Types.BIG_DEC(), Decimal("1.5")), (Types.LIST(Types.LONG()), [1, 2])],
)
def test_other_types_go_by_way_of_rows(tables, tmp_path, declared, value):
    stream = sales(tables, tmp_path, Types.ROW_NAMED(["v"], [declared]), v=pa.array([value], _ARROW.get(type(value))))
    with tables.to_data_stream(tables.from_data_stream(stream)).execute_and_collect() as results:
        (row,) = results
    assert row["v"] == value


_ARROW = {float: pa.float32()}


def test_a_query_over_files_makes_no_rows(tables, tmp_path, monkeypatch):
    parquet.write_table(pa.table({"shop": ["a", "b"], "total": [1, 2]}), tmp_path / "in.parquet")
    forbid(monkeypatch, (FromValues, "records"), (ToRows, "_rows"), (Projection, "rows"))
    for name, path in (("sales", "in.parquet"), ("kept", "out")):
        tables.execute_sql(
            f"CREATE TABLE {name} (shop STRING, total BIGINT) "
            f"WITH ('connector'='filesystem', 'path'='{tmp_path / path}', 'format'='parquet')"
        )
    tables.execute_sql("INSERT INTO kept SELECT shop, total + 1 FROM sales WHERE total > 1").wait()
    assert parquet.read_table(tmp_path / "out").to_pylist() == [{"shop": "b", "total": 3}]
