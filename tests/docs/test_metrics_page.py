"""The pages about metrics: options and names are those of the code."""

import re
from pathlib import Path

from penstock.common import Configuration, Duration, Time, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.connectors.kafka.reader_metrics import ReaderMetrics
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.file_system import FileSource, StreamFormat
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.engine.job.job_record import JobRecord
from penstock.engine.observe.system_metrics import TASK_METRICS
from penstock.engine.operators.sinks.sink_metrics import SinkMetrics
from penstock.metrics import MetricGroup
from penstock.metrics.scopes import ScopeFormats
from penstock.service.options.metric_options import OPTIONS
from penstock.service.reporters.job_metrics import job_metrics
from penstock.service.reporters.record_samples import samples_of
from penstock.service.rest.answers.metrics import cluster_metrics
from penstock.testing import in_process
from tests.rest import scripted_jobs
from tests.waiting import until

DOCS = Path(__file__).parents[2] / "docs"
SECTION = (DOCS / "configuration.md").read_text().partition("### Metrics\n")[2].partition("\n### ")[0]


def code(cell):
    return re.findall(r"`([^`]+)`", cell)


def test_the_options_are_those_of_the_code():
    rows = [line.strip("|").split("|") for line in SECTION.splitlines() if line.startswith("| `")]
    listed = [(code(name)[0], tuple(code(others)), code(default)) for name, others, default, _ in rows]
    assert listed == [(option.name, option.others, [option.default]) for option in OPTIONS]


# --- the table of names ---
TABLE = (DOCS / "metrics.md").read_text().partition("| metric | of | here | notes |\n")[2]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE.splitlines() if line.startswith("| `")]


class Slow(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        # Every third record is late.
        return 1000 * (value if value % 3 else value // 2)


def measured(folder) -> JobRecord:
    """A job with an event-time source, state, windows, latency markers and checkpoints, while it runs."""
    options = {
        "metrics.latency.interval": "1 ms",
        "state.backend.type": "rocksdb",
        "state.backend.rocksdb.metrics.estimate-num-keys": "true",
        "execution.checkpointing.interval": "20 ms",
        "pipeline.auto-watermark-interval": "5 ms",
        "execution.checkpointing.dir": folder.as_uri(),
    }
    with in_process(epoch_records=50):
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(options))
        env.set_parallelism(2)
        # Either slot may have read the whole file.
        times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Slow())
        times = times.with_idleness(Duration.of_millis(300))
        (folder / "numbers").write_text("".join(f"{number}\n" for number in range(1, 2000)))
        lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(folder / "numbers"))
        source = lines.monitor_continuously(Duration.of_millis(20)).build()
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").uid("lines").map(int)
        numbers = numbers.assign_timestamps_and_watermarks(times).uid("times")
        windows = numbers.key_by(lambda n: n % 5).window(TumblingEventTimeWindows.of(Time.seconds(1)))
        windows.reduce(lambda a, b: a + b).uid("windows").filter(lambda n: n < 0).print().uid("out")
        job = env.execute_async("measured")._job
        try:
            wanted = {"lastCheckpointStateSize", "watermarkLag", "currentEmitEventTimeLag"}
            until(lambda: wanted <= operator_names(job.record()), told=lambda: f"{job.record()}")
            until(lambda: any("rocksdb.estimate-num-keys" in slot.usage for slot in job.record().slots))
            return job.record()
        finally:
            job.cancel()


def operator_names(record) -> set[str]:
    return {name for slot in record.slots for one in slot.operators.values() for name in one}


def produced(record) -> set[str]:
    """Every name under which something is measured."""
    connectors = MetricGroup()
    SinkMetrics(connectors, lambda: 0)
    ReaderMetrics(connectors, dict).add([("*", 0)])
    samples = {sample.name for sample in samples_of(record, ScopeFormats.from_configuration({}))}
    full = [name.replace(".partition.0.", ".partition.*.") for name in connectors.described]
    figures = {name for slot in record.slots for name in slot.usage} | set(record.usage)
    rocksdb = {"rocksdb.*"} if any(name.startswith("rocksdb.") for name in figures) else set()
    return samples | set(full) | figures | set(cluster_metrics(0, [], {})) | rocksdb


def test_the_table_says_what_is_measured(tmp_path):
    found = produced(measured(tmp_path))
    said = {code(name)[0]: (here, notes) for name, _, here, notes in ROWS}
    assert len(said) == len(ROWS) > 90
    assert [name for name, (here, _) in said.items() if here == "yes" and name not in found] == []
    assert [name for name, (here, _) in said.items() if here == "no" and name in found] == []
    assert [name for name, (here, notes) in said.items() if here != "yes" and not (here == "no" and notes)] == []


def test_nothing_is_measured_that_the_table_does_not_name(tmp_path):
    unknown = operator_names(measured(tmp_path)) | set(TASK_METRICS) | set(job_metrics(scripted_jobs.job()))
    said = {code(name)[0] for name, *_ in ROWS}
    # One status stands for all of them.
    assert {name for name in unknown - said if not re.fullmatch(r"[a-z]+(TimeTotal|State)", name)} == set()
