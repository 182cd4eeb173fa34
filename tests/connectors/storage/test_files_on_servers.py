"""FileSource and FileSink on S3, where a file gets its name by a copy and folders are not there, and on HDFS."""

import pickle

import pytest

from penstock.base.storage import Storage
from penstock.common import Encoder
from penstock.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    FileSource,
    RollingPolicy,
    StreamFormat,
)
from penstock.errors import AccessDenied, NotFound
from tests.connectors.files.driving import Rejecting, SinkJob, everything, hidden, lines, shown


class ByRest(BucketAssigner):
    def get_bucket_id(self, element, context):
        return f"rest={element % 2}"


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.service) for name in ("bucket", "hdfs")])
def base(request):
    return f"{request.getfixturevalue(request.param)}/results"


def sink(base, **compaction):
    builder = FileSink.for_row_format(base, Encoder.simple_string_encoder()).with_bucket_assigner(ByRest())
    builder.with_rolling_policy(RollingPolicy.default_rolling_policy())
    if compaction:
        builder.enable_compact(FileCompactStrategy(**compaction), FileCompactor.concat_file_compactor())
    return builder.build()


def test_a_file_appears_with_its_checkpoint(base):
    job = SinkJob(sink(base), parallelism=2)
    job.write(1, 2, 3, subtask=0)
    job.write(4, subtask=1)
    job.checkpoint()
    assert shown(base) == {} and len(hidden(base)) == 3
    job.complete()
    assert sorted(shown(base).values()) == [b"1\n3\n", b"2\n", b"4\n"] and hidden(base) == []


@pytest.mark.parametrize("compacted", [False, True])
def test_a_job_that_dies_and_goes_on_shows_every_record_once(base, compacted):
    job = SinkJob(sink(base, **({"num_checkpoints_before_compaction": 2} if compacted else {})), parallelism=2)
    job.write(0, 1, subtask=0)
    first = job.checkpoint_and_complete()
    job.write(2, 3, subtask=1)
    job.checkpoint()
    job.crash(first, parallelism=3)  # the second checkpoint did not become complete
    job.write(2, 3, subtask=2)
    second = job.checkpoint()
    job.crash(second)  # it became complete, and nobody has committed
    job.write(4, 5)
    job.checkpoint_and_complete(end=True)
    assert lines(base) == ["0", "1", "2", "3", "4", "5"] and hidden(base) == []


@pytest.mark.parametrize("done", ["nothing", "copied", "all"])
def test_a_commit_that_was_broken_off_is_done_again(base, done):
    """On S3, giving a file its name is a copy and a deletion; whoever recovers finds none, one or both of them done."""
    job = SinkJob(sink(base))
    job.write(1, 3)
    ((_, pending),) = pickle.loads(job.checkpoint())
    (name,) = hidden(base)
    content = everything(base)[name]
    if done != "nothing":
        job.complete()
    if done == "copied":
        Storage(base).write(name, [content])
    for _ in range(2):
        job.sink.create_committer().commit(pending[1])
        assert list(shown(base).values()) == [b"1\n3\n"] and hidden(base) == []


def test_a_savepoint_keeps_its_files(base):
    job = SinkJob(sink(base))
    job.write(1)
    savepoint = job.checkpoint(savepoint=True)
    job.write(3)
    job.checkpoint_and_complete(end=True)
    again = SinkJob(sink(base), job_id="another", checkpoint=savepoint)
    again.write(5)
    again.checkpoint_and_complete(end=True)
    assert lines(base) == ["1", "3", "5"]


# --- reading ---
def read(*paths):
    made = FileSource.for_record_stream_format(StreamFormat.text_line_format(), *paths).build()
    reader = made.create_reader(Rejecting(fails=True))
    reader.add_splits(made.create_enumerator().discover())
    values = []
    while fetched := reader.fetch(1000, 0.0):
        values += [value for part in fetched for value in part.values]
    return values


def test_what_a_sink_wrote_a_source_reads(base):
    job = SinkJob(sink(base))
    job.write(*range(100))
    job.checkpoint_and_complete(end=True)
    job.write(1000)  # hidden
    job.checkpoint()
    assert sorted(map(int, read(base))) == list(range(100))
    assert sorted(map(int, read(f"{base}/rest=0/part-*"))) == list(range(0, 100, 2))
    (name,) = [name for name in shown(base) if name.startswith("rest=1/")]
    assert sorted(map(int, read(f"{base}/{name}"))) == list(range(1, 100, 2))


def test_errors_have_our_names(s3, bucket, monkeypatch):
    import fsspec

    base = f"{bucket}/results"
    with pytest.raises(NotFound, match=f"there is no file at {base}"):
        read(base)
    with pytest.raises(NotFound, match=r"s3://mistyped-bucket/x/rest=1/.* cannot be written: The specified bucket"):
        job = SinkJob(sink("s3://mistyped-bucket/x"))
        job.write(1)
        job.checkpoint()
    monkeypatch.setitem(fsspec.config.conf, "s3", {"endpoint_url": s3.endpoint, "key": "who", "secret": "?"})
    with pytest.raises(AccessDenied, match=f"no access to {base}"):
        read(base)
