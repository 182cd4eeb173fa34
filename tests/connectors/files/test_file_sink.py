"""FileSink: folders, names, when files are closed, and what readers see when."""

import pickle
import re

import pytest

from penstock.common import Duration, Encoder, Types
from penstock.datastream.connectors.base import Sink
from penstock.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileSink,
    OutputFileConfig,
    RollingPolicy,
    StreamingFileSink,
)
from penstock.errors import ConnectorError, NotFound
from tests.connectors.files.driving import KINDS, SinkJob, Times, base_of, everything, hidden, lines, shown

TEXT = Encoder.simple_string_encoder()
NAME = r"part-[01]-[1-9]\d{15}\d{3,}"


@pytest.fixture(params=KINDS)
def base(request, tmp_path):
    return base_of(request.param, tmp_path)


@pytest.fixture(params=["local", "memory"])
def flushed(request, tmp_path):
    """A place where others see what was flushed into an open file."""
    return base_of(request.param, tmp_path)


def rows(base, **settings):
    """A sink into the base path; settings are builder methods without their 'with_'."""
    builder = FileSink.for_row_format(base, TEXT).with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    for name, value in settings.items():
        builder = getattr(builder, f"with_{name}")(value)
    return builder.build()


ON_CHECKPOINT = RollingPolicy.on_checkpoint_rolling_policy()


class ByFirstLetter(BucketAssigner):
    def get_bucket_id(self, element, context):
        return f"letter={element[0]}"


class ByTimestamp(BucketAssigner):
    def get_bucket_id(self, element, context):
        return str(context.timestamp())


class Fixed(BucketAssigner):
    def __init__(self, bucket_id):
        self._bucket_id = bucket_id

    def get_bucket_id(self, element, context):
        return self._bucket_id


class TestWhatReadersSee:
    def test_a_file_is_seen_with_the_checkpoint_that_is_complete(self, base):
        job = SinkJob(rows(base, rolling_policy=ON_CHECKPOINT))
        job.write("a", "b")
        assert shown(base) == {}
        job.checkpoint()
        assert shown(base) == {}
        job.complete()
        assert list(shown(base).values()) == [b"a\nb\n"]
        assert hidden(base) == []

    def test_the_name_has_the_subtask_and_a_number(self, base):
        config = OutputFileConfig.builder().with_part_prefix("events").with_part_suffix(".txt").build()
        job = SinkJob(rows(base, rolling_policy=ON_CHECKPOINT, output_file_config=config))
        for value in "ab":
            job.write(value)
            job.checkpoint_and_complete()
        first, second = sorted(shown(base))
        assert re.fullmatch(NAME.replace("part", "events") + r"\.txt", first)
        assert first.startswith("events-0-")
        assert (first.endswith("000.txt"), second) == (True, first.removesuffix("0.txt") + "1.txt")

    def test_no_two_writers_use_the_same_number(self, base):
        for _ in range(3):
            job = SinkJob(rows(base, rolling_policy=ON_CHECKPOINT), parallelism=2)
            job.write("a", subtask=0)
            job.write("b", subtask=1)
            job.checkpoint_and_complete()
        names = sorted(shown(base))
        assert len({name.rpartition("-")[2] for name in names}) == 6
        assert [name[:7] for name in names] == ["part-0-"] * 3 + ["part-1-"] * 3

    def test_the_hidden_name_has_the_final_one_and_the_subtask(self, flushed):
        job = SinkJob(rows(flushed), parallelism=2)
        job.write("a", subtask=1)
        (name,) = hidden(flushed)
        assert re.fullmatch(rf"\.{NAME}\.[0-9a-f]{{12}}-1-0-[0-9a-f]{{32}}\.inprogress", name)

    def test_nothing_written_makes_no_file(self, base):
        job = SinkJob(rows(base))
        job.checkpoint_and_complete(end=True)
        assert everything(base) == {}

    def test_a_job_without_checkpoints_shows_its_files_at_its_end(self, base):
        job = SinkJob(rows(base, rolling_policy=RollingPolicy.default_rolling_policy(part_size=2)))
        job.write("a")
        job.write("b")
        assert shown(base) == {}
        job.checkpoint_and_complete(end=True)
        assert sorted(shown(base).values()) == [b"a\n", b"b\n"]

    def test_a_checkpoint_that_was_never_heard_of_is_committed_with_the_next(self, base):
        job = SinkJob(rows(base, rolling_policy=ON_CHECKPOINT))
        job.write("a")
        job.checkpoint()
        job.write("b")
        job.checkpoint_and_complete()
        assert lines(base) == ["a", "b"]

    def test_a_file_goes_on_over_a_checkpoint_where_flushed_bytes_are_seen(self, flushed):
        job = SinkJob(rows(flushed))
        job.write("a")
        job.checkpoint_and_complete()
        job.write("b")
        assert (shown(flushed), len(hidden(flushed))) == ({}, 1)
        job.checkpoint_and_complete(end=True)
        assert list(shown(flushed).values()) == [b"a\nb\n"]

    def test_where_flushed_bytes_are_not_seen_every_checkpoint_ends_the_file(self, tmp_path):
        base = base_of("objects", tmp_path)
        job = SinkJob(rows(base))
        job.write("a")
        job.checkpoint_and_complete()
        assert list(shown(base).values()) == [b"a\n"]


class TestFolders:
    def test_an_assigner_of_ones_own(self, base):
        job = SinkJob(rows(base, bucket_assigner=ByFirstLetter()))
        job.write("ann", "bo", "abe")
        job.checkpoint_and_complete(end=True)
        assert {path.partition("/")[0]: data for path, data in shown(base).items()} == {
            "letter=a": b"ann\nabe\n",
            "letter=b": b"bo\n",
        }

    def test_an_assigner_gets_the_timestamp_of_each_record(self, base):
        job = SinkJob(rows(base, bucket_assigner=ByTimestamp()))
        job.write("a", "b", timestamps=[5, 7])
        job.write("c")
        job.checkpoint_and_complete(end=True)
        assert sorted(path.partition("/")[0] for path in shown(base)) == ["5", "7", "None"]

    def test_one_by_one_is_the_same(self, base):
        job = SinkJob(rows(base, bucket_assigner=ByTimestamp()))
        job.writers[0].write("a", Times(job, 5))
        job.checkpoint_and_complete(end=True)
        assert [path.partition("/")[0] for path in shown(base)] == ["5"]

    def test_the_default_is_a_folder_for_each_hour(self, flushed):
        job = SinkJob(FileSink.for_row_format(flushed, TEXT).build())
        job.now = 1_700_000_000_000
        job.write("a")
        (path,) = hidden(flushed)
        assert re.match(r"2023-11-1[345]--\d\d/", path)

    def test_folders_without_open_files_are_forgotten(self, base):
        job = SinkJob(rows(base, bucket_assigner=ByFirstLetter(), rolling_policy=ON_CHECKPOINT))
        job.write(*"abcdefgh")
        job.checkpoint_and_complete()
        assert not job.writers[0]._open and not job.writers[0]._closed
        assert job.writers[0].next_due() is None

    @pytest.mark.parametrize("bucket_id", ["/etc", "../up", "a/../../b"])
    def test_a_folder_lies_below_the_base_path(self, base, bucket_id):
        job = SinkJob(rows(base, bucket_assigner=Fixed(bucket_id)))
        with pytest.raises(ValueError, match="below the base path"):
            job.write("a")

    def test_a_bucket_id_is_text(self, base):
        job = SinkJob(rows(base, bucket_assigner=Fixed(7)))
        with pytest.raises(TypeError, match="not 7"):
            job.write("a")

    def test_names_that_look_like_patterns(self, base):
        job = SinkJob(rows(base, bucket_assigner=Fixed("[a]*?"), rolling_policy=ON_CHECKPOINT))
        job.write("a")
        job.checkpoint_and_complete()
        assert lines(base) == ["a"]
        assert hidden(base) == []


class TestRolling:
    def test_by_size(self, flushed):
        job = SinkJob(rows(flushed, rolling_policy=RollingPolicy.default_rolling_policy(part_size=4)))
        for value in "abcde":
            job.write(value)
        job.checkpoint_and_complete()
        assert sorted(shown(flushed).values()) == [b"a\nb\n", b"c\nd\n"]
        assert len(hidden(flushed)) == 1

    def test_by_age(self, flushed):
        policy = RollingPolicy.default_rolling_policy(rollover_interval=1000, inactivity_interval=10_000)
        job = SinkJob(rows(flushed, rolling_policy=policy, bucket_check_interval=100))
        for value in "abcdef":
            job.write(value)
            job.pass_time(250)
        job.checkpoint_and_complete()
        assert list(shown(flushed).values()) == [b"a\nb\nc\nd\n"]

    def test_by_inactivity(self, base):
        policy = RollingPolicy.default_rolling_policy(rollover_interval=100_000, inactivity_interval=500)
        job = SinkJob(rows(base, rolling_policy=policy, bucket_check_interval=100))
        job.write("a")
        job.pass_time(400)
        job.write("b")
        job.pass_time(400)
        job.pass_time(200)
        job.checkpoint_and_complete()
        assert list(shown(base).values()) == [b"a\nb\n"]

    def test_time_is_looked_at_once_in_an_interval(self, base):
        policy = RollingPolicy.default_rolling_policy(rollover_interval=10)
        job = SinkJob(rows(base, rolling_policy=policy, bucket_check_interval=Duration.of_seconds(1)))
        job.write("a")
        job.pass_time(0)
        assert job.writers[0].next_due() == job.now + 1000
        job.pass_time(999)
        assert job.writers[0]._open
        job.pass_time(1)
        assert not job.writers[0]._open
        assert job.writers[0].next_due() is None

    def test_a_policy_of_ones_own(self, flushed):
        class EveryOther(RollingPolicy):
            def should_roll_on_event(self, part):
                return part.size >= 4 and part.bucket_id == ""

        job = SinkJob(rows(flushed, rolling_policy=EveryOther()))
        for value in "abc":
            job.write(value)
        job.checkpoint_and_complete()
        assert list(shown(flushed).values()) == [b"a\nb\n"]


class TestCommitting:
    def pending(self, base):
        job = SinkJob(rows(base, rolling_policy=ON_CHECKPOINT))
        job.write("abc")
        job.checkpoint()
        (items,) = job.pending[0].values()
        return job.sink.create_committer(), items

    def test_again_changes_nothing(self, base):
        committer, items = self.pending(base)
        committer.commit(items)
        before = everything(base)
        committer.commit(items)
        assert everything(base) == before

    def test_a_copy_that_was_made_and_whose_original_was_not_deleted(self, base):
        committer, items = self.pending(base)
        (name,) = hidden(base)
        data = everything(base)[name]
        committer.commit(items)
        put(base, name, data)
        committer.commit(items)
        assert (lines(base), hidden(base)) == (["abc"], [])

    def test_a_torn_copy_is_made_again(self, base):
        committer, items = self.pending(base)
        put(base, items[0].final.rpartition("/")[2], b"ab")
        committer.commit(items)
        assert lines(base) == ["abc"]

    def test_neither_is_there(self, base):
        committer, items = self.pending(base)
        put(base, hidden(base)[0], None)
        with pytest.raises(
            NotFound,
            match=r"neither .*inprogress nor .*part-.* exists; one of them must hold 4 "
            "bytes of results",
        ):
            committer.commit(items)

    def test_a_file_that_is_shorter_than_was_written(self, base):
        committer, items = self.pending(base)
        put(base, hidden(base)[0], b"ab")
        with pytest.raises(ConnectorError, match="has 2 bytes instead of the 4 bytes"):
            committer.commit(items)
        assert shown(base) == {}

    def test_a_finished_file_that_someone_changed(self, base):
        committer, items = self.pending(base)
        committer.commit(items)
        put(base, next(iter(shown(base))), b"abcdef")
        with pytest.raises(ConnectorError, match="has 6 bytes instead of the 4 bytes"):
            committer.commit(items)


def put(base, name, data):
    import fsspec

    fs, root = fsspec.core.url_to_fs(base)
    if data is None:
        fs.rm_file(f"{root}/{name}")
    else:
        fs.pipe_file(f"{root}/{name}", data)


class TestStartingOver:
    def test_what_came_after_the_checkpoint_is_cut_off(self, base):
        job = SinkJob(rows(base))
        job.write("a")
        taken = job.checkpoint_and_complete()
        job.write("b")
        job.checkpoint()
        job.crash(taken)
        job.write("c")
        job.checkpoint_and_complete(end=True)
        assert (lines(base), hidden(base)) == (["a", "c"], [])

    def test_leftovers_are_deleted(self, flushed):
        job = SinkJob(rows(flushed, rolling_policy=ON_CHECKPOINT), parallelism=3)
        for subtask in range(3):
            job.write("a", subtask=subtask)
        taken = job.checkpoint_and_complete()
        for subtask in range(3):
            job.write("b", subtask=subtask)
        assert len(hidden(flushed)) == 3
        job.crash(taken, parallelism=2)
        assert hidden(flushed) == []

    def test_a_displaced_driver_that_looks_for_leftovers_too_late_finds_none(self, flushed):
        """The files that it sees are those of the new owner of the job, which has begun meanwhile."""
        policy = rows(flushed, rolling_policy=ON_CHECKPOINT)
        first = SinkJob(policy, owner=1)
        first.write("a")
        taken = first.checkpoint_and_complete()
        second = SinkJob(policy, checkpoint=taken, owner=3)
        second.write("b")
        SinkJob(policy, checkpoint=taken, owner=2)
        second.checkpoint_and_complete(end=True)
        assert lines(flushed) == ["a", "b"]

    def test_leftovers_of_former_owners_are_deleted(self, flushed):
        policy = rows(flushed, rolling_policy=ON_CHECKPOINT)
        first = SinkJob(policy, owner=1)
        taken = first.checkpoint_and_complete()
        first.write("b")
        assert len(hidden(flushed)) == 1
        SinkJob(policy, checkpoint=taken, owner=2)
        assert hidden(flushed) == []

    def test_leftovers_of_an_attempt_without_checkpoint_are_deleted(self, base):
        job = SinkJob(rows(base))
        job.write("a")
        job.crash(None)
        assert hidden(base) == []

    def test_a_writer_with_rivals_deletes_nothing(self, flushed):
        """In BATCH mode the first run of a task may be the one that counts, so a second run must not delete its
        files."""
        job = SinkJob(rows(flushed))
        job.write("a")
        job.checkpoint(end=True)
        counting, job.has_rivals = job.pending, True
        job.crash(None)
        job.write("a")
        job.pending = counting
        job.complete()
        assert lines(flushed) == ["a"]

    def test_lost_writers_leave_nothing_behind(self, flushed):
        job = SinkJob(rows(flushed), parallelism=2)
        begun = [item for writer in job.writers for item in writer.begun()]
        job.write("a", subtask=0)
        put(flushed, ".keep", b"")
        job.write("b", subtask=1)
        job.checkpoint(end=True)
        counting, job.has_rivals = job.pending, True
        job.crash(None)
        begun += pickle.loads(pickle.dumps([item for writer in job.writers for item in writer.begun()]))
        job.write("b", subtask=1)
        job.pending = counting
        job.complete()
        assert len(hidden(flushed)) == 2
        job.sink.create_committer().abort(begun)
        assert (lines(flushed), hidden(flushed)) == (["a", "b"], [".keep"])

    def test_other_files_stay(self, base):
        job = SinkJob(rows(base, rolling_policy=ON_CHECKPOINT))
        other = SinkJob(rows(base), job_id="another")
        other.write("b")
        theirs = hidden(base)
        put(base, ".keep", b"")
        put(base, "notes.txt", b"")
        taken = job.checkpoint_and_complete()
        job.crash(taken)
        assert sorted(everything(base)) == sorted([".keep", "notes.txt", *theirs])

    def test_pending_files_are_shown(self, base):
        job = SinkJob(rows(base, rolling_policy=ON_CHECKPOINT))
        job.write("a")
        job.crash(job.checkpoint())
        assert (lines(base), hidden(base)) == (["a"], [])

    def test_with_fewer_subtasks_files_of_one_folder_stay_apart(self, flushed):
        job = SinkJob(rows(flushed), parallelism=3)
        for subtask in range(3):
            job.write(f"{subtask}", subtask=subtask)
        job.crash(job.checkpoint_and_complete(), parallelism=1)
        job.write("x")
        job.checkpoint_and_complete(end=True)
        assert sorted(shown(flushed).values()) == [b"0\nx\n", b"1\n", b"2\n"]

    def test_a_second_job_from_the_same_checkpoint_disturbs_nobody(self, flushed):
        job = SinkJob(rows(flushed))
        job.write("a")
        savepoint = job.checkpoint_and_complete()
        fork = SinkJob(rows(flushed), job_id="fork", checkpoint=savepoint)
        fork.write("fork")
        fork.checkpoint_and_complete()
        job.write("original")
        job.checkpoint_and_complete(end=True)
        fork.checkpoint_and_complete(end=True)
        assert sorted(shown(flushed).values()) == [b"a\nfork\n", b"a\noriginal\n"]

    def test_a_job_that_is_set_back_finds_its_file_finished(self, base):
        job = SinkJob(rows(base))
        job.write("a")
        early = job.checkpoint_and_complete()
        job.write("b")
        job.checkpoint_and_complete(end=True)
        job.crash(early)
        job.checkpoint_and_complete(end=True)
        assert lines(base) == ["a", "b"]

    def test_an_open_file_that_is_gone(self, flushed):
        job = SinkJob(rows(flushed))
        job.write("a")
        taken = job.checkpoint_and_complete()
        put(flushed, hidden(flushed)[0], None)
        with pytest.raises(NotFound, match="is missing"):
            job.crash(taken)

    def test_an_open_file_that_is_too_short(self, flushed):
        job = SinkJob(rows(flushed))
        job.write("abcdef")
        taken = job.checkpoint_and_complete()
        put(flushed, hidden(flushed)[0], b"abc")
        with pytest.raises(ConnectorError, match="has 3 bytes instead of the 7 bytes"):
            job.crash(taken)


class TestSavepoints:
    def test_no_file_stays_open(self, base):
        job = SinkJob(rows(base))
        job.write("a")
        savepoint = job.checkpoint(savepoint=True)
        job.complete()
        assert (lines(base), hidden(base)) == (["a"], [])
        again = SinkJob(rows(base), job_id="another", checkpoint=savepoint)
        again.write("b")
        again.checkpoint_and_complete(end=True)
        assert (lines(base), hidden(base)) == (["a", "b"], [])

    def test_one_of_a_job_that_goes_on(self, base):
        """The files of a savepoint are shown with the next checkpoint, or by another job that starts from the
        savepoint."""
        job = SinkJob(rows(base))
        job.write("a")
        job.checkpoint(savepoint=True)
        job.write("b")
        assert lines(base) == []
        job.checkpoint_and_complete(end=True)
        assert (lines(base), hidden(base)) == (["a", "b"], [])

    def test_one_of_a_job_that_had_to_go_back_behind_it(self, flushed):
        job = SinkJob(rows(flushed))
        job.write("a")
        early = job.checkpoint_and_complete()
        job.write("b")
        savepoint = job.checkpoint(savepoint=True)
        job.crash(early)
        job.checkpoint_and_complete()
        job.crash(job.checkpoint_and_complete())
        fork = SinkJob(rows(flushed), job_id="fork", checkpoint=savepoint)
        assert lines(flushed) == ["a", "b"]
        fork.checkpoint_and_complete(end=True)
        job.checkpoint_and_complete(end=True)
        assert (sorted(shown(flushed).values()), hidden(flushed)) == ([b"a\n", b"a\nb\n"], [])


class TestBuilding:
    def test_streaming_file_sink_has_the_older_spellings(self, base):
        builder = StreamingFileSink.for_row_format(base, TEXT)
        assert isinstance(builder, StreamingFileSink.DefaultRowFormatBuilder)
        sink = (
            builder.with_rolling_policy(policy=ON_CHECKPOINT)
            .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
            .with_bucket_check_interval(10)
            .with_output_file_config(OutputFileConfig("p", ".s"))
            .build()
        )
        assert isinstance(sink, StreamingFileSink) and isinstance(sink, Sink)
        job = SinkJob(sink)
        job.write("a")
        job.checkpoint_and_complete()
        assert lines(base) == ["a"]

    def test_a_relative_path_means_the_folder_of_the_program(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert rows("out").settings.base_path == f"file://{tmp_path}/out"

    def test_a_host_is_kept(self):
        assert rows("objects://host/a/b/").settings.base_path == "objects://host/a/b"

    @pytest.mark.parametrize(
        ("call", "error", "message"),
        [
            (lambda: FileSink.for_row_format("/x", str), TypeError, "must be an Encoder"),
            (lambda: FileSink.for_bulk_format("/x", TEXT), TypeError, "must be a BulkWriterFactory"),
            (lambda: FileSink.for_row_format("nowhere://x", TEXT), ConnectorError, "cannot use 'nowhere://x'"),
            (lambda: rows("/x", bucket_assigner="day"), TypeError, "expected a BucketAssigner, not 'day'"),
            (lambda: rows("/x", rolling_policy=3), TypeError, "expected a RollingPolicy"),
            (lambda: rows("/x", bucket_check_interval=0), ValueError, "longer than zero"),
            (lambda: rows("/x", output_file_config="p"), TypeError, "expected an OutputFileConfig"),
            (lambda: OutputFileConfig("a/b", ""), ValueError, "without '/'"),
            (lambda: OutputFileConfig("_p", ""), ValueError, "would be hidden"),
            (lambda: RollingPolicy.default_rolling_policy(part_size=0), ValueError, "above zero"),
            (lambda: FileCompactor.concat_file_compactor("\n"), TypeError, "bytes"),
        ],
    )
    def test_what_makes_no_sense_is_said_at_once(self, call, error, message):
        with pytest.raises(error, match=message):
            call()

    def test_defaults_are_flinks(self):
        policy = RollingPolicy.default_rolling_policy()
        assert (policy.part_size, policy.rollover_interval, policy.inactivity_interval) == (128 << 20, 60_000, 60_000)
        assert OutputFileConfig.builder().build() == OutputFileConfig("part", "")


@pytest.mark.parametrize("charset", ["UTF-8", "UTF-16", "latin-1"])
@pytest.mark.parametrize("type_info", [None, Types.STRING()])
def test_a_chunk_is_encoded_as_its_records_are(charset, type_info):
    encoder = Encoder.simple_string_encoder(charset)
    values = ["ä", "b", ""]
    assert encoder.encode_all(values, type_info) == b"".join(encoder.encode(value, type_info) for value in values)
