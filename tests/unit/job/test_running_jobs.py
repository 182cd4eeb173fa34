"""Jobs as their clients see them: execute, execute_async, execute_and_collect."""

import threading
import time

import pytest

from penstock.common import Configuration, JobStatus
from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.job.job_handle import JobHandle
from penstock.engine.job.job_view import JobView
from penstock.errors import (
    ConfigurationError,
    JobCancelled,
    JobFailed,
    JobSuspended,
    NothingToExecute,
)
from penstock.service.launch.submission import with_defaults
from penstock.testing import in_process, pause, scripted

GATE = threading.Event()
CLOSED: list = []


@pytest.fixture
def wall():
    """An environment on the real clock."""
    GATE.clear()
    CLOSED.clear()
    with in_process():
        yield StreamExecutionEnvironment().set_parallelism(1).set_buffer_timeout(5)


def test_execute_tells_what_ran(wall):
    wall.from_collection([1]).discard()
    result = wall.execute("named")
    assert result.get_net_runtime() >= 0 and len(str(result.get_job_id())) == 32


def test_a_second_execute_has_nothing_to_do(wall):
    wall.from_collection([1]).discard()
    wall.execute()
    with pytest.raises(NothingToExecute):
        wall.execute()


def test_a_program_that_cannot_be_compiled_stays(wall):
    stream = wall.from_sequence(1, 2).map(str).uid("x").map(str)
    stream.uid("x").discard()
    with pytest.raises(Exception, match=r"uid 'x'"):
        wall.execute()
    stream.uid("y")
    wall.execute()


def test_collect_streams_while_the_job_runs(wall):
    results = wall.generate(rate=500).execute_and_collect()
    assert [next(results), next(results), results.next()] == [0, 1, 2]
    results.close()


def test_a_limit_ends_the_job(wall):
    assert wall.generate(rate=10_000).execute_and_collect("few", limit=3) == [0, 1, 2]
    assert wall.from_collection([1, 2]).execute_and_collect(limit=5) == [1, 2]
    with pytest.raises(ValueError, match=r"at least 1"):
        wall.from_collection([1]).execute_and_collect(limit=0)


def test_leaving_the_block_cancels_the_job(wall):
    with wall.generate(rate=1000).execute_and_collect() as results:
        next(results)
    assert results._job.status() is JobStatus.CANCELED
    with pytest.raises(JobCancelled):
        results._job.result(60)


def test_a_closed_iterator_ends_quietly(wall):
    results = wall.generate(rate=10_000).execute_and_collect()
    next(results)
    results.close()
    assert len(list(results)) < 100_000
    results.close()


def test_iterating_twice_gives_nothing_more(wall):
    with wall.from_collection([1, 2]).execute_and_collect() as results:
        assert list(results) == [1, 2] and list(results) == []


def test_collecting_raises_what_the_job_failed_with(wall):
    results = wall.from_collection([4, 0]).map(lambda v: 4 // v).execute_and_collect()
    with pytest.raises(JobFailed, match=r"ZeroDivisionError"):
        list(results)


def test_collecting_runs_the_other_sinks_too(wall, capsys):
    stream = wall.from_collection([1])
    stream.print()
    assert stream.execute_and_collect(limit=1) == [1]
    assert capsys.readouterr().out == "1\n"


def test_a_slow_reader_slows_the_job(wall, monkeypatch):
    from penstock.service.launch import collected_results as collecting

    monkeypatch.setattr(collecting, "BUFFERED_PAYLOADS", 3)
    with in_process(epoch_records=1):
        env = StreamExecutionEnvironment().set_parallelism(1)
        results = env.from_sequence(1, 50).execute_and_collect()
        time.sleep(0.1)
        assert len(results._payloads) <= 3
        assert list(results) == list(range(1, 51))


def test_an_async_job_can_be_watched(wall):
    wall.generate(rate=1000).discard()
    client = wall.execute_async("endless")
    assert client.get_job_status().result(60) is JobStatus.RUNNING
    pending = client.get_job_execution_result()
    client.cancel().result(60)
    assert client.get_job_status().result(60) is JobStatus.CANCELED
    with pytest.raises(JobCancelled, match=r"cancelled"):
        pending.result(60)


def test_an_async_job_that_ends(wall):
    wall.from_collection([1]).discard()
    client = wall.execute_async()
    assert client.get_job_execution_result().result(60).get_job_id() == client.get_job_id()
    assert client.get_job_status().result(60) is JobStatus.FINISHED
    client.cancel().result(60)
    assert client.get_job_status().result(60) is JobStatus.FINISHED


def test_an_async_job_that_fails(wall):
    wall.from_collection([0]).map(lambda v: 1 // v).discard()
    client = wall.execute_async()
    with pytest.raises(JobFailed):
        client.get_job_execution_result().result(60)
    assert client.get_job_status().result(60) is JobStatus.FAILED


def test_savepoints_need_a_place(wall):
    wall.generate(rate=100).discard()
    client = wall.execute_async()
    with pytest.raises(ConfigurationError, match=r"execution.checkpointing.savepoint-dir"):
        client.trigger_savepoint().result(60)
    client.cancel().result(60)


def test_a_result_may_be_waited_for_only_so_long(wall):
    scripted(wall, 1, pause(), stay=True).discard()
    client = wall.execute_async()
    with pytest.raises(TimeoutError):
        client._job.result(0.1)
    client.cancel().result(60)


def test_two_jobs_at_once(wall):
    first = wall.generate(rate=1000).execute_and_collect()
    second = wall.from_collection([7]).execute_and_collect(limit=1)
    assert second == [7] and next(first) == 0
    first.close()


class SlowLoop:
    """Ends by itself at the very moment it is asked to stop."""

    def __init__(self):
        self.view = JobView("0" * 32, None, JobStatus.RUNNING, ())
        self.may_end = threading.Event()

    def run(self):
        self.may_end.wait(60)

    def stop(self):
        pass


def test_cancelling_a_job_that_ends_meanwhile_leaves_its_status():
    loop = SlowLoop()
    handle = JobHandle(None, loop, None).start()

    class Ends:
        """A status that lets the job end while cancel() looks at it."""

        def is_terminal_state(self):
            loop.may_end.set()
            handle._ended.wait(0.2)  # it cannot yet: the handle holds its lock
            return False

    handle._status = Ends()
    handle.cancel()
    assert handle.status() is JobStatus.FINISHED


def test_a_suspended_job_goes_on_in_the_next_driver(tmp_path):
    options = {
        "execution.checkpointing.interval": "20 ms",
        "execution.checkpointing.dir": f"file://{tmp_path}",
        "execution.recover": "latest",
        "pipeline.job-id": "5a" * 16,
    }

    def numbers(env):
        return env.generate(rate=1000).uid("numbers").map(lambda number: number).execute_and_collect()

    with in_process():
        env = StreamExecutionEnvironment(Configuration.from_dict(options)).set_parallelism(1).set_buffer_timeout(5)
        first = numbers(env)
        job = first._job
        seen = [next(first) for _ in range(10)]
        job.suspend()
        assert job.status() is JobStatus.SUSPENDED
        with pytest.raises(JobSuspended):
            job.result(60)
        assert list(tmp_path.glob("*/chk-*/_metadata")), "its checkpoints stay"
        second = numbers(env)
        assert next(second) > seen[-1], "it goes on, and does not begin again"
        second.close()


def test_what_prepares_jobs_may_complete_their_settings_and_know_that_they_are_over(wall):
    over = []

    def prepare(environment, name):
        environment.settings.job_id = "ab" * 16
        return bool(over)

    with with_defaults(before_start=prepare):
        wall.from_collection([1]).discard()
        assert str(wall.execute("first").get_job_id()) == "ab" * 16
        over.append(True)
        wall.from_collection([1]).map(lambda number: number / 0).discard()
        wall.execute("second")
