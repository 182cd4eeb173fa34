"""What the engine measures of operators, slots and the driver reaches the record, REST's answers and samples."""

import pytest

from penstock.common.configuration import Configuration
from penstock.common.typeinfo import Types
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from penstock.datastream import OutputTag, StreamExecutionEnvironment
from penstock.datastream.functions import MapFunction, ProcessFunction
from penstock.metrics.scopes import ScopeFormats
from penstock.service.reporters.record_samples import samples_of
from penstock.service.rest.answers.metrics import latency_metrics, subtask_metrics
from penstock.testing import in_process

ODD = OutputTag("odd", Types.INT())


class Parting(ProcessFunction):
    def process_element(self, value, ctx):
        if value % 2:
            yield ODD, value
        else:
            yield value
            yield -value


class Sizing(MapFunction):
    def open(self, context):
        group = context.get_metrics_group().add_group("region", "north")
        self.sizes, self.seen = group.histogram("sizes"), group.meter("seen")

    def map(self, value):
        self.sizes.update(abs(value))
        self.seen.mark_event()
        return value


class Seconds(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value * 1000


def record_of_a_job(records=100, **options):
    with in_process(epoch_records=20):
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(options))
        env.set_parallelism(2)
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Seconds())
        numbers = env.from_collection(range(records)).uid("numbers")
        numbers = numbers.assign_timestamps_and_watermarks(strategy).uid("times")
        parted = numbers.process(Parting()).uid("parting")
        parted.key_by(lambda n: n % 5).map(Sizing()).uid("sizing").name("the sizes").print().uid("out")
        parted.get_side_output(ODD).print().uid("odd")
        job = env.execute_async("measured")._job
        job.result()
        return job.record()


@pytest.fixture(scope="module")
def record():
    return record_of_a_job(**{"metrics.latency.interval": "1 ms"})


def counts(record, uid):
    found = [slot.operators[uid] for slot in record.slots if uid in slot.operators]
    return sum(one["numRecordsIn"] for one in found), sum(one["numRecordsOut"] for one in found)


def test_records_are_counted_at_every_operator_also_inside_chains_and_behind_side_outputs(record):
    assert counts(record, "numbers") == (100, 100)
    assert counts(record, "times") == (100, 100)
    assert counts(record, "parting") == (100, 150)
    assert counts(record, "sizing") == (100, 100)
    assert counts(record, "out") == (100, 0)
    assert counts(record, "odd") == (50, 0)


def test_processes_say_what_they_use(record):
    for usage in (record.usage, *(slot.usage for slot in record.slots)):
        assert usage["Status.JVM.Memory.Heap.Used"] > 1 << 20
        assert usage["Status.JVM.CPU.Time"] > 0


def test_rest_shows_operators_by_name_and_histograms_as_flink_does(record):
    vertex = next(v for v in record.vertices if any(o.uid == "sizing" for o in v.operators))
    subtasks = subtask_metrics(record, vertex)
    assert sum(one["the_sizes.numRecordsIn"] for one in subtasks.values()) == 100
    shown = next(one for one in subtasks.values() if one["the_sizes.region.north.sizes_count"])
    assert 0 < shown["the_sizes.region.north.sizes_median"] <= shown["the_sizes.region.north.sizes_p99"] <= 98
    assert shown["the_sizes.region.north.seen"] > 0
    assert "the_sizes.busyTimeMsPerSecond" not in shown and "busyTimeMsPerSecond" in shown
    latencies = latency_metrics(record)
    assert any(name.startswith("latency.source_id.") and name.endswith(".latency_p99") for name in latencies)


def test_samples_have_them_all(record):
    samples = samples_of(record, ScopeFormats.from_configuration({}))
    names = {sample.name for sample in samples}
    assert {"numRecordsIn", "sizes", "seen", "latency", "Used"} <= names
    (sizes, *_) = [sample for sample in samples if sample.name == "sizes" and sample.values["count"]]
    assert sizes.kind == "histogram" and sizes.values["p999"] <= 98
    assert sizes.logical_scope == ("taskmanager", "job", "task", "operator", "region")
    (latency, *_) = [sample for sample in samples if sample.name == "latency"]
    assert latency.logical_scope[:3] == ("taskmanager", "job", "latency")
    assert {"<operator_id>", "<source_id>", "<operator_subtask_index>"} <= set(latency.variables)
    meters = [sample for sample in samples if sample.kind == "meter"]
    assert meters and all(set(sample.values) == {"count", "rate"} for sample in meters)
    keys = [(sample.logical_scope, sample.name, *sorted(sample.variables.items())) for sample in samples]
    assert len(keys) == len(set(keys)), "two metrics would be one to a reporter"


def test_what_is_switched_off_is_not_measured():
    record = record_of_a_job(**{"penstock.metrics.enabled": "false"})
    assert all(not slot.operators and not slot.usage for slot in record.slots)
    assert record.accumulators["sizing.region.north.sizes.count"] == 100
