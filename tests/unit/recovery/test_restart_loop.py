"""A job that fails starts again where its last checkpoint left it, as long as its strategy lets it."""

import logging
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.common import JobStatus
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.functions import CheckpointedFunction, KeyedProcessFunction, MapFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.engine.checkpoint.store import read_snapshot
from penstock.engine.job.restarts import DEFAULT_WITH_CHECKPOINTS, MOST_UNSTORED_ATTEMPTS, UnstoredAttempts
from penstock.errors import (
    CheckpointFailed,
    ConfigurationError,
    CorruptSnapshot,
    JobCancelled,
    JobFailed,
    ProgramError,
    SlotLost,
    SnapshotError,
)
from penstock.service.launch.submission import plan_of
from penstock.testing import ManualClock, fail, pause, scripted
from penstock.testing.cluster import InProcessCluster

FAILURES: dict = {}
"""By value: the errors that it still has to raise."""
SEEN: list = []
ATTEMPTS: list = []


@pytest.fixture(autouse=True)
def _fresh():
    FAILURES.clear()
    SEEN.clear()
    ATTEMPTS.clear()


class Fragile(MapFunction):
    """Passes values on, and fails as FAILURES says."""

    def open(self, runtime_context):
        self.attempt = runtime_context.get_attempt_number()
        ATTEMPTS.append(self.attempt)
        self.hit("open")

    def map(self, value):
        SEEN.append((self.attempt, value))
        self.hit(value)
        return value

    @staticmethod
    def hit(value):
        if FAILURES.get(value):
            raise FAILURES[value].pop(0)


def program(env):
    """1 to 4, each in an epoch of its own."""
    return scripted(env, 1, pause(), 2, pause(), 3, pause(), 4).map(Fragile())


def boom(times, kind=ValueError):
    return [kind("boom") for _ in range(times)]


class TestStrategies:
    def test_a_fixed_number_of_restarts(self, run, restarts, recording_clock):
        FAILURES[3] = boom(2)
        clock = recording_clock()
        outcome = run(program, restarts(2, "7777 ms"), clock=clock)
        assert outcome.results == [1, 2, 3, 4]
        assert ATTEMPTS == [0, 1, 2] and clock.rests.count(7777) == 2
        assert SEEN == [(0, 1), (0, 2), (0, 3), (1, 3), (2, 3), (2, 4)]

    def test_one_failure_too_many(self, run, restarts):
        FAILURES[3] = boom(3)
        with pytest.raises(JobFailed, match="ValueError: boom") as raised:
            run(program, restarts(2))
        assert raised.value.__notes__ == ["The job had been restarted 2 times; 2 restarts were used up."]
        assert (raised.value.record, ATTEMPTS) == ("3", [0, 1, 2])

    def test_no_restarts(self, run):
        FAILURES[3] = boom(1)
        with pytest.raises(JobFailed) as raised:
            run(program, {"restart-strategy.type": "none"})
        assert ATTEMPTS == [0] and not getattr(raised.value, "__notes__", [])

    def test_failures_that_are_far_apart(self, run, recording_clock):
        """The rate counts failures within the interval; here the wait before each restart is longer than that."""
        FAILURES[2], FAILURES[3] = boom(2), boom(2)
        options = {
            "restart-strategy.type": "failure-rate",
            "restart-strategy.failure-rate.max-failures-per-interval": 1,
            "restart-strategy.failure-rate.failure-rate-interval": "2 s",
            "restart-strategy.failure-rate.delay": "3 s",
        }
        clock = recording_clock()
        assert run(program, options, clock=clock).results == [1, 2, 3, 4]
        assert clock.rests.count(3000) == 4

    def test_failures_that_are_close_together(self, run):
        FAILURES[2] = boom(2)
        options = {
            "restart-strategy.type": "failure-rate",
            "restart-strategy.failure-rate.max-failures-per-interval": 1,
            "restart-strategy.failure-rate.failure-rate-interval": "10 min",
            "restart-strategy.failure-rate.delay": "1 s",
        }
        with pytest.raises(JobFailed) as raised:
            run(program, options)
        assert "it failed 2 times within 600000 ms, and 1 are allowed" in raised.value.__notes__[0]

    def test_waits_that_grow(self, run, recording_clock):
        FAILURES[2] = boom(4)
        options = {
            "restart-strategy.type": "exponential-delay",
            "restart-strategy.exponential-delay.initial-backoff": "1001 ms",
            "restart-strategy.exponential-delay.max-backoff": "5 s",
            "restart-strategy.exponential-delay.backoff-multiplier": "2",
            "restart-strategy.exponential-delay.jitter-factor": "0",
        }
        clock = recording_clock()
        assert run(program, options, clock=clock).results == [1, 2, 3, 4]
        assert [rest for rest in clock.rests if rest > 1000] == [1001, 2002, 4004, 5000]

    def test_a_job_with_checkpoints_restarts_without_being_told(self, run, recording_clock):
        FAILURES[3] = boom(2)
        clock = recording_clock()
        assert run(program, {"restart-strategy.type": None}, clock=clock).results == [1, 2, 3, 4]
        first, second = [rest for rest in clock.rests if rest > 500]
        initial = DEFAULT_WITH_CHECKPOINTS.initial_backoff
        assert initial <= first <= initial * 1.1 and initial * 1.35 <= second <= initial * 1.65

    def test_a_job_without_checkpoints_does_not(self, run):
        FAILURES[3] = boom(1)
        with pytest.raises(JobFailed):
            run(program, {"restart-strategy.type": None, "execution.checkpointing.interval": None})
        assert ATTEMPTS == [0]

    def test_without_checkpoints_a_restart_begins_at_the_beginning(self, run, restarts):
        FAILURES[3] = boom(1)
        run(program, {**restarts(1), "execution.checkpointing.interval": None})
        assert SEEN == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (1, 4)]

    def test_failures_before_the_first_checkpoint(self, run, restarts):
        FAILURES[1] = boom(2)
        assert run(program, restarts(3)).results == [1, 2, 3, 4]
        assert SEEN[:3] == [(0, 1), (1, 1), (2, 1)]


class TestWhatFails:
    @pytest.mark.parametrize("kind", [ValueError, SystemExit, CheckpointFailed, SlotLost, ZeroDivisionError])
    def test_whatever_a_function_raises(self, run, restarts, kind):
        FAILURES[3] = boom(1, kind)
        assert run(program, restarts(1)).results == [1, 2, 3, 4]

    def test_open(self, run, restarts):
        FAILURES["open"] = boom(2)
        assert run(program, restarts(2)).results == [1, 2, 3, 4]
        assert ATTEMPTS == [0, 1, 2]

    def test_the_source(self, run, restarts):
        """The source goes back to where the checkpoint left it, and so fails there again."""
        with pytest.raises(JobFailed, match="scripted failure") as raised:
            run(lambda env: scripted(env, 1, pause(), pause(), 2, fail()).map(Fragile()), restarts(1))
        assert "restarted 1 times" in raised.value.__notes__[0] and SEEN == [(0, 1), (0, 2), (1, 2)]

    def test_a_lost_slot(self, run, restarts):
        lost = ["its process is gone"]

        class Losing(InProcessCluster):
            def run(self, command):
                reports = super().run(command)
                if command.epoch == 2 and lost:
                    reports[0].lost = lost.pop()
                return reports

        outcome = run(program, restarts(1), cluster=Losing)
        assert outcome.results == [1, 2, 3, 4]
        assert "its process is gone" in outcome.loop.view.failures[0].message

    @pytest.mark.parametrize("kind", [ProgramError, ConfigurationError, SnapshotError, CorruptSnapshot])
    def test_what_another_try_cannot_heal_ends_the_job(self, run, restarts, kind):
        FAILURES[3] = boom(1, kind)
        with pytest.raises(kind, match="boom") as raised:
            run(program, restarts(10))
        assert isinstance(raised.value, JobFailed) and ATTEMPTS == [0]

    def test_the_note_says_so_after_restarts(self, run, restarts):
        FAILURES[3] = [ValueError("passing"), ProgramError("lasting")]
        with pytest.raises(ProgramError, match="lasting") as raised:
            run(program, restarts(10))
        assert raised.value.__notes__ == ["The job had been restarted 1 times; another try would not help."]

    def test_a_checkpoint_that_is_damaged_meanwhile(self, run, restarts, tmp_path):
        """The first failure is healed by a restart; that the checkpoint cannot be read is not."""
        options = {
            **restarts(10),
            "execution.checkpointing.dir": tmp_path,
            "execution.checkpointing.data-inline-threshold": "0 b",
        }

        def tampering(env):
            return program(env).map(lambda value: damage(tmp_path) if value == 3 else value)

        def damage(folder):
            for file in folder.glob("*/chk-*/slot-*"):
                file.write_bytes(b"")
            raise ValueError("and now?")

        with pytest.raises(CorruptSnapshot, match=r"chk-\d+/slot-0.*is truncated") as raised:
            run(tampering, options)
        assert "restarted 1 times; another try would not help" in raised.value.__notes__[0]


class TestExactlyOnce:
    """Failures change nothing in the results."""

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        script=st.lists(st.integers(0, 9) | st.just(pause()), min_size=1, max_size=14),
        failures=st.dictionaries(st.integers(0, 9), st.integers(1, 2), max_size=3),
        parallelism=st.integers(1, 2),
        interval=st.sampled_from([50, 100, 250]),
    )
    def test_for_any_script_and_any_failures(self, run, restarts, script, failures, parallelism, interval):
        FAILURES.clear()
        FAILURES.update({value: boom(times) for value, times in failures.items()})

        def build(env):
            return scripted(env, *script).map(Fragile()).key_by(lambda v: v % 3).process(Totals())

        options = {**restarts(100), "execution.checkpointing.interval": f"{interval} ms"}
        results = run(build, options, parallelism=parallelism).results
        values = [step for step in script if step != pause()]
        assert sorted(value for value, _, _ in results) == sorted(values)
        for key in range(3):
            mine = [value for value in values if value % 3 == key]
            running = [(count, total) for value, count, total in results if value % 3 == key]
            assert [count for count, _ in running] == list(range(1, len(mine) + 1))
            assert not mine or running[-1][1] == sum(mine)

    @pytest.mark.parametrize("failures", [0, 1])
    def test_a_checkpoint_holds_what_changed_since_the_one_before(self, run, restarts, failures):
        """Many keys at first, then one an epoch: later checkpoints are small and do not grow, also after a restart."""
        FAILURES[10_005] = boom(failures)
        script = [*range(2000), pause(), *[step for n in range(10) for step in (10_000 + n, pause())]]

        def build(env):
            return scripted(env, *script).map(Fragile()).key_by(lambda v: v % 5000).process(Totals())

        history = run(build, restarts(1)).coordinator.history
        first, *later = [completed.written for completed in history]
        assert len(later) >= 5 and max(later) < first / 5 and max(later) - min(later) < 100


class Totals(KeyedProcessFunction):
    """Emits each value with how many there were of its key, and their sum."""

    def open(self, runtime_context):
        self.held = runtime_context.get_state(ValueStateDescriptor("held"))

    def process_element(self, value, ctx):
        count, total = self.held.value() or (0, 0)
        self.held.update((count + 1, total + value))
        yield value, count + 1, total + value


class Held(ManualClock):
    """Holds a restart that is to come after 7777 milliseconds until a gate opens."""

    def __init__(self, gate):
        super().__init__()
        self.gate, self.resting = gate, threading.Event()

    def rest(self, millis, woken):
        if millis == 7777:
            self.resting.set()
            self.gate.wait(60)
        super().rest(millis, woken)


class TestWhatIsSeenFromOutside:
    def test_failures_are_logged(self, run, restarts, caplog):
        FAILURES[3] = boom(1)
        with caplog.at_level(logging.WARNING, logger="penstock"):
            run(program, restarts(1, "42 ms"))
        (record,) = [r for r in caplog.records if "restarts in" in r.getMessage()]
        assert record.name.startswith("penstock") and record.levelno == logging.WARNING
        assert "failed and restarts in 42 ms" in record.getMessage() and "ValueError: boom" in record.getMessage()

    def test_failures_are_remembered(self, run, restarts):
        FAILURES[3] = boom(2)
        failures = run(program, restarts(2)).loop.view.failures
        assert len(failures) == 2 and all("boom" in failure.message for failure in failures)
        assert failures[0].when < failures[1].when

    def test_a_job_that_waits_is_restarting(self, start, restarts, gate, until):
        FAILURES[3] = boom(1)
        clock = Held(gate)
        client = start(lambda env: program(env).discard(), restarts(1, "7777 ms"), clock=clock)
        assert clock.resting.wait(60)
        assert client.get_job_status().result(60) is JobStatus.RESTARTING
        gate.set()
        client.get_job_execution_result().result(60)
        assert client.get_job_status().result(60) is JobStatus.FINISHED

    def test_a_job_that_runs_again_is_running(self, start, restarts, until):
        FAILURES[2] = boom(1)

        def build(env):
            scripted(env, 1, pause(), 2, stay=True).map(Fragile()).discard()

        client = start(build, restarts(1, "1 ms"))
        until(lambda: (1, 2) in SEEN)
        until(lambda: client.get_job_status().result(60) is JobStatus.RUNNING)

    def test_a_job_that_waits_can_be_cancelled(self, start, restarts, until):
        FAILURES[1] = boom(1)
        client = start(lambda env: program(env).discard(), restarts(1, "1 h"))
        until(lambda: client.get_job_status().result(60) is JobStatus.RESTARTING)
        client.cancel().result(60)
        assert client.get_job_status().result(60) is JobStatus.CANCELED
        with pytest.raises(JobCancelled):
            client.get_job_execution_result().result(60)
        assert ATTEMPTS == [0]

    def test_a_job_that_failed_for_good(self, start, restarts):
        FAILURES[1] = boom(2)
        client = start(lambda env: program(env).discard(), restarts(1, "1 ms"))
        with pytest.raises(JobFailed):
            client.get_job_execution_result().result(60)
        assert client.get_job_status().result(60) is JobStatus.FAILED

    def test_results_of_an_attempt_that_failed_are_not_handed_out(self, run, restarts):
        """A result is handed out when a checkpoint covers it, so none comes twice."""
        FAILURES[3] = boom(3)

        def build(env):
            return scripted(env, 1, 2, pause(), "x", 3, "y", pause(), 4).map(Fragile())

        assert run(build, restarts(3)).results == [1, 2, "x", 3, "y", 4]

    def test_a_batch_job_begins_again_and_gives_its_results_once(self, run, restarts):
        FAILURES[3] = boom(2)

        def build(env):
            env.set_runtime_mode(RuntimeExecutionMode.BATCH)
            return env.from_collection([1, 2, 3, 4]).map(Fragile())

        assert run(build, restarts(2), epoch_records=1).results == [1, 2, 3, 4]
        assert ATTEMPTS == [0, 1, 2] and SEEN[-4:] == [(2, n) for n in (1, 2, 3, 4)]

    def test_who_asks_a_waiting_job_for_a_savepoint_gets_it_when_it_runs_again(
        self, start, restarts, tmp_path, gate, until
    ):
        FAILURES[2] = boom(1)

        def build(env):
            scripted(env, 1, pause(), 2, stay=True).map(Fragile()).discard()

        clock = Held(gate)
        client = start(build, restarts(1, "7777 ms"), clock=clock)
        assert clock.resting.wait(60)
        asked = client.trigger_savepoint(str(tmp_path))
        until(lambda: client._job.job_driver._messages)
        gate.set()
        path = asked.result(60)
        assert read_snapshot(path).savepoint and client.get_job_status().result(60) is JobStatus.RUNNING

    def test_or_hears_that_there_is_none(self, start, restarts, tmp_path, until):
        FAILURES[1] = boom(1)
        client = start(lambda env: program(env).discard(), restarts(1, "1 h"))
        until(lambda: client.get_job_status().result(60) is JobStatus.RESTARTING)
        asked = client.trigger_savepoint(str(tmp_path))
        time.sleep(0.05)  # for a wait that is cut short to show
        assert client.get_job_status().result(60) is JobStatus.RESTARTING, "asking does not cut the wait short"
        client.cancel().result(60)
        assert isinstance(asked.exception(60), CheckpointFailed) and ATTEMPTS == [0]

    def test_printing_happens_at_once_and_may_happen_again(self, restarts, capsys, start):
        FAILURES[3] = boom(1)
        client = start(
            lambda env: program(env).print(), {**restarts(1, "1 ms"), "execution.checkpointing.interval": "1 h"}
        )
        client.get_job_execution_result().result(60)
        assert capsys.readouterr().out.split() == ["1", "2", "1", "2", "3", "4"]

    def test_no_thread_is_left_behind(self, run, restarts, until):
        before = threading.active_count()
        FAILURES[3] = boom(3)
        run(program, restarts(3))
        until(lambda: threading.active_count() <= before)


class Unstorable(MapFunction, CheckpointedFunction):
    """Has no state to give, ever."""

    def open(self, runtime_context):
        ATTEMPTS.append(runtime_context.get_attempt_number())

    def map(self, value):
        return value

    def initialize_state(self, context):
        pass

    def snapshot_state(self, context):
        raise OSError("there is no state to give")


class TestCheckpointsThatAlwaysFail:
    def test_end_a_bounded_job_with_the_reason(self, run, restarts):
        with pytest.raises(CheckpointFailed, match="there is no state to give") as failed:
            run(lambda env: env.from_collection([1, 2]).map(Unstorable()), restarts(1000))
        assert list(range(MOST_UNSTORED_ATTEMPTS)) == ATTEMPTS
        assert "another try would not help" in "".join(failed.value.__notes__)

    def test_do_not_end_a_job_that_has_stored_one_or_has_no_end(self):
        def attempts(build, stored):
            environment = StreamExecutionEnvironment()
            build(environment).print()
            counted = UnstoredAttempts(plan_of(environment, None))
            return [counted.is_hopeless(CheckpointFailed("full"), has_stored) for has_stored in stored]

        def bounded(env):
            return env.from_collection([1])

        def unbounded(env):
            return env.generate(lambda i: i, rate=1)

        assert attempts(bounded, [False] * 4) == [False, False, True, True]
        assert attempts(bounded, [False, False, True, False, False, False]) == [False] * 5 + [True]
        assert attempts(unbounded, [False] * 9) == [False] * 9
