"""A SourceFunction and checkpoints: what it emitted and where it is are in the same one."""

import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common.watermark_strategy import Watermark
from penstock.datastream.functions import (
    CheckpointedFunction,
    MapFunction,
    ParallelSourceFunction,
    ProcessFunction,
    SourceFunction,
)
from penstock.datastream.state import ListStateDescriptor
from penstock.engine.operators.sources import source_function
from penstock.engine.operators.sources.source_function import BufferedSourceContext, FunctionSource
from penstock.errors import CheckpointFailed, ContextError, JobFailed
from penstock.testing import ManualClock, pause, scripted

RESTORED: list = []
"""(what the source found in its state, how many elements waited in the buffer)"""
FAILURES: list = []
RUNNING: list = []
"""Contexts that a source has been given."""
RELEASED = threading.Event()


@pytest.fixture(autouse=True)
def _fresh():
    for shared in (RESTORED, FAILURES, RUNNING):
        shared.clear()
    RELEASED.clear()
    yield
    RELEASED.set()


class Counts(SourceFunction, CheckpointedFunction):
    """Counts to a number, in steps: advances and emits inside the lock."""

    def __init__(self, last, pause=0.0, together=1):
        self.last, self.pause, self.together = last, pause, together

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("next"))
        self.next = next(iter(self.state.get()), 0)
        RESTORED.append(self.next)
        self.stopped = False

    def snapshot_state(self, context):
        assert self.next % self.together == 0, "a checkpoint inside the lock"
        self.state.update([self.next])

    def run(self, ctx):
        RUNNING.append(ctx)
        while self.next < self.last and not self.stopped:
            with ctx.get_checkpoint_lock():
                for _ in range(self.together):
                    ctx.collect(self.next)
                    self.next += 1
            if self.pause:
                time.sleep(self.pause)

    def cancel(self):
        self.stopped = True


class Fragile(MapFunction):
    def map(self, value):
        if value in FAILURES:
            FAILURES.remove(value)
            raise ValueError("boom")
        return value


QUICK = {"execution.checkpointing.interval": "10 ms"}


class TestPositionAndElements:
    @pytest.mark.parametrize("together", [1, 5])
    def test_every_element_arrives_once(self, run, restarts, together, recording_clock):
        """Failures here and there, checkpoints whenever an epoch ends."""
        FAILURES.extend([30, 90, 150])
        outcome = run(
            lambda env: env.add_source(Counts(200, 0.0005, together)).map(Fragile()),
            {**QUICK, **restarts(5, "1 ms")},
            epoch_records=7,
            clock=recording_clock(tick=3),
        )
        assert outcome.results == list(range(200))
        assert not FAILURES and len(RESTORED) == 4

    def test_what_waits_in_the_buffer_is_part_of_the_checkpoint(self, run, restarts, recording_clock):
        """No checkpoint comes before the source is through; a restored one emits nothing, and all arrive."""
        FAILURES.append(400)
        outcome = run(
            lambda env: env.add_source(Counts(500, together=500)).map(Fragile()),
            {**QUICK, **restarts(1, "1 ms")},
            epoch_records=10,
            clock=recording_clock(tick=3),
        )
        assert outcome.results == list(range(500))
        assert RESTORED[1] == 500, "the source's state is ahead of what was read"

    def test_timestamps_and_watermarks_wait_there_too(self, run, restarts, recording_clock):
        FAILURES.append("c")
        outcome = run(
            lambda env: env.add_source(Timed()).map(Fragile()).process(Times()),
            {**QUICK, **restarts(1, "1 ms")},
            epoch_records=1,
            clock=recording_clock(tick=30),
        )
        assert outcome.results == [("a", 10, -(2**63)), ("b", None, 5), ("c", 20, 15), ("d", 30, 15)]
        assert RUNNING == ["run", "run"]

    def test_a_source_that_has_ended_does_not_begin_again(self, run, restarts, recording_clock):
        """The job failed after a checkpoint in which the source had already ended."""
        FAILURES.append(("late", 3))

        def build(env):
            slow = scripted(env, *[step for n in range(5) for step in (("late", n), pause())])
            return env.add_source(Counts(3)).map(lambda n: ("source", n)).union(slow).map(Fragile())

        results = run(build, restarts(1)).results
        assert sorted(results) == sorted([("source", n) for n in range(3)] + [("late", n) for n in range(5)])

    def test_a_source_without_state_starts_again_but_its_buffer_is_not_lost(self, run, restarts, recording_clock):
        """A source that does not keep its position can only guarantee at least once."""
        FAILURES.append(40)
        outcome = run(
            lambda env: env.add_source(Forgetful(50)).map(Fragile()),
            {**QUICK, **restarts(1, "1 ms")},
            epoch_records=10,
            clock=recording_clock(tick=3),
        )
        assert set(outcome.results) == set(range(50))


class Timed(SourceFunction, CheckpointedFunction):
    """Emits everything at once, and knows that it has done so."""

    def initialize_state(self, context):
        self.done = context.get_operator_state_store().get_list_state(ListStateDescriptor("done"))

    def snapshot_state(self, context):
        pass

    def run(self, ctx):
        RUNNING.append("run")
        with ctx.get_checkpoint_lock():
            if list(self.done.get()):
                return
            ctx.collect_with_timestamp("a", 10)
            ctx.emit_watermark(Watermark(5))
            ctx.collect("b")
            ctx.emit_watermark(Watermark(15))
            ctx.collect_with_timestamp("c", 20)
            ctx.collect_with_timestamp("d", 30)
            self.done.add(True)
        RELEASED.wait(0.5)

    def cancel(self):
        pass


class Times(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


class Forgetful(SourceFunction):
    def __init__(self, last):
        self.last = last

    def run(self, ctx):
        for n in range(self.last):
            ctx.collect(n)

    def cancel(self):
        pass


class TestTheLock:
    def test_a_full_buffer_does_not_hold_up_a_checkpoint(self, start, until, monkeypatch):
        """The source waits inside the lock for room, and only the epochs that follow would make room."""
        monkeypatch.setattr(source_function, "BUFFERED_ELEMENTS", 3)
        client = start(
            lambda env: env.add_source(Counts(10_000, together=100)).discard(),
            {**QUICK, "penstock.epoch.max-records": 2},
        )
        coordinator = client._job.job_driver.coordinator
        until(lambda: len(coordinator.history) >= 3)

    def test_the_buffer_is_bounded_again_afterwards(self, until):
        context = BufferedSourceContext(room=3)
        filler = threading.Thread(target=lambda: fill(context), daemon=True)
        filler.start()
        until(lambda: len(context.waiting()) >= 3)
        with context.steady():
            held = len(context.waiting())
            time.sleep(0.05)  # for an element to show
            assert len(context.waiting()) == held, "nothing is emitted while a checkpoint is taken"
        time.sleep(0.05)
        taken = context.take(10**9, 0)
        time.sleep(0.05)  # for too many to show
        assert len(context.waiting()) <= 3 and taken
        context.close()
        filler.join(60)

    def test_a_busy_source_does_not_keep_a_checkpoint_waiting(self):
        """It takes the lock again as soon as it has let go of it. The one who waits must get it soon all the same,
        because as long as it waits the buffer has no limit."""
        context = BufferedSourceContext()
        busy = threading.Thread(target=lambda: fill(context, forever=True), daemon=True)
        busy.start()
        sizes = []
        for _ in range(5):
            with context.steady():
                sizes.append(len(context.waiting()))
            context.take(10**9, 0)
        context.close()
        busy.join(60)
        assert max(sizes) < 10 * source_function.BUFFERED_ELEMENTS, sizes

    def test_a_source_that_never_lets_go_is_named(self, run, monkeypatch, recording_clock):
        monkeypatch.setattr(source_function, "LOCK_SECONDS", 0.05)
        with pytest.raises(
            CheckpointFailed, match=r"Custom Source \(uid .*has held its checkpoint lock for 0.05 s: emit"
        ):
            run(lambda env: env.add_source(Greedy()), QUICK, clock=recording_clock(tick=5))

    def test_that_can_be_tolerated(self, run, monkeypatch, recording_clock):
        """The job goes on without checkpoints until the source lets go."""
        monkeypatch.setattr(source_function, "LOCK_SECONDS", 0.02)
        options = {**QUICK, "execution.checkpointing.tolerable-failed-checkpoints": 1000}
        outcome = run(lambda env: env.add_source(Greedy(0.1)), options, clock=recording_clock(tick=5))
        assert outcome.results == [1, 2]

    def test_the_lock_can_be_taken_twice_by_the_source(self):
        context = BufferedSourceContext()
        with context.get_checkpoint_lock(), context.get_checkpoint_lock():
            context.collect(1)
        with context.steady():
            assert [value for _, value, _ in context.waiting()] == [1]

    def test_an_error_does_not_keep_the_lock(self):
        context = BufferedSourceContext()
        with pytest.raises(ZeroDivisionError), context.steady():
            1 / 0
        done = threading.Event()
        threading.Thread(target=lambda: context.get_checkpoint_lock().acquire() and done.set(), daemon=True).start()
        assert done.wait(60)

    def test_waiting_for_it_in_vain(self):
        context, taken = BufferedSourceContext(patience=0.01), threading.Event()
        threading.Thread(target=lambda: (context.get_checkpoint_lock().acquire(), taken.set()), daemon=True).start()
        assert taken.wait(60)
        with pytest.raises(ContextError, match="release it between elements"), context.steady():
            pytest.fail("the lock is held by another thread")


def fill(context, forever=False):
    """Emits under the lock for as long as it may."""
    try:
        n = 0
        while True:
            with context.get_checkpoint_lock():
                for _ in range(1 if forever else 50):
                    context.collect(n)
                    n += 1
    except source_function.Cancelled:
        return


class Greedy(SourceFunction):
    """Holds the lock for its whole life, or for so many seconds."""

    def __init__(self, seconds=None):
        self.seconds = seconds

    def run(self, ctx):
        with ctx.get_checkpoint_lock():
            ctx.collect(1)
            RELEASED.wait(self.seconds or 60)
        ctx.collect(2)

    def cancel(self):
        RELEASED.set()


class Shares(ParallelSourceFunction, CheckpointedFunction):
    """Emits its share of the numbers below a limit at once, and then waits."""

    def __init__(self, limit):
        self.limit = limit

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("done"))
        self.emitted = bool(list(self.state.get())) or context.is_restored()
        RESTORED.append(context.is_restored())

    def snapshot_state(self, context):
        self.state.update([True])

    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.of = runtime_context.get_number_of_parallel_subtasks()
        self.stopped = threading.Event()

    def run(self, ctx):
        if not self.emitted:
            with ctx.get_checkpoint_lock():
                for n in range(self.subtask, self.limit, self.of):
                    ctx.collect(n)
                self.emitted = True
                RUNNING.append(self.subtask)
        self.stopped.wait(60)

    def cancel(self):
        self.stopped.set()


ARRIVED: list = []


MAY_GO_ON = threading.Event()


class Arrives(MapFunction):
    """Waits with the first element until it may go on, so that the others pile up in front of it."""

    def map(self, value):
        ARRIVED.append(value)
        MAY_GO_ON.wait(60)
        return value


class TestRescaling:
    @pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 2), (2, 2), (3, 1)])
    def test_what_waits_is_dealt_out(self, start, until, tmp_path, before, after):
        """Most elements are still in the buffers when the job is stopped; those who go on read them all, once."""
        ARRIVED.clear()
        MAY_GO_ON.clear()

        def build(env):
            env.add_source(Shares(200)).uid("source").map(Arrives()).discard()

        options = {"execution.checkpointing.interval": None, "penstock.epoch.max-records": 10}
        client = start(build, options, parallelism=before)
        until(lambda: len(RUNNING) == before and ARRIVED)
        stopping = client.stop_with_savepoint(False, str(tmp_path))
        until(lambda: client._job.job_driver._messages)
        MAY_GO_ON.set()
        path = stopping.result(60)
        first = len(ARRIVED)
        assert 0 < first < 200, "nothing was left in the buffers"
        RUNNING.clear()
        client = start(build, {**options, "execution.state-recovery.path": path}, parallelism=after)
        until(lambda: len(ARRIVED) >= 200)
        client.cancel().result(60)
        assert sorted(ARRIVED) == list(range(200)) and RUNNING == []

    @settings(max_examples=50)
    @given(st.lists(st.lists(st.integers(), max_size=5), min_size=1, max_size=5), st.integers(1, 6))
    def test_nothing_is_lost_and_order_within_a_buffer_stays(self, buffers, parallelism):
        waiting = [[(0, (index, n), None) for n in range(len(buffer))] for index, buffer in enumerate(buffers)]
        dealt = FunctionSource(None).redistribute([(True, buffer) for buffer in waiting], parallelism)
        shares = [share for _, share in dealt]
        assert len(shares) == parallelism
        assert sorted(e for share in shares for e in share) == sorted(e for buffer in waiting for e in buffer)
        for share in shares:
            for index in range(len(buffers)):
                mine = [value[1] for _, value, _ in share if value[0] == index]
                assert mine == sorted(mine)


class TestClosing:
    def test_a_restart_stops_the_running_source(self, run, restarts, until, recording_clock):
        FAILURES.append(5)
        run(
            lambda env: env.add_source(Counts(50, 0.001)).map(Fragile()),
            {**QUICK, **restarts(1, "1 ms")},
            clock=recording_clock(tick=3),
        )
        first, second = RUNNING
        assert first._closed and first is not second
        until(lambda: not [t for t in threading.enumerate() if t.name.startswith("source ")])

    def test_initialize_state_that_fails(self, run, restarts):
        class Refuses(Counts):
            def initialize_state(self, context):
                raise ValueError("I will not")

            def close(self):
                RESTORED.append("closed")

        with pytest.raises(JobFailed, match=r"Custom Source.*ValueError: I will not"):
            run(lambda env: env.add_source(Refuses(3)), clock=ManualClock())
