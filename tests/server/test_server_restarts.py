"""Servers that end and are started again: living drivers are adopted, suspended and dead ones go on."""

import os
import signal
from dataclasses import replace

import pytest

from penstock.errors import AlreadyThere, NotEnoughSlots, PenstockError
from penstock.service.server.specs import How
from tests.server.helping import ADDRESS, HERE, await_checkpoints, await_record, check_counts, logs, service, submit
from tests.waiting import until

pytestmark = [pytest.mark.service, pytest.mark.timeout(600)]


@pytest.fixture
def servers(tmp_path):
    """Makes servers on one folder; the last one is stopped with its jobs."""
    made = []

    def make(**options):
        made.append(service(tmp_path / "server", **options))
        made[-1].start(ADDRESS)
        return made[-1]

    yield make
    made[-1].stop(keep_jobs=False)


def driver_of(server, job):
    return server.supervisor.find(job)[0].driver


def test_a_server_that_is_started_again_adopts_living_drivers_and_starts_dead_ones(servers, tmp_path):
    first = servers()
    living, dying = (submit(first.jobs, HERE / "counting.py", str(tmp_path / name), parallelism=2) for name in "ab")
    for job in (living, dying):
        await_checkpoints(first.jobs, job)
    before = driver_of(first, living).pid
    first.stop(keep_jobs=True)
    os.kill(driver_of(first, dying).pid, signal.SIGKILL)
    until(lambda: not driver_of(first, dying).is_alive())

    second = servers()
    assert second.supervisor.fence > first.supervisor.fence
    for job in (living, dying):
        await_checkpoints(second.jobs, job)
    assert driver_of(second, living).pid == before
    assert second.supervisor.find(dying)[0].number == 2
    second.stop(keep_jobs=False)
    assert not driver_of(second, living).is_alive()

    third = servers()
    for job in (living, dying):
        record = await_checkpoints(third.jobs, job)
        assert record.checkpoints.restored is not None
    third.jobs.cancel(living)
    third.jobs.cancel(dying)
    for job, name in ((living, "a"), (dying, "b")):
        await_record(third.jobs, job, lambda record: record.status == "CANCELED")
        check_counts(tmp_path / name, 2)
    third.stop(keep_jobs=False)

    fourth = servers()
    assert [fourth.jobs.record(job).status for job in (living, dying)] == ["CANCELED", "CANCELED"]
    with pytest.raises(AlreadyThere):
        fourth.supervisor.submit(fourth.supervisor.find(living)[0].spec, third.supervisor.find(living)[0].revision, b"")


BUILT_FOR_TWO = """
from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.job.cluster_protocol import Cluster
from penstock.errors import NotEnoughSlots
from penstock.service.launch.submission import with_defaults
from penstock.testing.cluster import InProcessCluster

class SmallCluster(InProcessCluster):
    def capacity(self):
        return {capacity}

    def deploy(self, deployment):
        if deployment.plan.slots > 2:
            raise NotEnoughSlots("there are two cores")
        return super().deploy(deployment)

def cluster(settings, deployment):
    return SmallCluster()

with with_defaults(cluster=cluster):
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.enable_checkpointing(200)
    env.generate(rate=100).uid("numbers").map(lambda number: number).uid("map").discard()
    env.execute("small")
"""


def test_a_job_that_cannot_be_rescaled_runs_on_as_before(servers, tmp_path):
    server = servers()
    program = tmp_path / "small.py"
    program.write_text(BUILT_FOR_TWO.replace("{capacity}", "None"))
    job = submit(server.jobs, program)
    await_checkpoints(server.jobs, job)
    with pytest.raises(PenstockError, match=r"earlier parallelism.*there are two cores"):
        server.jobs.rescale(job, 3)
    record = await_checkpoints(server.jobs, job)
    assert [vertex.parallelism for vertex in record.vertices] == [2]
    server.jobs.rescale(job, 1)
    assert [vertex.parallelism for vertex in await_checkpoints(server.jobs, job).vertices] == [1]
    program = server.supervisor.find(job)[0]
    assert (program.number, program.revision.parallelism) == (1, 1), "the driver is the same, and a later one knows"
    assert program.driver is not None
    program.driver.kill()
    until(lambda: program.number == 2)
    record = await_checkpoints(server.jobs, job)
    assert [vertex.parallelism for vertex in record.vertices] == [1]
    assert record.checkpoints.restored is not None, "it continues, and does not begin anew"


def test_a_parallelism_beyond_the_cores_stops_nothing(servers, tmp_path):
    server = servers()
    program = tmp_path / "small.py"
    program.write_text(BUILT_FOR_TWO.replace("{capacity}", "2"))
    job = submit(server.jobs, program)
    await_checkpoints(server.jobs, job)
    with pytest.raises(NotEnoughSlots, match=r"parallelism of 9 needs 9 slots at once, .* 2 tasks at once.* as before"):
        server.jobs.rescale(job, 9)
    record = await_checkpoints(server.jobs, job)
    assert [vertex.parallelism for vertex in record.vertices] == [2]
    assert server.supervisor.find(job)[0].number == 1, "its driver was not even stopped"


def test_jobs_that_have_not_begun_can_be_cancelled_and_many_wait_for_their_turn(servers, tmp_path):
    server = servers(penstock__server__simultaneous_starts="2", penstock__server__submission_timeout="1 ms")
    program = tmp_path / "waiting.py"
    program.write_text("import time\nprint('here', flush=True)\ntime.sleep(1000)\n")
    waiting = [submit(server.jobs, program) for _ in range(4)]
    until(lambda: "here" in logs(server.jobs, waiting[1]))
    assert [server.jobs.record(job).status for job in waiting] == ["CREATED"] * 4
    started = [server.supervisor.find(job)[0].number for job in waiting]
    assert started == [1, 1, 0, 0], "two at once"
    for job in waiting:
        server.jobs.cancel(job)
    for job in waiting:
        await_record(server.jobs, job, lambda record: record.status == "CANCELED")


def test_damaged_entries_are_left_alone(servers, tmp_path, caplog):
    folder = tmp_path / "server/storage/default/jobs" / ("ab" * 16)
    folder.mkdir(parents=True)
    (folder / "spec.json").write_text('{"job_id": ')
    server = servers()
    assert server.jobs.records() == []
    assert "entry in the register is damaged" in caplog.text


def test_ended_jobs_are_forgotten_after_a_while(servers, tmp_path):
    server = servers(jobstore__max_capacity="1")
    program = tmp_path / "program.py"
    program.write_text("print('done')\n")
    first, second = (submit(server.jobs, program) for _ in range(2))
    server.supervisor._expire()
    assert [job.job_id for job in server.supervisor.all()] == [second]
    assert not (tmp_path / "server/drivers" / first).exists()
    assert not list((tmp_path / "server/storage/default/jobs").glob(f"{first}/*"))


def test_a_driver_that_stands_still_is_replaced(servers, tmp_path):
    server = servers(penstock__server__driver_timeout="1 s")
    job = submit(server.jobs, HERE / "counting.py", str(tmp_path / "out"), parallelism=2)
    await_checkpoints(server.jobs, job)
    stopped = driver_of(server, job)
    os.kill(stopped.pid, signal.SIGSTOP)
    until(lambda: not stopped.is_alive())
    await_record(
        server.jobs, job, lambda record: record.status == "RESTARTING" or server.supervisor.find(job)[0].number > 1
    )
    await_checkpoints(server.jobs, job)
    server.jobs.cancel(job)
    await_record(server.jobs, job, lambda record: record.status == "CANCELED")
    check_counts(tmp_path / "out", 2)


def test_a_driver_on_another_machine_is_displaced(servers, tmp_path):
    """The new leader cannot see it. It still runs, and must not do anything any more."""
    first = servers()
    job = submit(first.jobs, HERE / "counting.py", str(tmp_path / "out"), parallelism=2)
    await_checkpoints(first.jobs, job)
    far_away, supervised = driver_of(first, job), first.supervisor.find(job)[0]
    first.stop(keep_jobs=True)
    place = supervised.entry.place(1)
    supervised.entry.replace("drivers/000001.json", replace(place, where={**place.where, "machine": "another"}))

    second = servers()
    await_checkpoints(second.jobs, job)
    assert second.supervisor.find(job)[0].number == 2
    until(lambda: not far_away.is_alive())
    assert supervised.entry.outcome(1).how is How.DISPLACED
    await_checkpoints(second.jobs, job)
    second.jobs.cancel(job)
    await_record(second.jobs, job, lambda record: record.status == "CANCELED")
    check_counts(tmp_path / "out", 2)
