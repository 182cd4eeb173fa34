"""Jobs seen from outside, futures and restart strategies."""

import threading
from datetime import timedelta

import pytest

from penstock.common import CompletableFuture, Duration, JobClient, JobExecutionResult, JobID, JobStatus
from penstock.common import RestartStrategies as Restart


class FakeJob:
    def __init__(self):
        self.job_id = JobID()
        self.cancelled = threading.Event()

    def status(self):
        return JobStatus.CANCELED if self.cancelled.is_set() else JobStatus.RUNNING

    def cancel(self):
        self.cancelled.set()

    def result(self, timeout=None):
        assert self.cancelled.wait(60)
        return JobExecutionResult(self.job_id, 12, {"n": 3})

    def accumulators(self):
        raise RuntimeError("gone")

    def trigger_savepoint(self, directory, stop, drain):
        return f"{directory}/{stop}/{drain}"


def test_a_client_asks_its_job():
    job = FakeJob()
    client = JobClient(job)
    assert client.get_job_id() == job.job_id
    assert client.get_job_status().result(60) is JobStatus.RUNNING
    pending = client.get_job_execution_result()
    assert not pending.done()
    assert client.trigger_savepoint("d").result(60) == "d/False/False"
    assert client.stop_with_savepoint(True).result(60) == "None/True/True"
    client.cancel().result(60)
    result = pending.result(60)
    assert (result.get_job_id(), result.get_net_runtime()) == (job.job_id, 12)
    assert result.get_all_accumulator_results() == {"n": 3}
    assert (result.get_accumulator_result("n"), result.get_accumulator_result("m")) == (3, None)


def test_what_goes_wrong_reaches_the_one_who_waits():
    future = JobClient(FakeJob()).get_accumulators()
    assert isinstance(future.exception(60), RuntimeError)
    with pytest.raises(RuntimeError, match="gone"):
        future.result()


def test_completed_futures():
    future = CompletableFuture.completed(3)
    assert (future.result(), future.done(), future.cancelled(), future.cancel(), future.exception()) == (
        3,
        True,
        False,
        False,
        None,
    )


def test_job_ids():
    assert JobID() != JobID()
    assert len(str(JobID())) == 32
    assert JobID("0" * 32) == JobID("0" * 32)
    with pytest.raises(ValueError):
        JobID("xyz")


def test_which_states_end_a_job():
    ended = {JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED}
    assert {s for s in JobStatus if s.is_globally_terminal_state()} == ended
    assert {s for s in JobStatus if s.is_terminal_state()} == ended | {JobStatus.SUSPENDED}


def test_restart_strategies_are_plain_data():
    fixed = Restart.fixed_delay_restart(3, timedelta(seconds=2))
    assert fixed == Restart.fixed_delay_restart(3, 2000) == Restart.fixed_delay_restart(3, Duration.of_seconds(2))
    assert (fixed.get_restart_attempts(), fixed.get_delay_between_attempts_interval()) == (3, timedelta(seconds=2))
    rate = Restart.failure_rate_restart(2, 1000, 10)
    assert (rate.get_max_failure_rate(), rate.get_failure_interval()) == (2, timedelta(seconds=1))
    growing = Restart.exponential_delay_restart(100, 1000, 1.5, 5000, 0.0)
    assert (growing.initial_backoff, growing.max_backoff, growing.get_backoff_multiplier()) == (100, 1000, 1.5)
    for strategy in (fixed, rate, growing, Restart.no_restart(), Restart.fall_back_restart()):
        assert strategy.get_description()
        assert hash(strategy) is not None
    assert Restart.no_restart() != Restart.fall_back_restart()


@pytest.mark.parametrize(
    "build",
    [
        lambda: Restart.fixed_delay_restart(-1, 0),
        lambda: Restart.fixed_delay_restart(1, -5),
        lambda: Restart.failure_rate_restart(0, 1, 1),
        lambda: Restart.failure_rate_restart(1, 0, 1),
        lambda: Restart.exponential_delay_restart(100, 50),
        lambda: Restart.exponential_delay_restart(backoff_multiplier=0.5),
        lambda: Restart.exponential_delay_restart(jitter_factor=2),
    ],
)
def test_restart_settings_that_make_no_sense(build):
    with pytest.raises(ValueError):
        build()


def test_restart_settings_of_another_kind():
    with pytest.raises(TypeError, match="delay_between_attempts must be a whole number, a timedelta"):
        Restart.fixed_delay_restart(1, "5 s")
