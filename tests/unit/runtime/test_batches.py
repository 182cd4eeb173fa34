"""map_batches and filter_batches: over columns and over rows of a declared type, with the same results."""

from itertools import count

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.common import Row, Types
from penstock.datastream import FilterBatchesFunction, MapBatchesFunction, ProcessFunction
from penstock.errors import JobFailed
from penstock.formats.columnar import Projection
from tests.unit.runtime.columnar_programs import READING, WARM, BatchSource, readings, warm_rows

COUNT = 40
SECOND = pa.array([1], pa.duration("s"))


def in_columns(env):
    return env._source("Batches", BatchSource(COUNT), READING)


def in_rows(env):
    return in_columns(env).map(lambda row: row, READING)


def undeclared(env):
    return env._source("Batches", BatchSource(COUNT), None)


def fahrenheit(batch):
    warm = batch.filter(pc.greater(batch["celsius"], 4.0))
    heat = pc.add(pc.multiply(warm["celsius"], 1.8), 32.0)
    return pa.RecordBatch.from_arrays([warm["sensor"], heat], ["sensor", "fahrenheit"])


def in_pandas(frame):
    warm = frame[frame.celsius > 4.0]
    return pd.DataFrame({"sensor": warm.sensor, "fahrenheit": warm.celsius * 1.8 + 32.0})


class Times(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


sources = pytest.mark.parametrize("source", [in_columns, in_rows, undeclared])


@sources
@pytest.mark.parametrize("declared", [WARM, None])
@pytest.mark.parametrize(
    ("function", "as_pandas"),
    [
        (fahrenheit, False),
        (in_pandas, True),
        (lambda batch: pa.Table.from_batches([fahrenheit(batch)]), False),
        (lambda batch: (fahrenheit(batch.slice(i, 1)) for i in range(batch.num_rows)), False),
        (lambda batch: [None, in_pandas(batch.to_pandas())], False),
    ],
)
def test_results(run, source, function, as_pandas, declared):
    got = run(lambda env: source(env).map_batches(function, declared, as_pandas=as_pandas))
    assert got == warm_rows(readings(COUNT))


@sources
def test_a_batch_has_the_declared_types(run, source):
    def schema(batch):
        return pa.RecordBatch.from_pydict({"found": [str(batch.schema.field("n").type)]})

    def narrow(batch):
        return pa.RecordBatch.from_arrays([pa.array(range(batch.num_rows), pa.int8())], ["n"])

    wide = Types.ROW_NAMED(["n"], [Types.LONG()])
    stated = run(lambda env: source(env).map_batches(narrow, wide).map_batches(schema))
    from_rows = run(lambda env: source(env).map_batches(narrow, wide).map(lambda row: row, wide).map_batches(schema))
    assert set(stated) == set(from_rows) == {Row(found="int64")}


@sources
def test_rows_keep_their_timestamps_if_there_are_as_many(run, source):
    got = run(lambda env: source(env).map_batches(lambda batch: batch.select(["celsius"])).process(Times()))
    assert got == [(Row(celsius=float(n % 13)), n * 1000) for n in range(COUNT)]


def test_other_results_have_the_latest_timestamp_of_their_batch(run):
    got = run(lambda env: in_columns(env).map_batches(lambda batch: batch.slice(0, 1)).process(Times()))
    assert [time for _, time in got] == [min(n + 6, COUNT - 1) * 1000 for n in range(0, COUNT, 7)]


@sources
def test_timestamps_in_a_column(run, source):
    def every_third_later(batch):
        kept = batch.filter(pc.equal(pc.bit_wise_and(batch["at"], 1000), 0))
        return kept.set_column(kept.schema.get_field_index("at"), "at", pc.add(kept["at"], 5))

    got = run(lambda env: source(env).map_batches(every_third_later, READING, event_time="at").process(Times()))
    assert got == [(row, n * 1000 + 5) for n, row in enumerate(readings(COUNT)) if n * 1000 & 1000 == 0]


@sources
@pytest.mark.parametrize(
    ("function", "options"),
    [
        (lambda batch: pc.greater(batch["celsius"], 4.0), {}),
        (lambda frame: frame.celsius > 4.0, {"as_pandas": True}),
        (lambda batch: [value.as_py() > 4.0 or None for value in batch["celsius"]], {}),
        (lambda batch: pc.greater(batch["celsius"], pc.add(pc.multiply(batch["at"], 0), 4)), {"event_time": "at"}),
    ],
)
def test_filter_batches(run, source, function, options):
    got = run(lambda env: source(env).filter_batches(function, **options).process(Times()))
    assert got == [(row, n * 1000) for n, row in enumerate(readings(COUNT)) if row["celsius"] > 4.0]


def test_function_objects_are_opened(run):
    class Numbered(MapBatchesFunction):
        def open(self, runtime_context):
            self.numbers = count()

        def map_batches(self, batch):
            return pa.RecordBatch.from_pydict({"batch": [next(self.numbers)]})

    class Some(FilterBatchesFunction):
        def open(self, runtime_context):
            self.wanted = 1

        def filter_batches(self, batch):
            return pc.greater(batch["batch"], self.wanted)

    assert run(lambda env: in_columns(env).map_batches(Numbered()).filter_batches(Some())) == [
        Row(batch=number) for number in range(2, 6)
    ]


def test_on_a_keyed_stream_a_key_is_in_one_subtask(run):
    def sensors(batch):
        return pa.RecordBatch.from_pydict({"sensors": [sorted(set(batch["sensor"].to_pylist()))]})

    got = run(lambda env: in_columns(env).key_by("sensor").map_batches(sensors), parallelism=2)
    seen = {tuple(row["sensors"]) for row in got}
    assert len(seen) == 2 and sorted(sensor for part in seen for sensor in part) == [f"s{n}" for n in range(5)]


def test_columns_do_not_become_rows_between_batches(run, monkeypatch):
    monkeypatch.setattr(Projection, "rows", lambda *_: pytest.fail("rows were made"))

    def build(env):
        warm = in_columns(env).filter_batches(lambda batch: pc.greater(batch["celsius"], 4.0)).rebalance()
        return warm.map_batches(lambda batch: batch, READING).key_by("sensor").map_batches(lambda batch: None)

    assert run(build, parallelism=2) == []


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda batch: 5, r"returned 'int'; allowed are a pyarrow.RecordBatch"),
        (lambda batch: [fahrenheit(batch), 5], r"yielded 'int'; allowed are a pyarrow.RecordBatch"),
        (lambda batch: {"sensor": [1]}, r"returned 'dict'"),
        (lambda batch: batch, r"returned columns sensor, celsius; output_type has sensor, fahrenheit"),
        (lambda batch: batch.rename_columns(["fahrenheit", "sensor"]), r"column 'sensor': found double, wanted STRING"),
        (lambda batch: 1 / 0, r"ZeroDivisionError: division by zero"),
    ],
)
def test_errors_name_the_operator(run, function, message):
    with pytest.raises(JobFailed, match=rf"heat.*uid-of-heat.*{message}"):
        run(lambda env: in_columns(env).map_batches(function, WARM).name("heat").uid("uid-of-heat"))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda env: env.from_collection([1, 2], Types.INT()).map_batches(lambda batch: batch),
            "can become batches, and they are INT",
        ),
        (lambda env: env.from_collection([(1, 2)]).filter_batches(lambda batch: []), "and nothing is declared of them"),
        (lambda env: in_columns(env).filter_batches(lambda batch: [True]), "one boolean for each of 7 rows"),
        (lambda env: in_columns(env).filter_batches(lambda batch: batch["celsius"]), "7 of type double"),
        (lambda env: in_columns(env).map_batches(lambda b: b, event_time="sensor"), "is a column of the records"),
        (
            lambda env: in_columns(env).map_batches(lambda b: b.select(["sensor"]), event_time="at"),
            "event_time='at': the function returned no such column",
        ),
        (
            lambda env: in_columns(env).map_batches(lambda _: pa.RecordBatch.from_pydict({"a": SECOND})),
            "column 'a': found duration",
        ),
    ],
)
def test_bad_input(run, build, message):
    with pytest.raises(JobFailed, match=message):
        run(build)


@pytest.mark.parametrize("declared", [Types.INT(), Types.TUPLE([Types.INT()]), "row"])
def test_results_are_rows(env, declared):
    with pytest.raises(TypeError, match=r"output_type must be a RowTypeInfo such as Types\.ROW_NAMED"):
        in_columns(env).map_batches(lambda batch: batch, declared)


def test_a_class_is_no_function(env):
    with pytest.raises(TypeError, match=r"write Broken\(\)"):
        in_columns(env).map_batches(type("Broken", (MapBatchesFunction,), {}))
