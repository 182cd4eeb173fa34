"""The jobs of one process, as REST sees them."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import MissingDependency, PenstockError
from penstock.service.launch.submission import start
from penstock.service.options.rest_options import RestSettings
from penstock.service.rest import local_jobs
from penstock.service.rest.embedded import serve_in_thread
from penstock.service.rest.job_backend import Jobs, Refused, RunRequest, SavepointOrder, UnknownJob
from penstock.service.rest.local_jobs import LocalJobs
from penstock.testing import in_process
from tests.waiting import until


def finished(name: str):
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.from_collection([1]).filter(lambda n: False).print()
    handle = start(env, name)
    handle.result()
    return handle


def test_jobs_are_listed_in_the_order_in_which_they_began():
    jobs: Jobs = LocalJobs({"a.secret": "hunter2", "b": "1"})
    with in_process():
        for name in "abc":
            jobs.add(finished(name))
    assert [(record.name, record.status) for record in jobs.records()] == [(name, "FINISHED") for name in "abc"]
    assert jobs.configuration() == {"a.secret": "******", "b": "1"}
    (here,) = jobs.task_managers()
    assert here.slots == here.free_slots > 0 and here.jobs == {}


def test_of_a_job_that_has_ended_only_the_record_is_kept(monkeypatch):
    monkeypatch.setattr(local_jobs, "KEPT", 2)
    jobs = LocalJobs()
    with in_process():
        handles = [finished(name) for name in "abcd"]
    for handle in handles:
        jobs.add(handle)
    first, last = handles[0].job_id.hex, handles[-1].job_id.hex
    gone = weakref.ref(handles[2])
    del handle, handles
    gc.collect()
    assert gone() is None
    assert [record.name for record in jobs.records()] == ["c", "d"]
    assert jobs.record(last).name == "d"
    with pytest.raises(UnknownJob):
        jobs.record(first)


def test_what_one_process_cannot_do_is_refused():
    jobs = LocalJobs()
    with in_process():
        jobs.add(finished("a"))
        jobs.add(finished("b"))
    job = jobs.records()[0].job_id
    for order in (
        lambda: jobs.savepoint(job, SavepointOrder("/x")),
        lambda: jobs.rescale(job, 2),
        lambda: jobs.query(job, "state", {}),
        lambda: jobs.cancel(job),
        lambda: jobs.run(RunRequest("a.py")),
    ):
        with pytest.raises((Refused, PenstockError)):
            order()
    for order in (lambda: jobs.cancel("f" * 32), lambda: jobs.rescale("f" * 32, 2)):
        with pytest.raises(UnknownJob):
            order()
    assert jobs.programs() == []


def test_without_the_libraries_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingDependency, match=r"penstock\[server\]"), serve_in_thread(LocalJobs(), RestSettings()):
        pass


def test_a_running_job_has_slots_on_this_machine():
    jobs = LocalJobs()
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
        env.from_sequence(0, 1 << 60).filter(lambda n: False).print()
        handle = start(env, "long")
        jobs.add(handle)
        try:
            (here,) = until(lambda: [one for one in jobs.task_managers() if one.jobs])
            assert here.jobs == {handle.job_id.hex: 2}
            assert here.free_slots <= here.slots - 2 or here.free_slots == 0
        finally:
            jobs.cancel(handle.job_id.hex)
            until(lambda: jobs.record(handle.job_id.hex).status == "CANCELED")
