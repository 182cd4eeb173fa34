"""Streams of columns: they stay columns as far as they can, and whoever wants rows gets the same rows as ever."""

import subprocess
import sys
from collections import Counter

import pyarrow as pa
import pytest

from penstock.common import Duration, Row, Types, WatermarkStrategy
from penstock.datastream import OutputTag, ProcessFunction
from penstock.engine.operators.functions.columnar_operator import ColumnsOperator
from penstock.engine.operators.operator import Operator
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import Chunk
from penstock.errors import JobFailed
from penstock.testing import ManualClock
from tests.unit.runtime.columnar_programs import (
    READING,
    WARM,
    BatchSource,
    Forms,
    Total,
    readings,
    totals,
    warm_in_columns,
    warm_readings,
    warm_rows,
)

COUNT = 120


def last_of_each(results):
    return {result[0]: result[1:3] for result in results}


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("epoch_records", [1, 3, None])
def test_columns_to_an_exchange_and_rows_behind_it(run, epoch_records, declared):
    got = run(
        lambda env: warm_readings(env, COUNT, declared).key_by("sensor").process(Total()), epoch_records=epoch_records
    )
    assert got == totals(COUNT)


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("parallelism", [2, 3])
def test_several_subtasks(run, parallelism, mode):
    got = run(
        lambda env: warm_readings(env, COUNT).key_by("sensor").process(Total()), parallelism=parallelism, mode=mode
    )
    assert len(got) == len(totals(COUNT))
    assert last_of_each(sorted(got)) == last_of_each(totals(COUNT))
    assert Counter(timestamp for *_, timestamp in got) == Counter(timestamp for *_, timestamp in totals(COUNT))


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize(
    ("connect", "form"),
    [
        (lambda stream: stream, "columns"),
        (lambda stream: stream.rebalance(), "columns"),
        (lambda stream: stream.shuffle(), "columns"),
        (lambda stream: stream.broadcast(), "columns"),
        (lambda stream: stream.global_(), "columns"),
        (lambda stream: stream.key_by("sensor"), "columns"),
        (lambda stream: stream.key_by(0), "columns"),
        (lambda stream: stream.map(lambda row: row), "values"),
        (lambda stream: stream.assign_timestamps_and_watermarks(WatermarkStrategy.no_watermarks()), "columns"),
        (
            lambda stream: stream.assign_timestamps_and_watermarks(
                WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2))
            ),
            "columns",
        ),
    ],
)
def test_where_columns_stay_columns(run, connect, form, parallelism):
    got = run(
        lambda env: connect(warm_readings(env, COUNT)).apply_operator("Forms", Forms(), None), parallelism=parallelism
    )
    assert set(got) == {form}


@pytest.mark.parametrize(
    "connect",
    [
        lambda stream: stream.key_by(lambda row: row["sensor"]),
        lambda stream: stream.partition_custom(lambda key, width: 0, lambda row: row["sensor"]),
    ],
)
def test_a_key_that_is_no_column_makes_rows_between_subtasks(run, connect):
    def build(env):
        return connect(warm_readings(env, COUNT)).apply_operator("Forms", Forms(), None)

    assert set(run(build, parallelism=2)) == {"values"}
    assert set(run(build, parallelism=1)) == {"columns"}  # nothing is exchanged, the key is only checked


def test_both_forms_in_one_stream(run):
    def build(env):
        rows = env.from_collection(warm_rows(readings(COUNT)), type_info=WARM)
        return warm_readings(env, COUNT).union(rows).key_by("sensor").process(Total())

    got = run(build, parallelism=2)
    twice = {sensor: 2 * count for sensor, (count, _) in last_of_each(totals(COUNT)).items()}
    assert Counter(sensor for sensor, *_ in got) == Counter(twice)


def test_values_become_columns_where_their_type_is_declared(run):
    def build(env):
        return env.from_collection(readings(30), type_info=READING).apply_operator(
            "Warm", ColumnsOperator(warm_in_columns, READING), WARM
        )

    assert run(build) == warm_rows(readings(30))


def test_values_of_no_declared_type_do_not_become_columns(run):
    with pytest.raises(
        JobFailed,
        match=r"Warm .*only records declared as ROW or ROW_NAMED can become columns, "
        "and nothing is",
    ):
        run(lambda env: env.from_collection(readings(3)).apply_operator("Warm", ColumnsOperator(warm_in_columns), None))


def test_rows_have_the_declared_form(run):
    class Declared(Operator):
        def records(self, values, timestamps):
            batch = pa.RecordBatch.from_pydict({"sensor": ["a"], "celsius": pa.array([1], pa.int32())})
            self.emit_chunk(Chunk.of(Columns(batch)))

    def build(declared):
        return lambda env: env.from_collection([0]).apply_operator("Declared", Declared(declared), declared)

    long = Types.ROW_NAMED(["sensor", "celsius"], [Types.STRING(), Types.LONG()])
    assert run(build(None)) == run(build(long)) == [Row(sensor="a", celsius=1)]
    assert run(build(Types.TUPLE([Types.STRING(), Types.INT()]))) == [("a", 1)]
    with pytest.raises(JobFailed, match="Declared"):
        run(build(Types.ROW_NAMED(["sensor", "celsius"], [Types.STRING(), Types.STRING()])))


def test_a_function_on_columns_that_fails_is_named(run):
    def broken(columns):
        raise KeyError("fahrenheit")

    with pytest.raises(JobFailed, match=r"Broken .* failed: KeyError: 'fahrenheit'"):
        run(
            lambda env: env._source("Batches", BatchSource(9), READING).apply_operator(
                "Broken", ColumnsOperator(broken), None
            )
        )


def test_event_time_of_columns(run):
    class Times(ProcessFunction):
        def process_element(self, value, ctx):
            yield ctx.timestamp(), ctx.timer_service().current_watermark()

    def build(env):
        source = env._source("Batches", BatchSource(COUNT), READING)
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2))
        return source.assign_timestamps_and_watermarks(strategy).process(Times())

    got = run(build, epoch_records=7, clock=ManualClock(tick=300))
    assert [timestamp for timestamp, _ in got] == [n * 1000 for n in range(COUNT)]
    assert max(watermark for _, watermark in got) > 0
    assert all(timestamp > watermark for timestamp, watermark in got)


def test_several_readers_of_one_stream_share_its_rows(run):
    tag = OutputTag("rows")

    class Identity(Operator):
        def chunk(self, chunk):
            self.context.side_outputs[tag.tag_id].chunk(chunk)
            self.emit([id(chunk.values)], None)

    class Ids(Operator):
        def records(self, values, timestamps):
            self.emit([id(values)], None)

    def build(env):
        stream = env._source("Batches", BatchSource(5), None).apply_operator("Identity", Identity(), None)
        return stream.union(stream.get_side_output(tag).apply_operator("Ids", Ids(), None))

    assert len(set(run(build))) == 1


def test_arrow_is_not_imported_before_there_are_columns():
    program = (
        "import sys\n"
        "from penstock.testing import in_process\n"
        "from penstock.datastream import StreamExecutionEnvironment\n"
        "with in_process():\n"
        "    env = StreamExecutionEnvironment().set_parallelism(2)\n"
        "    got = list(env.from_collection([(1, 2)] * 9).key_by(0).reduce(lambda a, b: a).execute_and_collect())\n"
        "assert len(got) == 9 and 'pyarrow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=240)
