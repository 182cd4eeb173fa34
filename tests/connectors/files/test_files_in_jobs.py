"""Files in whole jobs, in this process: from source to sink, over failures and restarts with other parallelism."""

import os
from collections import Counter

import pytest

from penstock.common import Configuration, Encoder, Row, Types, WatermarkStrategy
from penstock.datastream import OutputTag, StreamExecutionEnvironment
from penstock.datastream.connectors.base import BadRecords
from penstock.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileEnumeratorProvider,
    FileProcessingMode,
    FileSink,
    FileSource,
    RollingPolicy,
    StreamFormat,
    StreamingFileSink,
)
from penstock.datastream.formats.json import JsonLinesFormat
from penstock.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from penstock.errors import JobFailed, NotFound, UndecodableRecord
from penstock.testing import ManualClock, in_process, pause, scripted
from tests.connectors.files.driving import KINDS, base_of, hidden, lines, shown
from tests.recovery.conftest import Stage
from tests.recovery.test_rescale_matrix import STOPS
from tests.waiting import until

TEXT = Encoder.simple_string_encoder()
NO_TIME = WatermarkStrategy.no_watermarks()
ON_CHECKPOINT = RollingPolicy.on_checkpoint_rolling_policy()


@pytest.fixture
def env():
    with in_process(epoch_records=7):
        environment = StreamExecutionEnvironment.get_execution_environment()
        environment.set_parallelism(2)
        yield environment


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path / "stage", ManualClock(now=1_000_000, tick=4), epoch_records=20)


def reading(folder, split_bytes=50, format=None):
    pieces = FileEnumeratorProvider.default_splittable_file_enumerator(split_bytes)
    builder = FileSource.for_record_stream_format(format or StreamFormat.text_line_format(), str(folder))
    return builder.set_file_enumerator(pieces)


def writing(folder):
    flat = BucketAssigner.base_path_bucket_assigner()
    return FileSink.for_row_format(str(folder), TEXT).with_bucket_assigner(flat)


def numbers(folder, count, files=3):
    folder.mkdir(exist_ok=True)
    for index in range(files):
        (folder / f"f{index}").write_text("".join(f"{n}\n" for n in range(index, count, files)))


def test_from_files_to_files(env, tmp_path):
    numbers(tmp_path / "in", 300)
    stream = env.from_source(reading(tmp_path / "in").build(), NO_TIME, "files")
    stream.map(lambda line: int(line) * 2).sink_to(writing(tmp_path / "out").build())
    env.execute()
    assert Counter(lines(str(tmp_path / "out"))) == Counter(str(2 * n) for n in range(300))
    assert hidden(str(tmp_path / "out")) == []


def test_the_declared_type_decides_how_values_are_written(env, tmp_path):
    rows = env.from_collection([Row(1, "a")], Types.ROW([Types.INT(), Types.STRING()]))
    rows.sink_to(writing(tmp_path / "out").build())
    env.execute()
    assert lines(str(tmp_path / "out")) == ["+I[1, a]"]


def test_add_sink_takes_a_streaming_file_sink(env, tmp_path):
    flat = BucketAssigner.base_path_bucket_assigner()
    sink = StreamingFileSink.for_row_format(str(tmp_path / "out"), TEXT).with_bucket_assigner(flat).build()
    env.from_collection(["a", "b"]).add_sink(sink)
    env.execute()
    assert lines(str(tmp_path / "out")) == ["a", "b"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_that_loses_its_slots(stage, tmp_path, kind):
    numbers(tmp_path / "in", 400)
    out = base_of(kind, tmp_path)
    job = stage.run(copying(tmp_path / "in", out), 2, crashes=dict.fromkeys([5, 9, 10, 13], "after"))
    assert job.restarts() == 4
    assert Counter(lines(out)) == Counter(map(str, range(400)))
    assert hidden(out) == []


def copying(folder, out):
    policy = RollingPolicy.default_rolling_policy(part_size=100)

    def build(env):
        stream = env.from_source(reading(folder).build(), NO_TIME, "files").uid("files")
        stream.sink_to(writing(out).with_rolling_policy(policy).build()).uid("sink")

    return build


@pytest.mark.parametrize("stop", ["savepoint", "savepoint and cancel", "checkpoint"])
@pytest.mark.parametrize("parallelisms", [(2, 3, 1), (1, 4, 2)])
def test_another_parallelism(stage, tmp_path, stop, parallelisms):
    numbers(tmp_path / "in", 900)
    out, path = str(tmp_path / "out"), None
    build = copying(tmp_path / "in", out)
    for epoch, parallelism in zip((9, 4), parallelisms, strict=False):
        job = stage.start(build, parallelism, hold_at=epoch, execution_state__recovery_path=path)
        path = STOPS[stop](stage, job)
        assert len(set(lines(out))) == len(lines(out)) < 900
    stage.run(build, parallelisms[-1], execution_state__recovery_path=path)
    assert Counter(lines(out)) == Counter(map(str, range(900)))


def test_a_folder_that_another_job_writes_into_is_watched(tmp_path):
    """One job writes files, with failures; another finds them as they appear, and sees every record once."""
    between, out = tmp_path / "between", str(tmp_path / "out")
    numbers(tmp_path / "in", 200)
    with in_process(epoch_records=20):
        env = StreamExecutionEnvironment.get_execution_environment()
        env.enable_checkpointing(10)
        watched = reading(between).monitor_continuously(20).build()
        env.from_source(watched, NO_TIME, "watched").sink_to(writing(out).with_rolling_policy(ON_CHECKPOINT).build())
        client = env.execute_async()
        try:
            for first in (0, 200):
                numbers(tmp_path / "in", 200 + first)
                writer = StreamExecutionEnvironment.get_execution_environment()
                writer.from_source(reading(tmp_path / "in").build(), NO_TIME, "in").sink_to(
                    writing(between).with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=99)).build()
                )
                writer.execute()
            wanted = Counter(map(str, [*range(200), *range(400)]))
            until(lambda: Counter(lines(out)) == wanted)
        finally:
            client.cancel().result(60)
    assert Counter(lines(out)) == wanted


def test_read_file_reads_a_modified_file_again(tmp_path):
    folder, out = tmp_path / "in", str(tmp_path / "out")
    folder.mkdir()
    (folder / "a").write_text("1\n2\n")
    os.utime(folder / "a", (1, 1))
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        env.enable_checkpointing(20)
        watched = env.read_file(
            StreamFormat.text_line_format(), str(folder), FileProcessingMode.PROCESS_CONTINUOUSLY, 20
        )
        watched.sink_to(writing(out).with_rolling_policy(ON_CHECKPOINT).build())
        client = env.execute_async()
        try:
            until(lambda: Counter(lines(out)) == Counter("12"))
            (folder / ".a").write_text("1\n2\n3\n")
            (folder / ".a").replace(folder / "a")
            until(lambda: Counter(lines(out)) == Counter("12123"))
        finally:
            client.cancel().result(60)


def test_watching_goes_on_from_a_savepoint(tmp_path):
    """Files that were read before the savepoint are not read again, files that came in between are."""
    folder, out, savepoint = tmp_path / "in", str(tmp_path / "out"), None
    folder.mkdir()
    with in_process(epoch_records=20):
        for number in range(3):
            (folder / f"f{number}").write_text(f"{number}\n" * 30)
            env = StreamExecutionEnvironment.get_execution_environment()
            env.enable_checkpointing(20)
            env.set_parallelism(number + 1)
            if savepoint is not None:
                settings = Configuration()
                settings.set_string("execution.state-recovery.path", savepoint)
                env.configure(settings)
            watched = reading(folder).monitor_continuously(20).build()
            stream = env.from_source(watched, NO_TIME, "watched").uid("watched")
            stream.sink_to(writing(out).with_rolling_policy(ON_CHECKPOINT).build()).uid("out")
            client = env.execute_async()
            wanted = Counter({str(read): 30 for read in range(number + 1)})
            until(lambda wanted=wanted: Counter(lines(out)) == wanted)
            savepoint = client.stop_with_savepoint(False, str(tmp_path / f"savepoint-{number}")).result(60)
    assert Counter(lines(out)) == wanted


def test_a_file_is_closed_when_nothing_comes(stage, tmp_path):
    policy = RollingPolicy.default_rolling_policy(inactivity_interval=40)

    def build(env):
        stream = scripted(env, "a", "b", *[pause()] * 60, "c")
        stream.sink_to(writing(tmp_path / "out").with_rolling_policy(policy).with_bucket_check_interval(20).build())

    stage.run(build)
    assert sorted(shown(str(tmp_path / "out")).values()) == [b"a\nb\n", b"c\n"]


class TestWhatGoesWrong:
    def test_no_file(self, env, tmp_path):
        env.from_source(reading(tmp_path / "none").build(), NO_TIME, "files").print()
        with pytest.raises(NotFound, match=r"there is no file at file://.*/none"):
            env.execute()

    def test_a_bad_record_ends_the_job_and_names_its_place(self, env, tmp_path):
        (tmp_path / "a").write_bytes(b"ab\n\xff\n")
        env.from_source(reading(tmp_path).build(), NO_TIME, "lines").print()
        with pytest.raises(UndecodableRecord, match=r"the record at file://.*/a line at byte 3 cannot be decoded") as e:
            env.execute()
        assert isinstance(e.value, JobFailed)

    def test_bad_records_to_a_side_output(self, env, tmp_path):
        (tmp_path / "a").write_bytes(b"ab\n\xff\ncd\n")
        bad = OutputTag("bad")
        policy = BadRecords.to_side_output(bad)
        stream = env.from_source(reading(tmp_path).build(), NO_TIME, "lines", bad_records=policy)
        stream.get_side_output(bad).map(lambda record: record.position).sink_to(writing(tmp_path / "bad").build())
        stream.sink_to(writing(tmp_path / "good").build())
        env.execute()
        assert lines(str(tmp_path / "good")) == ["ab", "cd"]
        assert lines(str(tmp_path / "bad")) == [f"file://{tmp_path}/a line at byte 3"]


ROWS = Types.ROW_NAMED(["n", "name"], [Types.LONG(), Types.STRING()])


def test_parquet_there_and_back_compacted_record_by_record(stage, tmp_path):
    """Bulk files are closed at every checkpoint; what readers see is fewer and larger ones."""
    numbers(tmp_path / "in", 300)
    out = tmp_path / "out"
    every_three = FileCompactStrategy.builder().enable_compaction_on_checkpoint(3).build()
    compactor = FileCompactor.record_wise_file_compactor(ParquetColumnarRowInputFormat(ROWS))
    sink = (
        FileSink.for_bulk_format(str(out), ParquetBulkWriters.for_row_type(ROWS))
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .enable_compact(every_three, compactor)
        .build()
    )

    def write(env):
        stream = env.from_source(reading(tmp_path / "in").build(), NO_TIME, "lines")
        stream.map(lambda n: Row(int(n), f"name {n}"), ROWS).sink_to(sink)

    stage.run(write, 2, crashes={7: "after"})
    assert hidden(str(out)) == []
    assert all(name.startswith("compacted-") for name in shown(str(out)))

    def read(env):
        source = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(ROWS), str(out)).build()
        stream = env.from_source(source, NO_TIME, "parquet")
        stream.map(lambda row: f"{row[0]} {row[1]}").sink_to(writing(tmp_path / "text").build())

    stage.run(read)
    assert Counter(lines(str(tmp_path / "text"))) == Counter(f"{n} name {n}" for n in range(300))


# --- read_file ---
def test_read_file_reads_once_or_goes_on(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n{"n": 2}\n')
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
        assert list(env.read_file(JsonLinesFormat(), str(tmp_path)).execute_and_collect()) == [{"n": 1}, {"n": 2}]
        mode = FileProcessingMode.PROCESS_CONTINUOUSLY
        with env.read_file(JsonLinesFormat(), str(tmp_path), mode, 50).execute_and_collect() as results:
            found = [next(results), next(results)]
            (tmp_path / ".b").write_text('{"n": 3}\n')
            (tmp_path / ".b").rename(tmp_path / "b.jsonl")
            found.append(next(results))
    assert found == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_read_file_wants_a_format_and_an_interval_to_watch_in():
    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(TypeError, match="FileFormat"):
        env.read_file("json", "somewhere")
    with pytest.raises(ValueError, match="at least 1 ms, not -1"):
        env.read_file(JsonLinesFormat(), "somewhere", FileProcessingMode.PROCESS_CONTINUOUSLY)
