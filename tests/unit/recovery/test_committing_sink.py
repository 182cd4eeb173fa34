"""A sink that commits behind checkpoints: what a complete one covers becomes visible, once, and nothing else."""

from itertools import count, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.base import pickling
from penstock.datastream import RuntimeExecutionMode
from penstock.datastream.connectors.base import Committer, Sink, SinkWriter
from penstock.datastream.functions import CheckpointedFunction, MapFunction, SourceFunction
from penstock.engine.operators.operator import Clock, OperatorContext
from penstock.engine.operators.sinks.committing import CommittingSink
from penstock.engine.records.elements import join_receivers
from penstock.engine.snapshots.snapshot_parts import Extent, SubtaskSnapshot
from penstock.engine.state.snapshot_file import Kind
from penstock.errors import CheckpointFailed, JobFailed
from penstock.testing import pause, scripted

STORE: dict = {}
"""What is visible outside: values by the id of their transaction. To commit an id again changes nothing."""
EVENTS: list = []
ERRORS: dict = {}
"""By what is done: errors still to be raised there."""
IDS = count()
SEEN: list = []
GATES: list = []
PARTS: list = []


@pytest.fixture(autouse=True)
def _fresh():
    for shared in (STORE, EVENTS, ERRORS, SEEN, GATES, PARTS):
        shared.clear()


def hit(what):
    if ERRORS.get(what):
        error = ERRORS[what].pop(0)
        if error is not None:
            raise error


def visible():
    return [value for _, values in sorted(STORE.items()) for value in values]


def commits():
    return [items for what, items in EVENTS if what == "commit"]


class Writer(SinkWriter):
    def __init__(self, subtask, restored):
        self.subtask = subtask
        self.batch = []
        self.written = list(restored)
        EVENTS.append(("writer", sorted(restored)))

    def write(self, value, context):
        hit("write")
        self.batch.append(value)
        self.written.append(value)

    def flush(self, end_of_input):
        EVENTS.append(("flush", end_of_input))

    def prepare_commit(self):
        hit("prepare")
        batch, self.batch = self.batch, []
        return [(next(IDS), tuple(batch))] if batch else []

    def snapshot_state(self, checkpoint_id):
        EVENTS.append(("snapshot", checkpoint_id))
        return list(self.written)

    def close(self):
        EVENTS.append(("close", "writer"))


class Commits(Committer):
    def commit(self, committables):
        EVENTS.append(("commit", [value for _, values in committables for value in values]))
        hit("commit")
        STORE.update(committables)
        hit("committed")

    def close(self):
        EVENTS.append(("close", "committer"))


class Outside(Sink):
    def create_writer(self, context, restored):
        hit("create")
        return Writer(context.runtime.get_index_of_this_subtask(), restored)

    def create_committer(self):
        return Commits()


class WithoutCommitter(Outside):
    def create_committer(self):
        return None


class Fragile(MapFunction):
    def map(self, value):
        hit(value)
        return value


class Declines(MapFunction, CheckpointedFunction):
    """Refuses a snapshot for each error that there is."""

    def initialize_state(self, context):
        pass

    def snapshot_state(self, context):
        hit("decline")

    def map(self, value):
        return value


SCRIPT = (1, pause(), 2, pause(), 3, pause(), 4)
LONG = tuple(step for n in range(8) for step in (n, pause()))


def program(sink, script=SCRIPT):
    def build(env):
        stream = scripted(env, *script).map(Fragile()).map(Declines())
        stream.sink_to(sink).name("Outside").uid("outside")
        return stream

    return build


class TestWhenItCommits:
    def test_everything_is_visible_at_the_end_and_once(self, run):
        run(program(Outside()))
        assert visible() == [1, 2, 3, 4]
        assert [value for values in commits() for value in values] == [1, 2, 3, 4]

    def test_only_behind_the_publication(self, run, hooked):
        def look(call, path):
            if call == "move" and path.endswith("_metadata"):
                EVENTS.append(("publishing", visible()))

        hooked.on(look)
        run(program(Outside()), {"execution.checkpointing.dir": hooked.url})
        order = [what for what, _ in EVENTS if what in ("snapshot", "publishing", "commit")]
        before_commits = [before for before, what in pairwise(order) if what == "commit"]
        assert len(before_commits) >= 2 and set(before_commits) == {"publishing"}

    def test_not_behind_one_that_could_not_be_published(self, run, hooked):
        def full(call, path):
            if call == "move" and path.endswith("_metadata"):
                raise OSError(28, "No space left on device")

        hooked.on(full)
        with pytest.raises(CheckpointFailed, match="No space left on device"):
            run(program(Outside()), {"execution.checkpointing.dir": hooked.url})
        assert commits() == [] and STORE == {}

    def test_what_an_aborted_one_prepared_is_committed_with_the_next(self, run):
        ERRORS["decline"] = [ValueError("no"), ValueError("no"), None, ValueError("no")]
        run(program(Outside(), LONG), {"execution.checkpointing.tolerable-failed-checkpoints": 3})
        assert visible() == list(range(8)) and not any(ERRORS["decline"])
        assert [value for values in commits() for value in values] == list(range(8))

    def test_without_checkpoints_at_the_end(self, run):
        run(program(Outside()), {"execution.checkpointing.interval": None})
        assert commits() == [[1, 2, 3, 4]] and ("flush", True) in EVENTS

    def test_in_batch_mode_at_the_end(self, run):
        def build(env):
            env.set_runtime_mode(RuntimeExecutionMode.BATCH)
            stream = env.from_collection([1, 2, 3])
            stream.sink_to(Outside())
            return stream

        run(build)
        assert commits() == [[1, 2, 3]]

    def test_in_batch_mode_an_attempt_that_fails_has_committed_nothing(self, run):
        ERRORS[4] = [ValueError("once")]

        def build(env):
            env.set_runtime_mode(RuntimeExecutionMode.BATCH)
            env.from_collection([1, 2, 3]).sink_to(Outside())
            return scripted(env, pause(), pause(), 4).map(Fragile())

        restarts = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "1 ms"}
        run(build, {**restarts, "execution.checkpointing.interval": None})
        assert commits() == [[1, 2, 3]] and visible() == [1, 2, 3] and ERRORS[4] == []

    def test_nothing_to_commit_is_not_committed(self, run):
        run(program(Outside(), (pause(), pause(), pause())))
        assert commits() == [] and [what for what, _ in EVENTS].count("snapshot") >= 2

    def test_a_sink_without_a_committer(self, run):
        run(program(WithoutCommitter()))
        assert commits() == [] and ("flush", False) in EVENTS

    def test_it_is_flushed_before_every_snapshot(self, run):
        run(program(Outside()))
        names = [what for what, _ in EVENTS if what in ("flush", "snapshot")]
        assert "flushsnapshot" * names.count("snapshot") in "".join(names).replace("flushflush", "flush")
        assert EVENTS[-2:] == [("close", "writer"), ("close", "committer")]

    def test_every_subtask_commits_its_own(self, run):
        def build(env):
            stream = scripted(env, *SCRIPT).rebalance().map(Fragile())
            stream.sink_to(Outside())
            return stream

        run(build, parallelism=3)
        assert sorted(visible()) == [1, 2, 3, 4]


class TestFailures:
    @pytest.mark.parametrize("value", [1, 2, 3, 4])
    def test_a_failure_anywhere_changes_nothing(self, run, restarts, value):
        ERRORS[value] = [ValueError("boom")] * 2
        run(program(Outside()), restarts(2))
        assert visible() == [1, 2, 3, 4]

    @pytest.mark.parametrize("when", ["commit", "committed"], ids=["before it took effect", "after"])
    @pytest.mark.parametrize("number", [0, 1, 2])
    def test_a_commit_that_fails_is_tried_again(self, run, restarts, when, number):
        ERRORS[when] = [None] * number + [ValueError("the outside is down")]
        outcome = run(program(Outside(), LONG), restarts(1))
        assert not ERRORS[when] and visible() == list(range(8))
        assert "Outside (uid outside" in outcome.loop.view.failures[0].message

    def test_a_commit_that_keeps_failing(self, run, restarts):
        ERRORS["commit"] = [ValueError("the outside is down")] * 10
        with pytest.raises(JobFailed, match=r"Outside \(uid outside.*the outside is down") as raised:
            run(program(Outside()), restarts(2))
        assert "restarted 2 times" in raised.value.__notes__[0] and visible() == []

    def test_what_the_checkpoint_holds_is_committed_again_when_it_is_restored(self, run, restarts):
        """Nobody knows whether it was committed before the failure."""
        ERRORS[4] = [ValueError("boom")]
        run(program(Outside(), (*SCRIPT[:-1], pause(), 4)), restarts(1))
        again = [items for items in commits() if commits().count(items) > 1]
        assert again and visible() == [1, 2, 3, 4]

    def test_what_no_checkpoint_covers_is_never_visible(self, run):
        ERRORS[3] = [ValueError("boom")]
        with pytest.raises(JobFailed):
            run(program(Outside(), (1, pause(), 2, 3)))
        assert visible() == []

    def test_a_writer_that_fails_names_its_record(self, run):
        ERRORS["write"] = [None, ValueError("too long")]
        with pytest.raises(JobFailed, match=r"Outside \(uid outside.*too long\n *on record 2"):
            run(program(Outside()))

    def test_one_that_cannot_prepare_declines_the_checkpoint(self, run):
        ERRORS["prepare"] = [ValueError("not now")]
        with pytest.raises(CheckpointFailed, match=r"Outside \(uid outside.*not now"):
            run(program(Outside()))

    def test_that_can_be_tolerated(self, run):
        ERRORS["prepare"] = [ValueError("not now")]
        run(program(Outside()), {"execution.checkpointing.tolerable-failed-checkpoints": 1})
        assert visible() == [1, 2, 3, 4]

    def test_one_that_cannot_prepare_at_the_end_of_a_job_without_checkpoints(self, run):
        ERRORS["prepare"] = [ValueError("not now")]
        with pytest.raises(JobFailed, match=r"Outside.*not now"):
            run(program(Outside()), {"execution.checkpointing.interval": None})
        assert commits() == []

    def test_one_that_cannot_be_created(self, run, restarts):
        ERRORS["create"] = [ValueError("no connection")]
        with pytest.raises(JobFailed, match=r"Outside.*no connection"):
            run(program(Outside()))
        assert ("close", "committer") in EVENTS
        ERRORS["create"] = [ValueError("no connection")]
        run(program(Outside()), restarts(1))
        assert visible() == [1, 2, 3, 4]


# --- savepoints ---
@pytest.fixture
def running(start, until):
    """Starts a job that has written all values of a script and goes on waiting."""

    def running(script, options=None, parallelism=1):
        seen_before = len(SEEN)

        def build(env):
            stream = scripted(env, *script, stay=True).uid("source").rebalance().map(Sees())
            stream.sink_to(Outside()).uid("outside")

        client = start(build, {"execution.checkpointing.interval": None, **(options or {})}, parallelism=parallelism)
        new = [step for step in script if step != pause()]
        path = (options or {}).get("execution.state-recovery.path")
        until(lambda: len(SEEN) - seen_before >= (0 if path else len(new)))
        return client

    return running


class Sees(MapFunction):
    def map(self, value):
        SEEN.append(value)
        return value


class TestSavepoints:
    def test_the_one_that_ends_the_job_commits(self, running, tmp_path):
        running([1, 2]).stop_with_savepoint(False, str(tmp_path)).result(60)
        assert visible() == [1, 2]

    def test_with_draining_too(self, running, tmp_path):
        running([1, 2]).stop_with_savepoint(True, str(tmp_path)).result(60)
        assert visible() == [1, 2] and ("flush", True) in EVENTS

    def test_one_along_the_way_does_not(self, running, tmp_path):
        client = running([1, 2])
        client.trigger_savepoint(str(tmp_path)).result(60)
        assert visible() == []

    def test_what_it_holds_is_committed_behind_the_next_checkpoint(self, running, tmp_path, until):
        client = running([1, 2], {"execution.checkpointing.interval": "1 h"})
        client.trigger_savepoint(str(tmp_path)).result(60)
        client.stop_with_savepoint(False, str(tmp_path)).result(60)
        assert visible() == [1, 2]

    def test_what_it_holds_is_committed_at_the_end_of_a_job_without_checkpoints(self, start, tmp_path, until, gate):
        """A savepoint in the middle takes what was prepared so far along; the job still owes it to the outside."""
        GATES.append(gate)

        def build(env):
            env.add_source(TwoParts()).sink_to(Outside())

        client = start(build, {"execution.checkpointing.interval": None})
        until(lambda: PARTS)
        until(lambda: any(what == "writer" for what, _ in EVENTS))
        client.trigger_savepoint(str(tmp_path)).result(60)
        gate.set()
        client.get_job_execution_result().result(60)
        assert sorted(visible()) == [1, 2, 3, 4]

    def test_a_job_from_a_savepoint_commits_what_that_holds(self, running, tmp_path, until):
        path = running([1, 2]).trigger_savepoint(str(tmp_path)).result(60)
        STORE.clear()
        running([1, 2], {"execution.state-recovery.path": path})
        until(lambda: visible() == [1, 2])

    @pytest.mark.parametrize(("before", "after"), [(3, 2), (2, 3), (3, 1), (1, 4)])
    def test_with_another_parallelism(self, running, tmp_path, until, before, after):
        values = [1, 2, 3, 4, 5]
        path = running(values, parallelism=before).trigger_savepoint(str(tmp_path)).result(60)
        STORE.clear()
        EVENTS.clear()
        running(values, {"execution.state-recovery.path": path}, parallelism=after)
        until(lambda: sorted(visible()) == values and len([1 for what, _ in EVENTS if what == "writer"]) == after)
        assert sorted(value for values in commits() for value in values) == values, "each is committed by one of them"
        assert sorted(item for what, items in EVENTS if what == "writer" for item in items) == values


class TwoParts(SourceFunction):
    """Emits two numbers, waits for the gate, and emits two more."""

    def run(self, ctx):
        with ctx.get_checkpoint_lock():
            ctx.collect(1)
            ctx.collect(2)
        PARTS.append(1)
        GATES[-1].wait(60)
        ctx.collect(3)
        ctx.collect(4)

    def cancel(self):
        pass


# --- the operator by itself ---
class TestTheOperator:
    """Checkpoints that overlap, are aborted or never heard of again, in any order."""

    def opened(self, restored=None):
        operator = CommittingSink(Outside())
        context = OperatorContext("Outside", "outside", 0, 1, 128, join_receivers([]), {}, Clock(), tracks_changes=True)
        context.restored = restored
        operator.open(context)
        return operator

    def snapshot(self, operator, number):
        into = SubtaskSnapshot("outside", number, 0, Extent.FULL)
        operator.snapshot(into)
        (own,) = [state for state in into.finished() if state.name.kind is Kind.OWN]
        return pickling.loads(next(iter(own.pages)))

    def test_several_under_way(self):
        operator = self.opened()
        for number in (1, 2, 3):
            operator.records([number * 10], None)
            self.snapshot(operator, number)
        assert visible() == []
        operator.checkpoint_complete(2)
        assert visible() == [10, 20]
        operator.checkpoint_complete(3)
        operator.checkpoint_complete(3)
        assert commits() == [[10], [20], [30]]

    def test_what_was_committed_is_not_in_the_next_checkpoint(self):
        operator = self.opened()
        operator.records([1], None)
        first = self.snapshot(operator, 1)
        operator.checkpoint_complete(1)
        operator.records([2], None)
        second = self.snapshot(operator, 2)
        assert [list(part["pending"]) for part in (first, second)] == [[1], [2]]

    @settings(max_examples=150)
    @given(
        st.lists(
            st.sampled_from(["write", "write", "snapshot", "snapshot", "complete", "abort", "fail", "fail commit"]),
            max_size=30,
        )
    )
    def test_visible_is_what_complete_checkpoints_cover(self, steps):
        """Against an account: values are written in order; a checkpoint covers all that were written before it."""
        for shared in (STORE, EVENTS, ERRORS):
            shared.clear()
        operator, written, number = self.opened(), 0, 0
        taken, covered, last = {}, 0, None
        for step in steps:
            if step == "write":
                written += 1
                operator.records([written], None)
            elif step == "snapshot":
                number += 1
                taken[number] = (written, self.snapshot(operator, number))
            elif step in ("complete", "fail commit") and taken:
                complete = min(taken)
                covered, last = taken[complete]
                taken = {later: held for later, held in taken.items() if later > complete}
                if step == "fail commit":
                    operator, written, taken = self.opened(Restored(last)), covered, {}
                else:
                    operator.checkpoint_complete(complete)
            elif step == "abort" and taken:
                operator.checkpoint_aborted(min(taken))
                del taken[min(taken)]
            elif step == "fail":
                written, taken = covered, {}
                operator = self.opened(None if last is None else Restored(last))
            assert sorted(visible()) == list(range(1, covered + 1))


class Restored:
    """A checkpoint as the only subtask of a sink sees it."""

    subtask, parallelism = 0, 1

    def __init__(self, own):
        self._own = own

    def own(self):
        return self._own

    def all_own(self):
        return [self._own]
