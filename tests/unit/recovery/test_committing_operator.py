"""The operator of sinks that commit, driven by itself: what its writer and its committer are told, and when."""

import pytest

from penstock.common import Row, Types
from penstock.datastream.connectors.base import Committer, Sink, SinkWriter
from penstock.engine.operators.operator import Clock, OperatorContext
from penstock.engine.operators.sinks.committing import CommittingSink, abort_at_the_end, commit_at_the_end
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import Chunk, join_receivers
from penstock.engine.records.failures import OperatorFailed
from penstock.engine.snapshots.snapshot_parts import Extent, SubtaskSnapshot

PAIR = Types.ROW_NAMED(["n"], [Types.LONG()])


class Outside(Sink):
    """Notes the calls of its writer and its committer."""

    def __init__(self, writer=None, committer=True):
        self.calls = []
        self.fails = None
        self.writer_type = writer or Writer
        self.commits = committer

    def call(self, what, *more):
        self.calls.append((what, *more))
        if self.fails == what:
            raise OSError(f"{what} is not possible")

    def taken(self):
        calls, self.calls = self.calls, []
        return calls

    def create_writer(self, context, restored):
        self.context, self.restored = context, restored
        self.writer = self.writer_type(self)
        return self.writer

    def create_committer(self):
        self.committer = Commits(self) if self.commits else None
        return self.committer


class Writer(SinkWriter):
    due = None

    def __init__(self, outside):
        self.outside = outside
        self.batch = []

    def write(self, value, context):
        self.batch.append(value)
        self.outside.call("write", value, context.timestamp())

    def begun(self):
        self.outside.call("begun")
        return ["begun"]

    def flush(self, end_of_input):
        self.outside.call("flush", end_of_input, self.checkpoint_id, self.checkpoint_timestamp, self.is_savepoint)

    def prepare_commit(self):
        batch, self.batch = self.batch, []
        return batch

    def end_epoch(self, now):
        self.outside.call("end_epoch", now)

    def next_due(self):
        return self.due

    def close(self):
        self.outside.call("close writer")


class ColumnWriter(Writer):
    takes = True

    def write_batch(self, rows, context):
        self.outside.call("write_batch", rows.batch.to_pydict(), rows.timestamps, list(rows))
        return self.takes


class ChunkWriter(Writer):
    takes = True

    def write_all(self, values, timestamps, context):
        self.outside.call("write_all", values, timestamps)
        return self.takes


class Commits(Committer):
    def __init__(self, outside):
        self.outside = outside

    def commit(self, committables):
        self.outside.call("commit", committables)

    def abort(self, begun):
        self.outside.call("abort", begun)

    def discard(self, committables):
        self.outside.call("discard", committables)

    def close(self):
        self.outside.call("close committer")


class Owner:
    """The right to commit, which can be lost."""

    number = 7
    lost = False

    def __init__(self):
        self.checks = 0

    def check(self):
        self.checks += 1
        if self.lost:
            raise OSError("another driver has the job")


class Restored:
    """The parts of a checkpoint that the subtasks of a sink left."""

    def __init__(self, *parts, subtask=0, parallelism=1, own=None):
        self.parts, self.subtask, self.parallelism, self._own = parts, subtask, parallelism, own

    def own(self):
        return self._own

    def all_own(self):
        return list(self.parts)


def context_of(**more):
    return OperatorContext("Outside", "outside", 0, 1, 128, join_receivers([]), {}, Clock(50), **more)


def opened(outside, **more):
    operator = CommittingSink(outside, more.pop("input_type", None))
    operator.open(context_of(**{"tracks_changes": True, **more}))
    outside.taken()
    return operator


def snapshot(operator, number, extent=Extent.FULL):
    into = SubtaskSnapshot("outside", number, 1000 + number, extent)
    operator.snapshot(into)
    return into


# --- records ---
def test_each_record_comes_with_its_timestamp():
    outside = Outside()
    operator = opened(outside)
    operator.records(["a", "b"], [5, None])
    operator.records(["c"], None)
    assert outside.taken() == [("write", "a", 5), ("write", "b", None), ("write", "c", None)]


@pytest.mark.parametrize("takes", [True, False])
def test_a_writer_may_take_a_chunk_at_once(takes):
    outside = Outside(ChunkWriter)
    operator = opened(outside)
    outside.writer.takes = takes
    operator.records(["a"], [5])
    assert outside.taken() == [("write_all", ["a"], [5]), *([] if takes else [("write", "a", 5)])]


@pytest.mark.parametrize("takes", [True, False])
def test_a_writer_may_take_columns(takes):
    outside = Outside(ColumnWriter)
    operator = opened(outside)
    outside.writer.takes = takes
    row = Row(n=1)
    operator.chunk(Chunk.of(Columns.of_rows([row], [5], PAIR)))
    assert outside.taken() == [("write_batch", {"n": [1]}, [5], [row]), *([] if takes else [("write", row, 5)])]


def test_a_writer_without_use_for_columns_gets_rows():
    outside = Outside()
    operator = opened(outside)
    operator.chunk(Chunk.of(Columns.of_rows([Row(n=1)], None, PAIR)))
    operator.chunk(Chunk([2], [6]))
    assert outside.taken() == [("write", Row(n=1), None), ("write", 2, 6)]


@pytest.mark.parametrize(
    ("writer", "call"), [(Writer, "write"), (ChunkWriter, "write_all"), (ColumnWriter, "write_batch")]
)
def test_a_writer_that_fails_names_the_sink(writer, call):
    outside = Outside(writer)
    operator = opened(outside)
    outside.fails = call
    with pytest.raises(OperatorFailed, match=rf"Outside[^\n]*{call} is not possible"):
        operator.chunk(Chunk.of(Columns.of_rows([Row(n=1)], None, PAIR)))


def test_records_and_items_are_counted():
    context = context_of(tracks_changes=True)
    operator = CommittingSink(Outside())
    operator.open(context)
    operator.records(["a", "b"], None)
    operator.chunk(Chunk.of(Columns.of_rows([Row(n=1)], None, PAIR)))
    snapshot(operator, 1)
    metrics = context.metrics.snapshot()
    assert metrics["numRecordsSend"] == 3 and metrics["pendingCommittables"] == 3
    operator.checkpoint_complete(1)
    metrics = context.metrics.snapshot()
    assert metrics["successfulCommittables"] == 3 and metrics["pendingCommittables"] == 0


# --- time ---
def test_the_writer_is_told_of_the_end_of_an_epoch_and_says_when_it_is_due():
    outside = Outside()
    operator = opened(outside)
    assert operator.next_due() is None
    operator.end_epoch()
    assert outside.taken() == [("end_epoch", 50)]
    outside.writer.due = 70
    assert operator.next_due() == 70


def test_a_writer_that_was_not_created_is_never_due():
    class Broken(Outside):
        def create_writer(self, context, restored):
            raise OSError("no connection")

    operator = CommittingSink(Broken())
    with pytest.raises(OperatorFailed, match=r"Outside[^\n]*no connection"):
        operator.open(context_of())
    assert operator.next_due() is None


def test_an_end_of_an_epoch_that_fails_names_the_sink():
    outside = Outside()
    operator = opened(outside)
    outside.fails = "end_epoch"
    with pytest.raises(OperatorFailed, match=r"Outside[^\n]*end_epoch is not possible"):
        operator.end_epoch()


# --- checkpoints ---
@pytest.mark.parametrize("extent", list(Extent))
def test_the_writer_knows_the_checkpoint_that_is_prepared(extent):
    outside = Outside()
    operator = opened(outside)
    snapshot(operator, 3, extent)
    assert outside.taken() == [("flush", False, 3, 1003, extent is Extent.SEPARATE)]


def test_at_the_end_no_checkpoint_is_prepared():
    outside = Outside()
    operator = opened(outside)
    snapshot(operator, 3)
    outside.taken()
    operator.finish()
    assert outside.taken() == [("flush", True, None, None, False)], "a last checkpoint follows and commits"


def test_a_checkpoint_without_items_leaves_those_of_the_next_alone():
    outside = Outside()
    operator = opened(outside)
    snapshot(operator, 1)
    operator.records(["a"], None)
    snapshot(operator, 2)
    outside.taken()
    operator.checkpoint_complete(2)
    assert outside.taken() == [("commit", ["a"])]


@pytest.mark.parametrize("committer", [True, False])
def test_items_that_nobody_will_know_are_discarded_once(committer, caplog):
    outside = Outside(committer=committer)
    operator = opened(outside)
    operator.records(["a"], None)
    snapshot(operator, 1)
    snapshot(operator, 2)
    outside.taken()
    operator.abandon(1)
    operator.abandon(1)
    operator.abandon(2)
    assert outside.taken() == ([("discard", ["a"])] if committer else []) and caplog.text == ""
    operator.checkpoint_complete(2)
    assert outside.taken() == []


def test_items_that_cannot_be_discarded_are_named_in_the_log(caplog):
    outside = Outside()
    operator = opened(outside)
    operator.records(["a"], None)
    snapshot(operator, 1)
    outside.fails = "discard"
    operator.abandon(1)
    assert "Outside: the prepared items could not be discarded: discard is not possible" in caplog.text


def test_slots_look_for_the_owner_and_the_declared_form_of_this_operator():
    operator = CommittingSink(Outside())
    assert operator.commits and operator.wants_declared_form and operator.output_type is None


# --- the end without checkpoints, and the owner ---
def test_without_checkpoints_the_owner_is_asked_before_the_commit():
    outside, owner = Outside(), Owner()
    operator = opened(outside, tracks_changes=False, owner=owner)
    operator.records(["a"], None)
    outside.taken()
    owner.lost = True
    with pytest.raises(OperatorFailed, match="another driver has the job"):
        operator.finish()
    assert outside.taken() == [("flush", True, None, None, False)]
    owner.lost = False
    operator.records(["b"], None)
    operator.finish()
    assert outside.taken()[-1] == ("commit", ["a", "b"]) and owner.checks == 2


def test_the_committer_can_check_the_owner():
    outside, owner = Outside(), Owner()
    opened(outside, owner=owner)
    assert owner.checks == 0
    outside.committer.check_owner()
    assert owner.checks == 1
    opened(outside)
    outside.committer.check_owner()
    assert owner.checks == 1
    opened(Outside(committer=False), owner=owner)


def test_items_of_subtasks_in_batch_mode_go_to_the_driver():
    outside, sent = Outside(), []
    operator = opened(
        outside, tracks_changes=False, batch=True, to_global_committer=lambda *sending: sent.append(sending)
    )
    operator.records(["a"], None)
    outside.taken()
    operator.finish()
    assert [items for _, items in sent] == [["a"]] and outside.taken() == [("flush", True, None, None, False)]


@pytest.mark.parametrize("globally", [True, False])
def test_items_for_a_global_committer_go_to_the_driver_too(globally):
    outside, sent = Outside(), []
    outside.commits_globally = globally
    operator = opened(outside, to_global_committer=lambda *sending: sent.append(sending))
    operator.records(["a"], None)
    snapshot(operator, 4)
    outside.taken()
    operator.checkpoint_complete(4)
    assert sent == ([(4, ["a"])] if globally else []) and outside.taken() == [("commit", ["a"])]


def test_what_a_lost_subtask_would_leave_behind():
    outside = Outside()
    operator = opened(outside)
    assert operator.begun() == ["begun"]
    outside.fails = "begun"
    with pytest.raises(OperatorFailed, match=r"Outside[^\n]*begun is not possible"):
        operator.begun()
    assert opened(Outside(committer=False)).begun() is None


def test_writer_and_committer_are_closed():
    outside = Outside()
    opened(outside).close()
    assert outside.taken() == [("close writer",), ("close committer",)]
    alone = Outside(committer=False)
    opened(alone).close()
    assert alone.taken() == [("close writer",)]
    CommittingSink(alone).close()


# --- what the writer can ask ---
def test_the_context_of_a_fresh_writer():
    outside = Outside()
    operator = opened(outside, input_type=PAIR)
    context = outside.context
    assert (context.uid, context.input_type, context.now, context.owner) == ("outside", PAIR, 50, 0)
    assert not context.is_restored and context.all_restored == context.all_committables == [] == outside.restored
    assert not context.has_rivals
    operator.context.clock.now = 60
    assert context.now == 60
    opened(outside, owner=Owner(), batch=True)
    assert outside.context.owner == 7 and outside.context.has_rivals


def test_the_context_of_a_restored_writer():
    parts = [{"pending": {2: ["c"], 1: ["a", "b"]}, "writer": ["x", "y"]}, {}, {"pending": {1: ["d"]}, "writer": ["z"]}]
    outside = Outside()
    opened(outside, restored=Restored(*parts))
    assert outside.context.is_restored
    assert outside.context.all_committables == ["a", "b", "c", "d"] and outside.context.all_restored == ["x", "y", "z"]
    assert outside.restored == ["x", "y", "z"]


def commits_after_restore(restored):
    outside = Outside()
    CommittingSink(outside).open(context_of(tracks_changes=True, restored=restored))
    return [call[1] for call in outside.taken() if call[0] == "commit"], outside.restored


def test_a_subtask_commits_its_own_items_again_in_their_order():
    own = {"pending": {2: ["c"], 3: [], 1: ["a"], 4: ["d"]}, "writer": ["x"]}
    other = {"pending": {1: ["no"]}, "writer": ["y"]}
    found = commits_after_restore(Restored(own, other, parallelism=2, own=own))
    assert found == ([["a"], ["c"], ["d"]], ["x"])


def test_with_another_parallelism_every_part_is_committed_by_one_subtask():
    parts = [{"pending": {1: [number]}, "writer": [number]} for number in range(5)]
    found = [commits_after_restore(Restored(*parts, subtask=index, parallelism=2)) for index in range(2)]
    assert found == [([[0], [2], [4]], [0, 1, 2]), ([[1], [3]], [3, 4])]


# --- the driver of a BATCH job ---
def test_the_driver_commits_and_undoes_the_rest():
    outside, owner = Outside(), Owner()
    commit_at_the_end(CommittingSink(outside, PAIR), context_of(batch=True, owner=owner), ["a"], ["a", "b"])
    assert [call[0] for call in outside.calls] == ["flush", "commit", "abort", "close writer", "close committer"]
    assert outside.calls[0][1] is True and outside.calls[1:3] == [("commit", ["a"]), ("abort", ["b"])]
    context = outside.context
    assert (context.has_rivals, context.input_type, context.all_committables) == (False, PAIR, ["a"])
    outside.committer.check_owner()
    assert owner.checks == 1


def test_the_driver_undoes_nothing_when_all_is_committed():
    outside = Outside()
    commit_at_the_end(CommittingSink(outside), context_of(batch=True), ["a"], ["a"])
    assert "abort" not in [call[0] for call in outside.calls]


def test_the_driver_undoes_what_a_failed_job_has_begun():
    outside = Outside()
    abort_at_the_end(CommittingSink(outside), context_of(batch=True), ["a"])
    assert outside.calls[1:] == [("abort", ["a"]), ("close writer",), ("close committer",)]
    assert outside.context.all_committables == []


def test_the_driver_has_nothing_to_do_for_a_sink_that_commits_nothing():
    outside = Outside(committer=False)
    commit_at_the_end(CommittingSink(outside), context_of(batch=True), [], [])
    abort_at_the_end(CommittingSink(outside), context_of(batch=True), [])
    assert outside.calls == []
