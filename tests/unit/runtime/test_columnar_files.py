"""From columnar files through a job into columnar files, without a row; and event time from a column."""

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import feather, orc, parquet

from penstock.common import Instant, RestartStrategies, Row, Time, Types, WatermarkStrategy
from penstock.datastream import MapBatchesFunction, ProcessFunction, StreamExecutionEnvironment
from penstock.datastream.connectors.file_system import BucketAssigner, FileSink, FileSource
from penstock.datastream.formats.arrow import ArrowBulkWriters, ArrowColumnarRowInputFormat
from penstock.datastream.formats.orc import OrcBulkWriters, OrcColumnarRowInputFormat
from penstock.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.errors import JobFailed
from penstock.formats.columnar import Projection
from penstock.testing import ManualClock, in_process
from tests.unit.runtime.columnar_programs import Forms

SALE = Types.ROW_NAMED(["shop", "at", "sum"], [Types.STRING(), Types.LONG(), Types.LONG()])
TABLE = pa.table(
    {
        "shop": [f"s{n % 5}" for n in range(300)],
        "at": pa.array([n * 10 for n in range(300)], pa.int32()),
        "sum": [n % 7 for n in range(300)],
    }
)
AT = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_field("at")
KINDS = {
    "parquet": (ParquetColumnarRowInputFormat, ParquetBulkWriters, parquet.write_table, parquet.read_table),
    "arrow": (ArrowColumnarRowInputFormat, ArrowBulkWriters, feather.write_feather, feather.read_table),
    "orc": (OrcColumnarRowInputFormat, OrcBulkWriters, orc.write_table, orc.read_table),
}


def sales(env, tmp_path, kind="parquet", strategy=AT, declared=SALE, table=TABLE):
    format, _, write, _ = KINDS[kind]
    write(table, str(tmp_path / f"in.{kind}"))
    source = FileSource.for_bulk_file_format(format(declared), str(tmp_path / f"in.{kind}")).build()
    return env.from_source(source, strategy, "sales")


@pytest.mark.parametrize("kind", list(KINDS))
def test_no_rows_on_the_way_from_file_to_file(env, tmp_path, kind, monkeypatch):
    monkeypatch.setattr(Projection, "rows", lambda *_: pytest.fail("rows were made"))
    _, writers, _, read = KINDS[kind]
    sink = FileSink.for_bulk_format(str(tmp_path / "out"), writers.for_row_type(SALE))
    env.set_parallelism(2)
    (
        sales(env, tmp_path, kind)
        .filter_batches(lambda batch: pc.greater(batch["sum"], 2))
        .key_by("shop")
        .map_batches(lambda batch: batch, SALE)
        .sink_to(sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build())
    )
    env.execute()
    found = [row for file in (tmp_path / "out").glob("part-*") for row in read(str(file)).to_pylist()]
    assert sorted(found, key=lambda row: row["at"]) == [row for row in TABLE.to_pylist() if row["sum"] > 2]


@pytest.mark.parametrize("declared", [SALE, None])
@pytest.mark.parametrize("kind", list(KINDS))
def test_whoever_wants_rows_gets_rows(run, tmp_path, kind, declared):
    got = run(lambda env: sales(env, tmp_path, kind, declared=declared).map(lambda row: row), epoch_records=7)
    assert got == [Row(**row) for row in TABLE.to_pylist()]


@pytest.mark.parametrize("strategy", [AT, WatermarkStrategy.no_watermarks()])
def test_columns_leave_the_source(run, tmp_path, strategy):
    got = run(lambda env: sales(env, tmp_path, strategy=strategy).apply_operator("Forms", Forms(), None))
    assert set(got) == {"columns"}


@pytest.mark.parametrize("window", [False, True])
def test_totals_are_those_of_rows(run, tmp_path, window):
    def build(env, change):
        keyed = change(sales(env, tmp_path)).key_by("shop")
        return (keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(400))) if window else keyed).sum("sum")

    in_columns = run(lambda env: build(env, lambda stream: stream), parallelism=2, epoch_records=50)
    in_rows = run(lambda env: build(env, lambda stream: stream.map(lambda row: row, SALE)), parallelism=2)
    assert sorted(map(repr, in_columns)) == sorted(map(repr, in_rows))
    assert len(in_columns) == (40 if window else 300)


class FailsOnce(MapBatchesFunction):
    """Fails in the middle of the stream, in the first attempt."""

    def open(self, runtime_context):
        self.attempt = runtime_context.get_attempt_number()

    def map_batches(self, batch):
        if self.attempt == 0 and batch["at"][0].as_py() >= 2000:
            raise ValueError("once")
        return batch


@pytest.mark.parametrize("window", [None, TumblingEventTimeWindows.of(Time.milliseconds(400))])
def test_a_failure_changes_nothing(tmp_path, window):
    with in_process(epoch_records=20, clock=ManualClock(tick=10)):
        env = StreamExecutionEnvironment().set_parallelism(2)
        env.enable_checkpointing(20)
        env.get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "checkpoints"))
        env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 1))
        keyed = sales(env, tmp_path).map_batches(FailsOnce(), SALE).key_by("shop")
        sink = FileSink.for_bulk_format(str(tmp_path / "out"), ParquetBulkWriters.for_row_type(SALE))
        (keyed if window is None else keyed.window(window)).sum("sum").sink_to(
            sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
        )
        env.execute()
    found = [row for file in (tmp_path / "out").glob("part-*") for row in parquet.read_table(file).to_pylist()]
    assert sorted(found, key=repr) == sorted(totals(0 if window is None else 400), key=repr)
    assert len(list((tmp_path / "out").glob("part-*"))) > 2, "checkpoints came before and after the failure"


def totals(window):
    """What the sums of the table come to, row by row or for each window."""
    held, found = {}, []
    for row in TABLE.to_pylist():
        pane = (row["shop"], row["at"] // window if window else 0)
        before = held.get(pane, {**row, "sum": 0})
        held[pane] = {**before, "sum": before["sum"] + row["sum"]}
        found.append(held[pane])
    return list(held.values()) if window else found


class Stamped(ProcessFunction):
    def process_element(self, value, ctx):
        yield ctx.timestamp()


MOMENTS = [dt.datetime(1969, 12, 31, 23, 59, 59, 999_499), dt.datetime(2024, 5, 1, 12, 0, 0, 1_999)]
MILLIS = [-1, 1_714_564_800_001]
INSTANTS = [Instant(-1, 999_499_000), Instant(1_714_564_800, 1_999_000)]


@pytest.mark.parametrize("in_rows", [True, False])
@pytest.mark.parametrize(
    ("column", "declared"),
    [
        (pa.array(MILLIS, pa.int64()), Types.LONG()),
        (pa.array(MOMENTS, pa.timestamp("us")), Types.SQL_TIMESTAMP()),
        (pa.array(MOMENTS, pa.timestamp("ns", "UTC")), Types.INSTANT()),
        (pa.array(MOMENTS, pa.timestamp("us", "UTC")), None),
    ],
)
def test_event_time_from_a_field(run, tmp_path, column, declared, in_rows):
    typed = None if declared is None else Types.ROW_NAMED(["at"], [declared])

    def build(env):
        none = WatermarkStrategy.no_watermarks()
        stream = sales(env, tmp_path, strategy=none, declared=typed, table=pa.table({"at": column}))
        stream = stream.map(lambda row: row, typed) if in_rows else stream
        return stream.assign_timestamps_and_watermarks(AT).process(Stamped())

    assert run(build) == MILLIS


@pytest.mark.parametrize(
    ("records", "field"),
    [([(7, "a")], 0), ([{"at": 7}], "at"), ([Row(at=INSTANTS[0])], "at"), ([dt.datetime(1970, 1, 1)], "year")],
)
def test_a_field_of_any_record(run, records, field):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_field(field)
    got = run(lambda env: env.from_collection(records).assign_timestamps_and_watermarks(strategy).process(Stamped()))
    assert got == [{"at": 7, 0: 7, "year": 1970}[field] if not isinstance(records[0], Row) else -1]


def test_a_moment_that_is_missing_names_its_record(run, tmp_path):
    table = pa.table({"at": pa.array([1, None]), "shop": ["a", "b"]})
    with pytest.raises(JobFailed, match=r"(?s)returned None, not milliseconds.*at=None, shop='b'"):
        run(lambda env: sales(env, tmp_path, declared=None, table=table).map(lambda row: row))


@pytest.mark.parametrize("field", [True, None, 1.5])
def test_a_field_is_a_position_or_a_name(field):
    with pytest.raises(TypeError, match="the argument field must be a whole number or a string, not"):
        WatermarkStrategy.no_watermarks().with_timestamp_field(field)
