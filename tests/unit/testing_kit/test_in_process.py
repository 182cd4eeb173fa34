"""in_process, ManualClock and scripted sources."""

import threading

import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import KeyedProcessFunction, ProcessFunction
from penstock.errors import JobFailed
from penstock.service.launch.submission import defaults, with_defaults
from penstock.testing import InProcessCluster, ManualClock, at, end, fail, idle, in_process, pause, scripted, watermark


class Times(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


def test_a_script_is_played(run):
    got = run(lambda env: scripted(env, "a", at("b", 5), watermark(7), pause(), "c").process(Times()))
    assert got == [("a", None, -(2**63)), ("b", 5, -(2**63)), ("c", None, 7)]


def test_a_script_may_end_early_or_fail(run):
    assert run(lambda env: scripted(env, 1, end(), 2)) == [1]
    with pytest.raises(JobFailed, match=r"Scripted Source .*the wire is cut"):
        run(lambda env: scripted(env, 1, fail("the wire is cut")))


def test_a_pause_ends_the_epoch(run):
    class Clock(ProcessFunction):
        def process_element(self, value, ctx):
            yield ctx.timer_service().current_processing_time()

    one, two, three = run(lambda env: scripted(env, 1, 2, pause(), 3).process(Clock()))
    assert one == two < three


def test_a_script_may_stay_open(env):
    assert scripted(env, 1, 2, stay=True).execute_and_collect(limit=2) == [1, 2]


def test_an_idle_script_holds_nothing_back(run):
    def build(env):
        quiet = scripted(env, idle(), pause(), pause(), pause(), pause())
        busy = scripted(env, watermark(5), pause(), "x", pause())
        return quiet.union(busy).process(Times())

    assert run(build) == [("x", None, 5)]


def test_the_block_leaves_no_trace():
    before = defaults()
    with pytest.raises(ZeroDivisionError), in_process(epoch_records=3):
        assert StreamExecutionEnvironment().settings.max_records == 3
        raise ZeroDivisionError
    assert defaults() is before


@pytest.mark.parametrize("epoch_records", [1, 2, 7, None])
def test_epochs_are_cut_after_so_many_records(epoch_records):
    sizes = []

    class Watched(InProcessCluster):
        def run(self, command):
            reports = super().run(command)
            sizes.append(sum(len(__import__("pickle").loads(p)) for r in reports for _, p in r.results))
            return reports

    watched = with_defaults(cluster=lambda settings, deployment: Watched())
    with in_process(epoch_records=epoch_records, clock=ManualClock()), watched:
        env = StreamExecutionEnvironment().set_parallelism(1)
        with env.from_sequence(1, 10).execute_and_collect() as results:
            assert list(results) == list(range(1, 11))
    assert sum(sizes) == 10 and max(sizes) == min(epoch_records or 10, 10)


def test_a_manual_clock():
    clock = ManualClock(5)
    clock.advance(10)
    clock.rest(100, threading.Event())
    assert clock.now() == 115


def test_processing_time_timers_need_no_waiting():
    class Later(KeyedProcessFunction):
        def process_element(self, value, ctx):
            service = ctx.timer_service()
            service.register_processing_time_timer(service.current_processing_time() + 3_600_000)

        def on_timer(self, timestamp, ctx):
            yield timestamp

    clock = ManualClock(1000)
    with in_process(clock=clock):
        env = StreamExecutionEnvironment().set_parallelism(1)
        stream = scripted(env, 1, stay=True).key_by(lambda v: v).process(Later())
        assert stream.execute_and_collect(limit=1) == [3_601_000]
    assert clock.now() >= 3_601_000
