"""Latency markers travel with the records, through chains and exchanges, and leave histograms behind."""

from types import SimpleNamespace

import pytest

from penstock.api.latency_marker import LatencyMarker
from penstock.common import Row, Types
from penstock.common.composite_types import RowTypeInfo
from penstock.common.configuration import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import MapFunction
from penstock.engine.exchange.frames import deliver
from penstock.engine.exchange.writers import Owner, SingleWriter
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import Chunk
from penstock.engine.records.latency import Latencies, Markers
from penstock.errors import JobFailed
from penstock.graph.plan import operator_id
from penstock.metrics import MetricGroup
from penstock.testing import in_process


class Listening(MapFunction):
    """Counts the markers that come by."""

    def open(self, context):
        self.seen = context.get_metrics_group().counter("markers")
        self.sources = set()
        context.get_metrics_group().gauge("sources", lambda: len(self.sources))

    def map(self, value):
        return value

    def process_latency_marker(self, marker):
        assert marker.get_marked_time() > 1_600_000_000_000
        self.sources.add((marker.get_vertex_id(), marker.get_subtask_index()))
        self.seen.inc()


def run(granularity, parallelism=2):
    with in_process(epoch_records=50):
        options = {"metrics.latency.interval": "1 ms", "metrics.latency.granularity": granularity}
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(options))
        env.set_parallelism(parallelism)
        stream = env.from_collection(range(4000)).uid("numbers")
        stream.map(Listening()).uid("near").key_by(lambda n: n % 7).map(Listening()).uid("far").print()
        handle = env.execute_async("latencies")._job
        handle.result()
        return handle.record()


def latencies(record):
    return {
        name.removeprefix(".latency.").removesuffix(".latency.count"): value
        for slot in record.slots
        for name, value in slot.metrics.items()
        if name.startswith(".latency.") and name.endswith(".count")
    }


@pytest.mark.parametrize("granularity", ["single", "operator", "subtask"])
def test_every_operator_has_histograms_of_the_markers_that_came_to_it(granularity):
    record = run(granularity)
    found = latencies(record)
    near, far, numbers = operator_id("near"), operator_id("far"), operator_id("numbers")
    of_near = {name: count for name, count in found.items() if f"operator_id.{near}" in name}
    of_far = {name: count for name, count in found.items() if f"operator_id.{far}" in name}
    assert of_near and of_far
    source = {
        "single": "",
        "operator": f"source_id.{numbers}.",
        "subtask": f"source_id.{numbers}.source_subtask_index.0.",
    }
    assert any(name == f"{source[granularity]}operator_id.{near}.operator_subtask_index.0" for name in of_near)
    # Each marker goes to one subtask behind an exchange, so none is lost and none is doubled.
    assert sum(of_near.values()) == sum(of_far.values()) > 0
    assert sum(record.accumulators[f"{uid}.markers"] for uid in ("near", "far")) == 2 * sum(of_near.values())


def test_markers_of_an_exchange_go_to_all_targets_in_turn():
    found = latencies(run("operator"))
    subtasks = {name.rpartition(".")[2] for name in found if f"operator_id.{operator_id('far')}" in name}
    assert subtasks == {"0", "1"}


def test_a_source_sends_markers_at_its_interval_whatever_its_clock_does():
    now = [1000.0]
    markers = Markers("numbers", 3, 100, lambda: now[0])
    assert markers.due() == LatencyMarker(1000.0, operator_id("numbers"), 3)
    now[0] = 1099.0
    assert markers.due() is None
    now[0] = 1100.0
    assert markers.due() is not None
    now[0] = 5.0  # set back
    assert markers.due() is not None


def test_a_clock_that_is_behind_gives_no_negative_latency():
    group = MetricGroup()
    Latencies(group, "sink", 0, "single", clock=lambda: 50.0).record(LatencyMarker(90.0, "s", 0))
    (histogram,) = group.changes({}).values()
    assert (histogram.min, histogram.max) == (0.0, 0.0)


def test_markers_keep_their_place_between_chunks_of_columns():
    """What the source of columns sends behind a marker comes behind it, whatever the exchange does."""
    rows = RowTypeInfo([Types.LONG()], ["n"])
    writer = SingleWriter(Owner("sink", "sink"), 0, [0])
    marker = LatencyMarker(1.0, "source", 0)
    for first in (0, 10):
        writer.chunk(Chunk.of(Columns.of_rows([Row(n=n) for n in range(first, first + 10)], None, rows)))
        if not first:
            writer.marker(marker)
    seen: list[object] = []
    receiver = SimpleNamespace(chunk=lambda chunk: seen.extend(row[0] for row in chunk.values), marker=seen.append)
    for frame in writer.take()[0]:
        deliver(frame, receiver)
    assert seen == [*range(10), marker, *range(10, 20)]


def test_a_function_that_fails_at_a_marker_is_named():
    class Failing(Listening):
        def process_latency_marker(self, marker):
            raise ValueError("no marker, please")

    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        env.get_config().set_latency_tracking_interval(1)
        env.set_parallelism(1)
        env.from_collection(range(10)).map(Failing()).name("listening").print()
        with pytest.raises(JobFailed, match=r"listening.*(\n.*)*no marker, please"):
            env.execute()
