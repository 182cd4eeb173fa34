"""Functions hear what became of checkpoints: once, in order, by number."""

import threading

import pytest

from penstock.datastream.functions import (
    CheckpointedFunction,
    CheckpointListener,
    CoProcessFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    SinkFunction,
    SourceFunction,
)
from penstock.errors import CheckpointFailed, JobFailed
from penstock.testing import pause, scripted

EVENTS: list = []
"""(who, subtask, what, checkpoint)"""
DECLINES: list = []
"""Who refuses the next snapshot."""
ERRORS: dict = {}
"""(who, what) to the errors still to be raised there."""
STOP = threading.Event()


@pytest.fixture(autouse=True)
def _fresh():
    EVENTS.clear()
    DECLINES.clear()
    ERRORS.clear()
    STOP.clear()
    yield
    STOP.set()


class Hears(CheckpointedFunction, CheckpointListener):
    """Writes down all calls."""

    subtask = 0

    def __init__(self, who):
        self.who = who

    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()
        EVENTS.append((self.who, self.subtask, "open", None))

    def close(self):
        EVENTS.append((self.who, self.subtask, "close", None))

    def initialize_state(self, context):
        EVENTS.append((self.who, self.subtask, "initialize", context.get_restored_checkpoint_id()))

    def snapshot_state(self, context):
        EVENTS.append((self.who, self.subtask, "snapshot", context.get_checkpoint_id()))
        if self.who in DECLINES:
            DECLINES.remove(self.who)
            raise ValueError(f"{self.who} declines")

    def notify_checkpoint_complete(self, checkpoint_id):
        self._hear("complete", checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id):
        self._hear("aborted", checkpoint_id)

    def _hear(self, what, checkpoint_id):
        EVENTS.append((self.who, self.subtask, what, checkpoint_id))
        if ERRORS.get((self.who, what)):
            raise ERRORS[self.who, what].pop()


class HearingMap(Hears, MapFunction):
    def map(self, value):
        return value


class HearingFlatMap(Hears, FlatMapFunction):
    def flat_map(self, value):
        yield value


class HearingProcess(Hears, KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


class HearingCoProcess(Hears, CoProcessFunction):
    def process_element1(self, value, ctx):
        yield value

    def process_element2(self, value, ctx):
        yield value


class HearingSink(Hears, SinkFunction):
    def invoke(self, value, context=None):
        pass


class HearingSource(Hears, SourceFunction):
    def run(self, ctx):
        while not STOP.wait(0.001):
            pass

    def cancel(self):
        STOP.set()


def told(who="map", subtask=0):
    return [(what, number) for name, index, what, number in EVENTS if (name, index) == (who, subtask)]


def heard(who="map", subtask=0):
    return [event for event in told(who, subtask) if event[0] in ("complete", "aborted")]


SCRIPT = (1, pause(), 2, pause(), 3, pause(), 4)
TOLERANT = {"execution.checkpointing.tolerable-failed-checkpoints": "5"}


def program(env):
    return scripted(env, *SCRIPT).map(HearingMap("map"))


class TestComplete:
    def test_once_for_each_checkpoint_and_in_order(self, run):
        outcome = run(program)
        numbers = [completed.number for completed in outcome.coordinator.history]
        assert len(numbers) >= 3
        assert heard() == [("complete", number) for number in numbers]

    def test_after_the_snapshot_and_before_the_next(self, run):
        run(program)
        calls = [event for event in told() if event[0] in ("snapshot", "complete")]
        assert calls == [(what, n) for n in range(1, len(calls) // 2 + 1) for what in ("snapshot", "complete")]

    def test_the_last_one_is_told_before_the_end(self, run):
        run(program)
        last = max(n for what, n in told() if what == "snapshot")
        assert told()[-2:] == [("complete", last), ("close", None)]

    def test_state_is_initialized_before_the_function_is_opened(self, run):
        run(program)
        assert told()[:2] == [("initialize", None), ("open", None)]

    def test_every_subtask_of_every_operator_hears_it(self, run):
        def build(env):
            stream = scripted(env, *SCRIPT).rebalance().map(HearingMap("map")).flat_map(HearingFlatMap("flat"))
            keyed = stream.key_by(lambda v: v).process(HearingProcess("keyed"))
            both = keyed.connect(scripted(env, 5, pause(), 6)).process(HearingCoProcess("both"))
            both.add_sink(HearingSink("sink"))
            return both

        numbers = [c.number for c in run(build, parallelism=2).coordinator.history]
        for who in ("map", "flat", "keyed", "both", "sink"):
            for subtask in range(2):
                assert heard(who, subtask) == [("complete", n) for n in numbers], (who, subtask)

    def test_those_upstream_hear_it_first(self, run):
        run(lambda env: scripted(env, *SCRIPT).map(HearingMap("first")).map(HearingMap("second")))
        first = [who for who, _, what, number in EVENTS if (what, number) == ("complete", 1)]
        assert first == ["first", "second"]

    def test_a_source_hears_it(self, start, until):
        client = start(
            lambda env: env.add_source(HearingSource("source")).discard(), {"execution.checkpointing.interval": "10 ms"}
        )
        until(lambda: len(heard("source")) >= 3)
        assert heard("source")[:3] == [("complete", 1), ("complete", 2), ("complete", 3)]
        client.cancel().result(60)


class TestAborted:
    def test_when_another_operator_declines(self, run, caplog):
        DECLINES.append("second")

        def build(env):
            return scripted(env, *SCRIPT).map(HearingMap("first")).map(HearingMap("second"))

        run(build, TOLERANT)
        for who in ("first", "second"):
            assert heard(who)[:2] == [("aborted", 1), ("complete", 2)]
            assert [n for _, n in heard(who)] == sorted({n for _, n in heard(who)})
        assert "second declines" in caplog.text

    def test_when_a_subtask_elsewhere_declines(self, run):
        DECLINES.append("map")
        run(lambda env: scripted(env, *SCRIPT).rebalance().map(HearingMap("map")), TOLERANT, parallelism=3)
        for subtask in range(3):
            assert heard("map", subtask)[:2] == [("aborted", 1), ("complete", 2)]

    def test_several_in_a_row(self, run):
        DECLINES.extend(["map"] * 3)
        run(program, TOLERANT)
        assert heard()[:4] == [("aborted", 1), ("aborted", 2), ("aborted", 3), ("complete", 4)]

    def test_when_it_takes_too_long(self, hooked, gate, start, until):
        """The storage hangs for one checkpoint; the function hears that it was given up."""

        def hang(call, path):
            if call == "write" and "chk-1" in path:
                gate.wait(60)

        hooked.on(hang)
        options = {
            **TOLERANT,
            "execution.checkpointing.interval": "20 ms",
            "execution.checkpointing.timeout": "150 ms",
            "execution.checkpointing.dir": hooked.url,
            "execution.checkpointing.data-inline-threshold": "0 b",
        }
        start(lambda env: scripted(env, 1, stay=True).map(HearingMap("map")).discard(), options)
        until(lambda: ("aborted", 1) in heard())
        gate.set()
        until(lambda: any(what == "complete" for what, _ in heard()))
        assert heard()[0] == ("aborted", 1) and ("complete", 1) not in heard()

    def test_a_failure_of_the_job_is_not_told(self, run, restarts):
        """A checkpoint under way when the job failed is reported neither as complete nor as aborted: the functions are
        new."""
        DECLINES.append("map")
        run(program, restarts(1))
        events = told()
        second_life = events.index(("initialize", None), 1)
        assert ("aborted", 1) not in events and ("complete", 1) not in events
        assert [e for e in events[second_life:] if e[0] == "complete"]


class TestErrors:
    def test_a_listener_that_fails_fails_the_job(self, run):
        ERRORS["map", "complete"] = [ValueError("did not want to know")]
        with pytest.raises(JobFailed, match=r"Map \(uid .*ValueError: did not want to know") as raised:
            run(program)
        assert "notify_checkpoint_complete" in raised.value.cause or "_hear" in raised.value.cause

    def test_the_checkpoint_is_complete_all_the_same(self, run, restarts):
        ERRORS["map", "complete"] = [ValueError("once")]
        outcome = run(program, restarts(1))
        assert outcome.results == [1, 2, 3, 4]
        assert ("initialize", 1) in told(), "it was restored from the checkpoint of which it did not want to know"

    def test_a_listener_that_fails_at_the_last_checkpoint(self, run, restarts):
        """Everything has been read, and the job is restored to its very end."""
        run(program)
        last = max(n for what, n in told() if what == "complete")
        EVENTS.clear()

        class Last(list):
            """Raises when only the last notice is left."""

            def __bool__(self):
                return len(self) > 0 and EVENTS[-1][3] == last

        ERRORS["map", "complete"] = Last([ValueError("at the end")])
        assert run(program, restarts(1)).results == [1, 2, 3, 4]
        assert ("initialize", last) in told()

    def test_one_that_fails_when_told_of_a_failure(self, run):
        DECLINES.append("map")
        ERRORS["map", "aborted"] = [ValueError("nor of that")]
        with pytest.raises(JobFailed, match="nor of that"):
            run(program, TOLERANT)


class TestSavepoints:
    def build(self, env):
        scripted(env, 1, stay=True).map(HearingMap("map")).discard()

    NO_CHECKPOINTS = {"execution.checkpointing.interval": None}

    def test_one_along_the_way_is_not_told(self, start, tmp_path, until):
        client = start(self.build, self.NO_CHECKPOINTS)
        client.trigger_savepoint(str(tmp_path)).result(60)
        client.trigger_savepoint(str(tmp_path)).result(60)
        assert [n for what, n in told() if what == "snapshot"] == [1, 2] and heard() == []

    def test_the_one_that_ends_the_job_is(self, start, tmp_path):
        client = start(self.build, self.NO_CHECKPOINTS)
        client.stop_with_savepoint(False, str(tmp_path)).result(60)
        assert told()[-3:] == [("snapshot", 1), ("complete", 1), ("close", None)]

    def test_numbers_are_shared_with_checkpoints(self, start, tmp_path, until):
        client = start(self.build, {"execution.checkpointing.interval": "10 ms"})
        until(lambda: heard())
        client.trigger_savepoint(str(tmp_path)).result(60)
        until(lambda: len(heard()) > 3)
        client.cancel().result(60)
        taken = [n for what, n in told() if what == "snapshot"]
        assert taken == list(range(1, len(taken) + 1))
        assert len(set(taken) - {n for _, n in heard()}) <= 2, "the savepoint, and the last one if it was cut short"

    def test_one_that_fails_is_told_to_who_asked(self, start, tmp_path, until):
        client = start(self.build, self.NO_CHECKPOINTS)
        until(lambda: EVENTS)
        DECLINES.append("map")
        with pytest.raises(CheckpointFailed, match=r"the savepoint failed:.*map declines"):
            client.trigger_savepoint(str(tmp_path)).result(60)
        assert client.trigger_savepoint(str(tmp_path)).result(60)
