"""Small files become large ones before anybody sees them."""

import pytest

from penstock.common import Encoder
from penstock.common.serialization import BulkWriter, BulkWriterFactory
from penstock.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    RollingPolicy,
    StreamFormat,
)
from penstock.errors import NotFound, UndecodableRecord
from tests.connectors.files.driving import KINDS, SinkJob, base_of, hidden, shown

TEXT = Encoder.simple_string_encoder()
CONCAT = FileCompactor.concat_file_compactor()


@pytest.fixture(params=KINDS)
def base(request, tmp_path):
    return base_of(request.param, tmp_path)


class ByFirstLetter(BucketAssigner):
    def get_bucket_id(self, element, context):
        return element[0]


def every(checkpoints, threads=1):
    builder = FileCompactStrategy.builder().enable_compaction_on_checkpoint(checkpoints)
    return builder.set_num_compact_threads(threads).build()


def builder(base, assigner=None):
    return (
        FileSink.for_row_format(base, TEXT)
        .with_bucket_assigner(assigner or BucketAssigner.base_path_bucket_assigner())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
    )


def one_by_one(job, values):
    for value in values:
        job.write(value)
        job.checkpoint_and_complete()


def test_after_so_many_checkpoints(base):
    job = SinkJob(builder(base).enable_compact(every(3), CONCAT).build())
    one_by_one(job, "ab")
    assert (shown(base), len(hidden(base))) == ({}, 2)
    one_by_one(job, "cd")
    ((name, data),) = shown(base).items()
    assert (data, name.startswith("compacted-part-")) == (b"a\nb\nc\n", True)
    assert len(hidden(base)) == 1
    job.checkpoint_and_complete(end=True)
    assert sorted(shown(base).values()) == [b"a\nb\nc\n", b"d\n"]
    assert all(name.startswith("compacted-") for name in shown(base))
    assert hidden(base) == []


def test_by_size(base):
    strategy = FileCompactStrategy.builder().set_size_threshold(5).build()
    job = SinkJob(builder(base).enable_compact(strategy, CONCAT).build())
    one_by_one(job, "abcd")
    assert list(shown(base).values()) == [b"a\nb\nc\n"]


def test_with_a_delimiter(base):
    compactor = FileCompactor.concat_file_compactor(b"--\n")
    job = SinkJob(builder(base).enable_compact(every(3), compactor).build())
    one_by_one(job, "abc")
    assert list(shown(base).values()) == [b"a\n--\nb\n--\nc\n"]


def test_each_as_it_is(base):
    job = SinkJob(builder(base).enable_compact(every(2), FileCompactor.identical_file_compactor()).build())
    one_by_one(job, "ab")
    assert sorted(shown(base).values()) == [b"a\n", b"b\n"]


@pytest.mark.parametrize("threads", [1, 3])
def test_folders_stay_apart(base, threads):
    job = SinkJob(builder(base, ByFirstLetter()).enable_compact(every(2, threads), CONCAT).build())
    job.write("a1", "b1", "c1")
    job.checkpoint_and_complete()
    job.write("a2", "c2")
    job.checkpoint_and_complete()
    found = {path.partition("/")[0]: data for path, data in shown(base).items()}
    assert found == {"a": b"a1\na2\n", "b": b"b1\n", "c": b"c1\nc2\n"}
    assert hidden(base) == []


def test_files_that_wait_survive_a_crash(base):
    job = SinkJob(builder(base).enable_compact(every(3), CONCAT).build(), parallelism=2)
    job.write("a", subtask=0)
    job.write("b", subtask=1)
    taken = job.checkpoint_and_complete()
    job.write("lost")
    job.crash(taken, parallelism=1)
    one_by_one(job, "c")
    job.checkpoint_and_complete()
    assert [sorted(data.split()) for data in shown(base).values()] == [[b"a", b"b", b"c"]]
    assert hidden(base) == []


def test_a_crash_before_the_checkpoint_of_the_compaction_is_complete(base):
    job = SinkJob(builder(base).enable_compact(every(2), CONCAT).build())
    job.write("a")
    taken = job.checkpoint_and_complete()
    job.write("b")
    job.checkpoint()
    job.crash(taken)
    one_by_one(job, "b")
    assert (list(shown(base).values()), hidden(base)) == ([b"a\nb\n"], [])


def test_a_crash_after_it_was_complete_and_before_anyone_heard(base):
    job = SinkJob(builder(base).enable_compact(every(2), CONCAT).build())
    one_by_one(job, "a")
    job.write("b")
    job.crash(job.checkpoint())
    assert (list(shown(base).values()), hidden(base)) == ([b"a\nb\n"], [])


def test_a_file_goes_on_while_others_wait(base):
    sink = builder(base).with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=4))
    job = SinkJob(sink.enable_compact(every(2), CONCAT).build())
    one_by_one(job, "abcde")
    job.checkpoint_and_complete(end=True)
    assert b"".join(data for _, data in sorted(shown(base).items(), key=lambda item: item[1])) == b"a\nb\nc\nd\ne\n"


def test_compaction_that_is_switched_off_shows_what_waits(base):
    job = SinkJob(builder(base).enable_compact(every(9), CONCAT).build())
    one_by_one(job, "a")
    taken = job.checkpoint_and_complete()
    job.sink = builder(base).enable_compact(every(9), CONCAT).disable_compact().build()
    job.crash(taken)
    job.checkpoint_and_complete()
    assert list(shown(base).values()) == [b"a\n"]


def test_a_second_job_leaves_the_files_of_the_first(base):
    job = SinkJob(builder(base).enable_compact(every(9), CONCAT).build())
    one_by_one(job, "ab")
    savepoint = job.checkpoint_and_complete()
    waiting = hidden(base)
    fork = SinkJob(job.sink, job_id="fork", checkpoint=savepoint)
    fork.checkpoint_and_complete(end=True)
    assert (list(shown(base).values()), hidden(base)) == ([b"a\nb\n"], waiting)
    job.checkpoint_and_complete(end=True)
    assert hidden(base) == []


def test_a_savepoint_waits_for_nothing_and_deletes_nothing(base):
    job = SinkJob(builder(base).enable_compact(every(9), CONCAT).build())
    one_by_one(job, "ab")
    early = job.checkpoint_and_complete()
    savepoint = job.checkpoint(savepoint=True)
    fork = SinkJob(job.sink, job_id="fork", checkpoint=savepoint)
    assert list(shown(base).values()) == [b"a\nb\n"]
    fork.checkpoint_and_complete(end=True)
    job.crash(early)
    job.write("c")
    job.checkpoint_and_complete(end=True)
    assert (sorted(shown(base).values()), hidden(base)) == ([b"a\nb\n", b"a\nb\nc\n"], [])


def test_after_a_savepoint_what_was_compacted_goes_with_the_next_checkpoint(base):
    job = SinkJob(builder(base).enable_compact(every(9), CONCAT).build())
    one_by_one(job, "ab")
    job.checkpoint(savepoint=True)
    assert len(hidden(base)) == 4  # two parts, the compacted file, and its mark
    job.checkpoint_and_complete()
    assert (list(shown(base).values()), hidden(base)) == ([b"a\nb\n"], [])


def test_a_file_that_is_gone_is_named(base):
    import fsspec

    job = SinkJob(builder(base).enable_compact(every(2), CONCAT).build())
    one_by_one(job, "a")
    (name,) = hidden(base)
    fs, root = fsspec.core.url_to_fs(base)
    fs.rm_file(f"{root}/{name}")
    job.write("b")
    with pytest.raises(NotFound, match="inprogress does not exist, or no longer"):
        job.checkpoint()


class Headed(BulkWriterFactory):
    """Lines below a heading, which a file has once."""

    def create(self, stream):
        return HeadedWriter(stream)


class HeadedWriter(BulkWriter):
    def __init__(self, stream):
        self._stream = stream
        stream.write(b"# heading\n")

    def add_element(self, element):
        self._stream.write(f"{element}\n".encode())

    def flush(self):
        self._stream.flush()

    def finish(self):
        self._stream.write(b"# end\n")


def bulk(base):
    return FileSink.for_bulk_format(base, Headed()).with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())


def test_record_by_record(base):
    compactor = FileCompactor.record_wise_file_compactor(StreamFormat.text_line_format())
    job = SinkJob(bulk(base).enable_compact(every(2), compactor).build())
    one_by_one(job, ["a", "b"])
    (data,) = shown(base).values()
    inner = b"# heading\na\n# end\n# heading\nb\n# end\n"  # the text format takes every line for a record
    assert data == b"# heading\n" + inner + b"# end\n"


def test_record_by_record_of_a_file_that_cannot_be_read(base):
    compactor = FileCompactor.record_wise_file_compactor(StreamFormat.text_line_format("ascii"))
    job = SinkJob(bulk(base).enable_compact(every(2), compactor).build())
    one_by_one(job, ["a"])
    job.write("ä")
    with pytest.raises(UndecodableRecord, match="cannot be read for compaction, line at byte 10"):
        job.checkpoint()


def test_bulk_files_are_not_put_together_byte_by_byte(base):
    with pytest.raises(ValueError, match="record_wise_file_compactor"):
        bulk(base).enable_compact(every(2), CONCAT)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: FileCompactStrategy.builder().build(), ValueError),
        (lambda: FileCompactStrategy.builder().enable_compaction_on_checkpoint(0), ValueError),
        (lambda: FileCompactStrategy.builder().set_size_threshold(-1), ValueError),
        (lambda: FileCompactStrategy.builder().set_num_compact_threads(0), ValueError),
        (lambda: FileCompactor.record_wise_file_compactor("text"), TypeError),
        (lambda: builder("/x").enable_compact(every(2), None), TypeError),
        (lambda: builder("/x").enable_compact(None, CONCAT), TypeError),
    ],
)
def test_what_makes_no_sense_is_said_at_once(call, error):
    with pytest.raises(error):
        call()
