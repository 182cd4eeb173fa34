"""The driver of a job that follows its cores, on a clock that is set by hand, with drivers that do as they are told."""

import threading
from types import SimpleNamespace

import pytest

from penstock.common.job import JobStatus
from penstock.engine.checkpoint.checkpoint_storage_actions import CheckpointRequest
from penstock.engine.job import adaptive, rescaling
from penstock.engine.job.adaptive import AdaptiveDriver, Adaptivity
from penstock.engine.job.job_view import FailureView, JobView, StatusChange
from penstock.engine.job.resize import Resized
from penstock.errors import CheckpointFailed, JobFailed

RUNNING = StatusChange(JobStatus.RUNNING, 1)
SUSPENDED = StatusChange(JobStatus.SUSPENDED, 2)
FAILURE = FailureView(1, 0, "SlotLost", "gone")
STEP = 0.5
"""Seconds that pass with each wait, whatever its length, so that sums of them are exact."""
CLOCK = SimpleNamespace(now=0.0)


class Job:
    """A JobDriver that runs until the next of its ends."""

    def __init__(self, *ends, deployed=1, view=None, checkpoint_fails=False, slots=4):
        self.ends = list(ends)
        self.plan = SimpleNamespace(slots=slots)
        self.view = view or JobView("job", None, JobStatus.RUNNING, (RUNNING,), deployed=deployed)
        self.calls = []
        self.before_deploy = None
        self.checkpoint_fails = checkpoint_fails

    def run(self):
        self.calls.append("run")
        end = self.ends.pop(0) if self.ends else None
        if isinstance(end, Exception):
            raise end
        if end is not None:
            end()

    def stop(self):
        self.calls.append("stop")

    def suspend(self):
        self.calls.append("suspend")

    def resize(self, resized):
        self.calls.append(f"resize to {resized.slots}: {resized}")

    def request(self, request):
        assert isinstance(request, CheckpointRequest)
        self.calls.append("checkpoint")
        if self.checkpoint_fails:
            request.done.set_exception(CheckpointFailed("full"))
        else:
            request.done.set_result("1")

    def query(self, request):
        return "answer", request

    def queryable_states(self):
        return ("states",)


class Stopped:
    """The event that ends the driver's waits. Time passes in them, and they end after some."""

    def __init__(self, waits):
        self.left = waits
        self.waited = []
        self.was_set = False

    def is_set(self):
        return self.was_set or len(self.waited) > self.left

    def wait(self, seconds):
        self.waited.append(seconds)
        CLOCK.now += STEP
        return self.is_set()

    def set(self):
        self.was_set = True


def driver(*capacity, job=None, waits=100, **adaptivity):
    """A driver that finds these cores, one number after the other. The last one stays."""
    left, remade = list(capacity), []

    def replan(parallelism, most):
        return SimpleNamespace(slots=most or 4)

    def remake(plan):
        remade.append((plan.slots, Job(slots=plan.slots)))
        return remade[-1][1]

    def capacity_now():
        return left.pop(0) if len(left) > 1 else left[0]

    settings = Adaptivity(**{"resource_wait_timeout": 20_000, "resource_stabilization_timeout": 5_000, **adaptivity})
    made = AdaptiveDriver(job or Job(), replan, remake, lambda slots: True, capacity_now, settings)
    made._stopped = Stopped(waits)
    made.remade = remade
    return made


@pytest.fixture(autouse=True)
def time_by_hand(monkeypatch):
    CLOCK.now = 1000.0  # a sum of two times is far from their difference
    by_hand = SimpleNamespace(monotonic=lambda: CLOCK.now, time=lambda: 7.0)
    for module in (adaptive, rescaling):
        monkeypatch.setattr(module, "time", by_hand)


# --- the cores of an attempt ---
@pytest.mark.parametrize("cores", [4, 9, None])
def test_enough_cores_are_taken_at_once(cores):
    made = driver(cores)
    assert made._await_cores() == 4 and made._stopped.waited == []


def test_too_few_cores_are_taken_once_their_number_is_stable():
    made = driver(2)
    assert made._await_cores() == 2
    assert made._stopped.waited == [0.1] * 10, "after five seconds"


def test_a_new_number_of_cores_has_to_be_stable_again():
    made = driver(*[1] * 9, 3)
    assert made._await_cores() == 3 and len(made._stopped.waited) == 9 + 10


def test_cores_are_looked_for_as_often_as_was_asked():
    made = driver(2, checks=40)
    made._await_cores()
    assert set(made._stopped.waited) == {0.04}


def test_no_cores_are_never_stable_and_the_wait_for_them_ends():
    made = driver(0)
    assert made._await_cores() == 1 and len(made._stopped.waited) == 40, "after twenty seconds"


def test_whatever_there_is_when_the_wait_ends_is_taken():
    made = driver(*[1, 2] * 50)
    assert made._await_cores() in (1, 2) and len(made._stopped.waited) == 40


def test_who_is_stopped_waits_no_longer():
    made = driver(0, waits=3)
    assert made._await_cores() == 4 and len(made._stopped.waited) == 4


def test_an_attempt_with_other_cores_is_made_anew():
    made = driver(2)
    with pytest.raises(Resized, match="goes on with 2 slots instead of 4") as raised:
        made._fit()
    assert raised.value.slots == 2
    driver(4)._fit()


def test_defaults_are_those_of_flink():
    assert Adaptivity() == Adaptivity(300_000, 10_000, 1_000)


# --- growing ---
def watch(*capacity, waits=30, slots=2, **job):
    running = Job(**job)
    made = driver(*capacity, job=running, waits=waits)
    running.plan.slots = slots
    made._watch_cores()
    return running.calls, made


def test_a_job_grows_when_more_cores_have_stayed():
    calls, made = watch(3, waits=11)
    assert calls == ["checkpoint", "resize to 3: the job grows from 2 to 3 slots, as there are cores"]
    assert set(made._stopped.waited) == {1.0}
    assert watch(3, waits=10)[0] == [], "not sooner than after five seconds"


def test_a_job_that_has_grown_waits_again():
    assert watch(3, waits=21)[0] == watch(3, waits=11)[0]
    assert len(watch(3, waits=22)[0]) == 4


def test_a_job_grows_no_further_than_wanted():
    assert "resize to 4" in watch(9)[0][1]
    assert watch(9, slots=4)[0] == []


@pytest.mark.parametrize("cores", [2, 1, None])
def test_without_more_cores_a_job_stays_as_it_is(cores):
    assert watch(cores)[0] == []


def test_cores_that_come_and_go_do_not_count():
    assert watch(*[*[3] * 9, 2] * 5, waits=45)[0] == []


def test_a_job_without_slots_does_not_grow():
    assert watch(3, deployed=None)[0] == []


def test_a_job_grows_although_the_checkpoint_before_it_fails():
    assert [call.partition(" ")[0] for call in watch(3, waits=11, checkpoint_fails=True)[0]] == ["checkpoint", "resize"]


# --- one driver after the other ---
def run(made):
    """Run a job whose cores nobody watches."""
    made._watch_cores = lambda: None
    made.run()


def test_a_job_that_is_resized_goes_on_with_another_driver():
    first = Job(
        Resized("two", 2), view=JobView("job", None, JobStatus.SUSPENDED, (RUNNING, SUSPENDED), 3, failures=(FAILURE,))
    )
    made = driver(4, job=first)
    assert first.before_deploy == made._fit
    run(made)
    ((slots, second),) = made.remade
    assert (slots, first.calls, second.calls, second.before_deploy) == (2, ["run"], ["run"], made._fit)
    assert made.slots == 2 and made._stopped.is_set()
    view = made.view
    assert view.changes == (RUNNING, StatusChange(JobStatus.RESTARTING, 7_000), RUNNING), "clients see a restart"
    assert (view.failures, view.attempt) == ((FAILURE,), 4)


@pytest.mark.parametrize(
    ("resized", "most"),
    [(Resized("two cores", 2), 4), (Resized("asked for", None, 2), 2)],
    ids=["cores", "an order"],
)
def test_a_job_grows_up_to_what_was_last_asked_for(resized, most):
    made = driver(9, job=Job(resized))
    made._replan = lambda parallelism, cores: SimpleNamespace(slots=cores or parallelism)
    run(made)
    assert made.slots == 2
    made._stopped = Stopped(10)
    assert made._await_cores() == most


def test_attempts_and_failures_of_all_drivers_are_counted():
    made = driver(
        4, job=Job(Resized("two", 2), view=JobView("job", None, JobStatus.RUNNING, (RUNNING,), 1, failures=(FAILURE,)))
    )
    made._remake = lambda plan: Job(
        *([Resized("one", 1)] if plan.slots == 2 else []),
        view=JobView("job", None, JobStatus.RUNNING, (RUNNING,), 2, failures=(FAILURE, FAILURE)),
    )
    run(made)
    assert made.view.attempt == 1 + 1 + 2 + 1 + 2 and len(made.view.failures) == 5


def test_the_end_of_a_driver_is_that_of_the_job():
    made = driver(4, job=Job(JobFailed("no")))
    with pytest.raises(JobFailed, match="no"):
        run(made)
    assert made._stopped.is_set() and made.remade == []


@pytest.mark.parametrize(("call", "told"), [("stop", ["stop", "run"]), ("suspend", ["suspend", "run"])])
def test_a_job_that_was_ended_meanwhile_ends_with_its_next_driver(call, told):
    first = Job()
    made = driver(4, job=first)

    def end():
        getattr(made, call)()
        raise Resized("two", 2)

    first.ends = [end]
    run(made)
    assert first.calls == ["run", call] and made.remade[0][1].calls == told


def test_the_thread_that_watches_the_cores_keeps_no_process_alive():
    seen = []
    first = Job(lambda: seen.extend(one for one in threading.enumerate() if one.name == "penstock cores"))
    made = driver(4, job=first)
    made._stopped = threading.Event()
    made.run()
    (thread,) = seen
    thread.join(60)
    assert thread.daemon and not thread.is_alive()


@pytest.mark.parametrize("call", ["stop", "suspend"])
def test_calls_go_to_the_driver_that_runs(call):
    made = driver(4)
    getattr(made, call)()
    assert made._stopped.was_set and made._current.calls == [call]
    request = CheckpointRequest()
    made.request(request)
    assert request.done.result() == "1"
    assert made.query("which") == ("answer", "which") and made.queryable_states() == ("states",)
