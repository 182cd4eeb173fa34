"""The driver of a job on a fake cluster: when it runs epochs, when it rests, how it ends."""

import threading

import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.job.deploying import deployment_of
from penstock.engine.job.driver_parts import job_failed
from penstock.engine.job.epochs import EpochOptions, Pace
from penstock.engine.job.job_driver import JobDriver
from penstock.engine.job.processing_time import WallClock
from penstock.engine.job.schedule import LONGEST_WAIT_MILLIS
from penstock.engine.messages.commands_and_reports import Report
from penstock.engine.records.failures import Failure
from penstock.errors import JobCancelled, JobFailed, SlotLost, UnsupportedKey
from penstock.service.launch.submission import plan_of
from penstock.testing import ManualClock

FAILURE = Failure("Map", "map-1", 0, "3", "ValueError", "no", "Traceback …")


class FakeCluster:
    """Answers each epoch with the next of some reports; None stands for a failing cluster."""

    def __init__(self, *answers, deploy=None, release=None, loop=None, stop_after=None):
        self.answers = list(answers)
        self.commands = []
        self.calls = []
        self.deploy_report = deploy or Report(0, -1)
        self.release_report = release or Report(0, -1)
        self.on_run = None

    def application(self):
        return None

    def deploy(self, deployment):
        self.calls.append("deploy")
        self.deployment = deployment
        return [self.deploy_report]

    def run(self, command):
        self.calls.append("run")
        self.commands.append(command)
        if self.on_run:
            self.on_run(command)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, list) else [answer]

    def release(self):
        self.calls.append("release")
        return [self.release_report]

    def interrupt(self):
        self.calls.append("interrupt")


class RecordingClock(ManualClock):
    def __init__(self, now=0):
        super().__init__(now)
        self.rests = []

    def rest(self, millis, woken):
        self.rests.append(millis)
        if millis is None:
            self.on_endless_rest()
        super().rest(millis, woken)


def report(**fields):
    return Report(0, 0, **fields)


END = report(finished=True)


def loop_over(*answers, clock=None, interval=100, results=None, **cluster_options):
    env = StreamExecutionEnvironment().set_parallelism(1)
    env.from_sequence(1, 2).print().uid("out")
    plan = plan_of(env, "job")
    cluster = FakeCluster(*answers, **cluster_options)
    clock = clock or RecordingClock()
    clock.on_endless_rest = lambda: cluster.on_wake(False)
    loop = JobDriver(
        plan,
        deployment_of(plan, "0" * 32),
        cluster,
        options=EpochOptions(max_records=10, max_millis=50, interval_millis=interval),
        on_results={"out": (results if results is not None else []).append},
        clock=clock,
    )
    return loop, cluster, clock


def test_it_deploys_runs_and_releases():
    loop, cluster, clock = loop_over(END, clock=RecordingClock(777))
    loop.run()
    assert cluster.calls == ["deploy", "run", "release"]
    assert cluster.deployment.now == 777
    command = cluster.commands[0]
    assert (command.epoch, command.now, command.max_records, command.max_millis) == (0, 777, 10, 50)
    assert clock.rests == [] and loop.view.epoch == 1


def test_it_does_not_rest_while_it_catches_up():
    loop, cluster, clock = loop_over(report(backlog=True), report(backlog=True), END)
    loop.run()
    assert clock.rests == [] and [c.epoch for c in cluster.commands] == [0, 1, 2]


def test_without_anything_due_it_rests_until_it_is_woken():
    loop, cluster, clock = loop_over(report(), report(), END)
    clock.on_endless_rest = lambda: clock.advance(20_000) or cluster.on_wake(False)
    loop.run()
    assert clock.rests == [None, None]
    assert [c.now for c in cluster.commands] == [0, 20_000, 40_000]


def test_news_is_gathered_for_the_interval():
    loop, _, clock = loop_over(report(news=True), report(news=True, next_due=30), report(next_due=5_000), END)
    loop.run()
    assert clock.rests == [100, 100, 4_800]
    loop, _, clock = loop_over(report(news=True), report(news=True), END, interval=0)
    loop.run()
    assert clock.rests == []


def test_who_is_woken_before_the_interval_is_over_rests_on():
    loop, cluster, clock = loop_over(report(), END)
    clock.on_endless_rest = lambda: clock.advance(40) or cluster.on_wake(False)
    loop.run()
    assert clock.rests == [None, 60]


def test_who_hears_that_a_slot_is_lost_rests_no_longer():
    loop, cluster, clock = loop_over(report(), SlotLost("gone"))
    clock.on_endless_rest = lambda: clock.advance(10) or cluster.on_wake(True)
    with pytest.raises(SlotLost):
        loop.run()
    assert clock.rests == [None] and clock.now() == 10


@pytest.mark.parametrize(
    ("due", "rest"),
    [(5_000, 5_000), (100, 100), (30, 100), (-10, 100), (10**9, 10**9)],
)
def test_it_rests_until_the_next_timer_but_not_less_than_the_interval(due, rest):
    loop, _, clock = loop_over(report(next_due=due), END)
    loop.run()
    assert clock.rests == [rest]


def test_the_earliest_timer_of_all_slots_counts():
    loop, _, clock = loop_over(
        [report(next_due=900), Report(1, 0, next_due=400), Report(2, 0)], [END, Report(1, 0, finished=True)]
    )
    loop.run()
    assert clock.rests == [400]


def test_input_that_only_an_epoch_can_find_is_looked_for_every_interval():
    loop, cluster, clock = loop_over(*[report(waits_for_input=True)] * 6, END)
    loop.run()
    assert clock.rests == [100] * 6
    assert [c.wait_millis for c in cluster.commands] == [0, 200, 400, 800, 1000, 1000, 1000]
    assert max(c.wait_millis for c in cluster.commands) <= LONGEST_WAIT_MILLIS


def test_results_make_it_look_often_again():
    busy = report(waits_for_input=True, results=[("out", "x")])
    idle = report(waits_for_input=True)
    loop, cluster, _ = loop_over(idle, idle, idle, busy, END)
    loop.run()
    assert [c.wait_millis for c in cluster.commands] == [0, 200, 400, 800, 100]


def test_a_source_does_not_wait_beyond_a_timer():
    waiting = report(waits_for_input=True, next_due=150)
    loop, cluster, _ = loop_over(waiting, waiting, END)
    loop.run()
    assert [c.wait_millis for c in cluster.commands] == [0, 50, 0]


def test_an_epoch_that_took_longer_than_the_interval_is_followed_at_once():
    loop, cluster, clock = loop_over(report(waits_for_input=True), END)
    cluster.on_run = lambda command: clock.advance(250)
    loop.run()
    assert clock.rests == []


def test_it_ends_when_every_slot_has():
    loop, cluster, _ = loop_over([END, Report(1, 0)], [END, Report(1, 0, finished=True)])
    loop.run()
    assert cluster.calls.count("run") == 2


def test_results_go_to_their_sinks_in_order_of_slots():
    got = []
    reports = [
        Report(1, 0, finished=True, results=[("out", "c")]),
        report(finished=True, results=[("out", "a"), ("out", "b")]),
    ]
    loop, *_ = loop_over(reports, results=got)
    loop.run()
    assert got == ["a", "b", "c"]


def test_watermarks_and_metrics_are_kept():
    loop, *_ = loop_over(
        [
            report(finished=True, watermarks={"a": 5, "b": 1}, metrics={"n": 1}),
            Report(1, 0, finished=True, watermarks={"a": 3}, metrics={"n": 2}),
        ]
    )
    loop.run()
    assert loop.view.watermarks == {"a": 3, "b": 1} and loop.view.metrics == {0: {"n": 1}, 1: {"n": 2}}


def test_a_failed_epoch_releases_and_raises_but_keeps_its_results():
    got = []
    loop, cluster, _ = loop_over(report(failure=FAILURE, results=[("out", "a")]), results=got)
    with pytest.raises(JobFailed, match=r"Map .uid map-1, subtask 0. failed: ValueError: no") as raised:
        loop.run()
    assert cluster.calls == ["deploy", "run", "release"] and got == ["a"]
    assert (raised.value.operator, raised.value.uid, raised.value.record) == ("Map", "map-1", "3")


def test_a_failed_deployment_runs_nothing():
    loop, cluster, _ = loop_over(deploy=report(failure=FAILURE))
    with pytest.raises(JobFailed):
        loop.run()
    assert cluster.calls == ["deploy", "release"]


def test_a_failed_release_fails_the_job():
    loop, *_ = loop_over(END, release=report(failure=FAILURE))
    with pytest.raises(JobFailed):
        loop.run()


def test_a_lost_slot():
    loop, cluster, _ = loop_over(report(lost="its process is new"))
    with pytest.raises(SlotLost, match=r"slot 0: its process is new"):
        loop.run()
    assert cluster.calls[-1] == "release"


def test_the_first_error_counts_when_releasing_fails_too():
    loop, cluster, _ = loop_over(SlotLost("gone"))
    cluster.release = lambda: (_ for _ in ()).throw(RuntimeError("released badly"))
    with pytest.raises(SlotLost, match=r"gone"):
        loop.run()


def test_the_first_error_counts_whatever_releasing_raises():
    loop, cluster, _ = loop_over(SlotLost("gone"))
    cluster.release = lambda: (_ for _ in ()).throw(OSError("pipe closed"))
    with pytest.raises(SlotLost, match=r"gone"):
        loop.run()


def test_stop_ends_it_before_the_next_epoch():
    loop, cluster, _ = loop_over(report(), END)
    cluster.on_run = lambda command: loop.stop()
    with pytest.raises(JobCancelled):
        loop.run()
    assert cluster.calls == ["deploy", "run", "release"]


def test_stop_wakes_a_resting_loop():
    loop, cluster, _ = loop_over(report(), END, clock=WallClock())
    cluster.on_run = lambda command: threading.Timer(0.05, loop.stop).start()
    ended = threading.Event()

    def run():
        with pytest.raises(JobCancelled):
            loop.run()
        ended.set()

    threading.Thread(target=run, daemon=True).start()
    assert ended.wait(60)


def test_an_input_that_has_ended_does_not_keep_the_loop_from_resting():
    from penstock.engine.operators.sources.readers import FedSource, IteratorEnumerator

    env = StreamExecutionEnvironment().set_parallelism(1)
    fed = env._source("Fed", FedSource(lambda: IteratorEnumerator(iter([1, 2]))), None)
    fed.discard()
    plan = plan_of(env, "job")
    cluster, clock = FakeCluster(report(), report(), report(), END), RecordingClock()
    clock.on_endless_rest = lambda: cluster.on_wake(False)
    JobDriver(plan, deployment_of(plan, "0" * 32), cluster, options=EpochOptions(), on_results={}, clock=clock).run()
    assert [c.assignments[0] for c in cluster.commands] == [[([1, 2], True)], [None], [None], [None]]
    assert clock.rests


def test_alignment_limits_follow_the_slowest_stream():
    from penstock.common import Duration, WatermarkStrategy

    env = StreamExecutionEnvironment().set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment("g", Duration.of_millis(10))
    env.from_sequence(1, 2).assign_timestamps_and_watermarks(strategy).uid("w").discard()
    plan = plan_of(env, "job")
    cluster = FakeCluster(
        [report(alignment={("g", "w"): 100}), Report(1, 0, alignment={("g", "w"): 40})], report(), END
    )
    clock = RecordingClock()
    clock.on_endless_rest = lambda: cluster.on_wake(False)
    JobDriver(plan, deployment_of(plan, "0" * 32), cluster, options=EpochOptions(), on_results={}, clock=clock).run()
    assert [c.alignment for c in cluster.commands] == [{}, {"g": 50}, {}]


def test_a_failure_with_a_class_of_its_own_is_caught_as_either():
    error = job_failed(Failure("Sum", "s", 0, "", "UnsupportedKey", "no key", "", known_as="UnsupportedKey"))
    assert isinstance(error, UnsupportedKey) and isinstance(error, JobFailed)
    plain = job_failed(Failure("Sum", "s", 0, "", "PenstockError", "x", "", known_as="PenstockError"))
    assert type(plain) is JobFailed


# --- the pace ---
def test_epochs_that_last_too_long_read_less_and_quick_ones_more_again():
    assert Pace(EpochOptions(max_records=1_000_000)).records < 1_000_000
    pace = Pace(EpochOptions(max_records=10_000, max_millis=1000))
    pace.adapt(1900, 10_000)
    assert pace.records == 10_000
    pace.adapt(20_000, 4_000)
    assert pace.records == 200
    pace.adapt(1500, 200)
    assert pace.records == 200
    for _ in range(10):
        pace.adapt(100, pace.records)
    assert pace.records == 10_000
    pace.adapt(60_000, 0)
    assert pace.records == 10_000
    pace.adapt(1e9, 1)
    assert pace.records == 1
