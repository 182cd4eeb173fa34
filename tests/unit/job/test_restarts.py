"""When a failed job is started again: Flink's own answers, and properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import RestartStrategies, RestartStrategyConfiguration
from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.job.restarts import UnstoredAttempts, restarts_of
from penstock.errors import CheckpointFailed, SlotLost
from penstock.service.launch.submission import plan_of

Exponential = RestartStrategies.ExponentialDelayRestartStrategyConfiguration
GAPS = st.lists(st.integers(0, 200), max_size=30)


def delays(restarts, gaps, start=1_000_000):
    """The answer to each failure of a job whose attempts run for `gaps` ms, up to the one that ends it."""
    now, answers = start, []
    for gap in gaps:
        now += gap
        answers.append(restarts.count_failure(now))
        if answers[-1] is None:
            break
        now += answers[-1]
    return answers


@pytest.mark.parametrize(
    ("strategy", "gaps", "expected"),
    [
        (
            Exponential(100, 1000, 1.5, 5000, 0.0),
            [1, 1, 1, 1, 1, 1, 1, 1, 1, 4999, 5000, 1, 5001, 1],
            [100, 150, 225, 337, 506, 759, 1000, 1000, 1000, 1000, 100, 150, 100, 150],
        ),
        (
            Exponential(100, 1000, 2.0, 5000, 0.0, 3),
            [1, 1, 1, 5000, 1, 1, 1],
            [100, 200, 400, 100, 200, 400, None],
        ),
        (
            RestartStrategies.failure_rate_restart(2, 100, 10),
            [1, 30, 70, 30, 51, 51, 29, 51],
            [10, 10, 10, 10, 10, 10, None],
        ),
        (RestartStrategies.fixed_delay_restart(2, 7), [0, 0, 0], [7, 7, None]),
        (RestartStrategies.fixed_delay_restart(0, 7), [0], [None]),
        (RestartStrategies.no_restart(), [0], [None]),
    ],
)
def test_what_flink_answers(strategy, gaps, expected):
    """The first three were recorded from Flink 2.3's own classes on a clock that is set by hand."""
    assert delays(restarts_of(strategy, True, 0), gaps) == expected


@pytest.mark.parametrize("strategy", [None, RestartStrategies.fall_back_restart()])
class TestWithoutAStrategy:
    def test_a_job_without_checkpoints_is_not_restarted(self, strategy):
        assert restarts_of(strategy, False).count_failure(0) is None

    def test_a_job_with_checkpoints_is_restarted_for_ever_after_growing_waits(self, strategy):
        answers = delays(restarts_of(strategy, True, "a job"), [1] * 3000)
        middle = [min(1000 * 1.5**n, 60_000) for n in range(12)]
        assert all(
            0.9 * wait - 1 <= answer <= 1.1 * wait + 1 for answer, wait in zip(answers[:12], middle, strict=True)
        )
        assert set(answers[13:]) == {60_000}

    def test_an_hour_of_peace_starts_from_the_beginning(self, strategy):
        answers = delays(restarts_of(strategy, True, 1), [1] * 8 + [3_600_000])
        assert answers[-2] > 10_000 and answers[-1] <= 1100


def test_an_explicit_strategy_needs_no_checkpoints():
    assert restarts_of(RestartStrategies.fixed_delay_restart(1, 5), False).count_failure(0) == 5


def test_the_same_seed_gives_the_same_waits():
    strategy = Exponential(1000, 100_000, 2.0, 10_000, 0.5)
    same, again, other = (delays(restarts_of(strategy, True, seed), [1] * 6) for seed in ("a", "a", "b"))
    assert same == again != other


@pytest.mark.parametrize(
    ("strategy", "failures", "text"),
    [
        (RestartStrategies.no_restart(), 1, "its restart strategy allows no restarts"),
        (None, 1, "a job without checkpoints and without a restart strategy is not restarted"),
        (RestartStrategies.fixed_delay_restart(3, 0), 2, "2 of 3 restarts were used"),
        (RestartStrategies.fixed_delay_restart(3, 0), 3, "3 of 3 restarts were used"),
        (RestartStrategies.fixed_delay_restart(3, 0), 4, "3 restarts were used up"),
        (RestartStrategies.fixed_delay_restart(1, 0), 2, "1 restart was used up"),
        (RestartStrategies.failure_rate_restart(2, 9, 0), 1, "it failed once within 9 ms, and 2 are allowed"),
        (RestartStrategies.failure_rate_restart(2, 9, 0), 3, "it failed 3 times within 9 ms, and 2 are allowed"),
        (Exponential(1, 1, 1.5, 9, 0.0), 4, "it failed 4 times without an attempt that ran for 9 ms"),
        (Exponential(1, 1, 1.5, 9, 0.0, 2), 1, "1 of 2 restarts were used without an attempt that ran for 9 ms"),
        (Exponential(1, 1, 1.5, 9, 0.0, 2), 3, "2 restarts were used up without an attempt that ran for 9 ms"),
    ],
)
def test_descriptions(strategy, failures, text):
    restarts = restarts_of(strategy, False, 0)
    delays(restarts, [1] * failures)
    assert restarts.describe() == text


@pytest.mark.parametrize("bounded", [True, False])
def test_only_checkpoints_that_fail_in_a_row_from_the_beginning_end_a_bounded_job(bounded):
    env = StreamExecutionEnvironment()
    (env.from_collection([1]) if bounded else env.generate(rate=1)).print()
    attempts, failed = UnstoredAttempts(plan_of(env, "job")), CheckpointFailed("full")
    errors = [failed, failed, SlotLost("gone"), failed, failed, failed]
    answers = [attempts.is_hopeless(error, False) for error in errors]
    assert answers == [False] * 5 + [bounded]
    assert not attempts.is_hopeless(failed, True), "a checkpoint was complete"


def test_a_strategy_of_another_kind_is_refused():
    with pytest.raises(TypeError, match="made with RestartStrategies"):
        restarts_of(RestartStrategyConfiguration(), True)


@given(st.integers(0, 20), st.integers(0, 500), GAPS)
def test_fixed_delay_gives_every_restart_the_same_wait(attempts, delay, gaps):
    expected = [delay] * attempts + [None]
    assert (
        delays(restarts_of(RestartStrategies.fixed_delay_restart(attempts, delay), False), gaps)
        == expected[: len(gaps)]
    )


@given(st.integers(1, 5), st.integers(1, 300), st.integers(0, 50), GAPS)
def test_failure_rate_equals_counting_a_sliding_window(allowed, interval, delay, gaps):
    restarts = restarts_of(RestartStrategies.failure_rate_restart(allowed, interval, delay), False)
    now, failures = 0, []
    for gap in gaps:
        now += gap
        failures.append(now)
        within = sum(1 for time in failures if now - interval <= time)
        assert restarts.count_failure(now) == (delay if within <= allowed else None)
        now += delay


@st.composite
def exponential(draw, **fixed):
    initial = draw(st.integers(1, 1000))
    values = {
        "initial_backoff": initial,
        "max_backoff": draw(st.integers(initial, 100_000)),
        "backoff_multiplier": draw(st.floats(1, 10)),
        "reset_backoff_threshold": draw(st.integers(1, 1000)),
        "jitter_factor": draw(st.floats(0, 1)),
        "attempts_before_reset_backoff": draw(st.integers(1, 20)),
    }
    return Exponential(**{**values, **fixed})


@given(exponential(), GAPS, st.integers())
def test_waits_stay_within_their_bounds(strategy, gaps, seed):
    for delay in delays(restarts_of(strategy, True, seed), gaps):
        assert delay is None or strategy.initial_backoff <= delay <= strategy.max_backoff


@given(exponential(jitter_factor=0.0, reset_backoff_threshold=1000, attempts_before_reset_backoff=100), GAPS)
def test_waits_never_shrink_without_a_quiet_time(strategy, gaps):
    answers = delays(restarts_of(strategy, True), gaps)
    assert answers == sorted(answers)


@given(exponential(), GAPS, st.integers())
def test_a_quiet_time_gives_everything_back(strategy, gaps, seed):
    """After it, a job has all its attempts again, and its first wait is the initial one."""
    worn = restarts_of(strategy, True, seed)
    gaps = [gap % strategy.reset_backoff_threshold for gap in gaps]
    used = delays(worn, gaps[: strategy.attempts_before_reset_backoff])
    end = 1_000_000 + sum(gaps[: len(used)]) + sum(used)
    limits = delays(worn, [strategy.reset_backoff_threshold, *[0] * 30], end)
    assert len(limits) == strategy.attempts_before_reset_backoff + 1
    assert abs(limits[0] - strategy.initial_backoff) <= strategy.initial_backoff * strategy.jitter_factor


@given(exponential(jitter_factor=0.0), st.integers(1, 19))
def test_every_attempt_is_given_before_the_end(strategy, gap):
    gap %= strategy.reset_backoff_threshold
    answers = delays(restarts_of(strategy, True), [gap] * 30)
    assert answers.index(None) == strategy.attempts_before_reset_backoff
