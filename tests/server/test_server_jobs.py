"""Jobs of a server in driver processes of their own, from submission to their end. Their slots are in the driver."""

import json
import os
import signal
import zipfile
from pathlib import Path

import pytest

from penstock.engine.observe.profiling import ProfileOrder
from penstock.errors import PenstockError, ProgramError
from penstock.service.rest.job_backend import Refused, RunRequest, SavepointOrder, UnknownJob
from tests.server.helping import (
    ADDRESS,
    HERE,
    await_checkpoints,
    await_record,
    check_counts,
    logs,
    service,
    submit,
)
from tests.waiting import until

pytestmark = [pytest.mark.service, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    made = service(tmp_path_factory.mktemp("server"))
    made.start(ADDRESS)
    yield made.jobs
    made.stop(keep_jobs=False)


@pytest.fixture
def program(tmp_path):
    def write(text, name="program.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_a_job_from_submission_over_savepoint_and_rescaling_to_its_end(jobs, tmp_path):
    job = submit(jobs, HERE / "counting.py", str(tmp_path), parallelism=2)
    record = await_checkpoints(jobs, job)
    assert (record.job_id, record.name, record.status) == (job, "counting", "RUNNING")
    assert [vertex.parallelism for vertex in record.vertices] == [2, 2]
    assert [change.status.name for change in record.changes] == ["CREATED", "RUNNING"]
    assert jobs.checkpoint(job, full=True) > 0
    path = jobs.savepoint(job, SavepointOrder(str(tmp_path / "savepoints")))
    assert Path(path.removeprefix("file://"), "_metadata").exists()

    jobs.rescale(job, 3)
    record = await_checkpoints(jobs, job)
    assert [vertex.parallelism for vertex in record.vertices] == [3, 3]
    assert record.checkpoints.restored is not None and not record.checkpoints.restored.savepoint
    assert jobs._supervisor.find(job)[0].number == 1, "the same driver runs it"

    with pytest.raises(PenstockError, match=r"from 1 to 128"):
        jobs.rescale(job, 200)
    assert jobs.record(job).status == "RUNNING"
    managers = jobs.task_managers()
    assert [manager.slots for manager in managers if job in manager.jobs] == [3]

    stopped = jobs.savepoint(job, SavepointOrder(str(tmp_path / "last"), stop=True))
    record = await_record(jobs, job, lambda record: record.status == "FINISHED")
    assert record.ended is not None and (tmp_path / "ended").exists()
    assert check_counts(tmp_path, 4) > 200
    with pytest.raises(Refused, match=r"FINISHED"):
        jobs.cancel(job)

    upgraded = submit(jobs, HERE / "counting.py", str(tmp_path), parallelism=1, savepoint=stopped)
    await_checkpoints(jobs, upgraded)
    jobs.cancel(upgraded)
    await_record(jobs, upgraded, lambda record: record.status == "CANCELED")
    jobs.dispose(stopped)
    check_counts(tmp_path, 4)


def test_a_driver_that_is_killed_is_started_again_and_nothing_is_lost_or_doubled(jobs, tmp_path):
    job = submit(jobs, HERE / "counting.py", str(tmp_path), parallelism=2)
    for _ in range(2):
        await_checkpoints(jobs, job)
        supervised, _ = jobs._supervisor.find(job)
        number = supervised.number
        os.kill(supervised.driver.pid, signal.SIGKILL)
        until(lambda number=number, supervised=supervised: supervised.number > number)
        await_checkpoints(jobs, job)
    record = jobs.record(job)
    assert [failure.kind for failure in record.failures] == ["DriverLost", "DriverLost"]
    assert record.checkpoints.restored is not None
    again = ["RESTARTING", "RUNNING"]
    assert [change.status.name for change in record.changes] == ["CREATED", "RUNNING", *again, *again]
    jobs.cancel(job)
    record = await_record(jobs, job, lambda record: record.status == "CANCELED")
    assert record.started == supervised.spec.submitted
    check_counts(tmp_path, 2)


def test_programs_that_cannot_run_say_why(jobs, program):
    with pytest.raises(ProgramError, match=r"cannot be compiled"):
        submit(jobs, program("def"))
    with pytest.raises(PenstockError, match=r"ZeroDivisionError: division by zero") as raised:
        submit(jobs, program("1 / 0"))
    failed = jobs.record(str(raised.value).split("logs ")[1][:32])
    assert failed not in jobs.records(), "there was no job"
    assert (failed.status, failed.failures[-1].kind) == ("FAILED", "ZeroDivisionError")
    assert "1 / 0" in failed.failures[-1].traceback and "ZeroDivisionError" in logs(jobs, failed.job_id)
    with pytest.raises(UnknownJob):
        jobs.record("00" * 16)


SEVERAL = """
import sys
from penstock.datastream import StreamExecutionEnvironment
from penstock.testing import in_process
with in_process():
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    for name in sys.argv[1:]:
        env.from_collection([1, 2]).map(lambda number: number + 1).print()
        env.execute(name)
"""


def test_each_job_of_a_program_is_shown(jobs, program):
    first = submit(jobs, program(SEVERAL), "one", "two")
    supervised, _ = jobs._supervisor.find(first)
    until(lambda: supervised.ended_at)
    records = [record for record in jobs.records() if record.job_id in (first, supervised.id_of(1))]
    assert [(record.name, record.status) for record in records] == [("one", "FINISHED"), ("two", "FINISHED")]
    assert records[0].started == supervised.spec.submitted and records[1].started >= records[0].ended
    out = next(file for file in jobs.logs(first) if file.name.endswith(".out"))
    assert out.path.read_text() == "2\n3\n2\n3\n"


def test_ended_jobs_are_read_from_the_archive_by_a_server_that_never_ran_them(tmp_path, program):
    options = {"jobmanager__archive__fs__dir": (tmp_path / "archive").as_uri()}
    made = service(tmp_path / "first", jobstore__max_capacity="0", **options)
    made.start(ADDRESS)
    first = submit(made.jobs, program(SEVERAL), "one", "two")
    until(lambda: len(list((tmp_path / "archive").glob("*"))) == 2)
    supervisor = made.supervisor
    until(lambda: supervisor.find(first) is None or supervisor.find(first)[0].ended_at)
    before = made.jobs.record(first)
    supervisor._expire()
    assert supervisor.find(first) is None
    made.stop(keep_jobs=False)

    later = service(tmp_path / "second", **options)
    later.history.refresh()
    assert [(record.name, record.status) for record in later.jobs.records()] == [
        ("one", "FINISHED"),
        ("two", "FINISHED"),
    ]
    assert later.jobs.record(first) == before and before.vertices and before.slots
    with pytest.raises(Refused, match=r"cannot be cancelled: it is FINISHED"):
        later.jobs.cancel(first)
    with pytest.raises(UnknownJob):
        later.jobs.record("00" * 16)


def test_a_plan_is_shown_without_starting_anything(jobs, program):
    uploaded = jobs.upload("program.py", program(SEVERAL))
    before = len(jobs.records())
    record = jobs.plan(RunRequest(uploaded.id, ("planned",), parallelism=1))
    assert record.name == "planned" and record.vertices[0].name.startswith("Source: Collection Source")
    assert len(jobs.records()) == before
    with pytest.raises(ProgramError, match=r"starts no job"):
        jobs.plan(RunRequest(uploaded.id))
    jobs.forget_program(uploaded.id)
    assert uploaded.id not in [one.id for one in jobs.programs()]


def wheel(folder):
    """A tiny package, as a wheel that pip can install without asking anyone."""
    path = folder / "greeting-1.0-py3-none-any.whl"
    info = "greeting-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("greeting.py", "def hello():\n    return 'hello from the wheel'\n")
        made.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
        made.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(f"{info}/RECORD", "")
    return path


def test_a_zip_brings_its_requirements_and_names_its_entry(jobs, tmp_path):
    program = tmp_path / "zipped.zip"
    with zipfile.ZipFile(program, "w") as made:
        made.writestr("work/__init__.py", "")
        made.writestr("work/jobs.py", "import greeting, sys\ndef main():\n    print(greeting.hello(), sys.argv[1:])\n")
        made.writestr("requirements.txt", f"greeting @ {wheel(tmp_path).as_uri()}\n")
    for _ in range(2):
        job = submit(jobs, program, "a", "b c", entry="work.jobs:main")
        await_record(jobs, job, lambda record: record.status == "FINISHED")
        assert "hello from the wheel ['a', 'b c']" in logs(jobs, job)
    environments = list((jobs._settings.data / "environments").glob("*/complete"))
    assert len(environments) == 1, "it is made once"


def test_options_of_the_server_itself_are_not_told_to_jobs(tmp_path):
    made = service(tmp_path / "server", security__rest__token__operate="s3cr3t-token", jobstore__max_capacity="5")
    made.start(ADDRESS)
    try:
        program = tmp_path / "program.py"
        program.write_text(
            "from penstock.service.launch.submission import defaults\nprint(defaults().configuration.to_dict())\n"
        )
        job = submit(made.jobs, program, configuration={"my.password": "hunter2", "x": "1"})
        await_record(made.jobs, job, lambda record: record.status == "FINISHED")
        said = logs(made.jobs, job)
        assert "s3cr3t" not in said and "jobstore" not in said
        assert "'my.password': 'hunter2'" in said, "its own secrets are its own"
        assert made.jobs.configuration()["security.rest.token.operate"] == "******"
        assert "hunter2" not in repr(made.jobs.records())
    finally:
        made.stop(keep_jobs=False)


TALKING = """
import logging
from penstock.datastream import MapFunction, StreamExecutionEnvironment
from penstock.testing import in_process

class Talk(MapFunction):
    def map(self, value):
        logging.getLogger("shop").debug("saw %d", value)
        return value

with in_process():
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.generate(rate=100).map(Talk()).name("Talk").uid("talk").discard()
    env.execute("talking")
"""


def test_a_job_is_watched_through_its_server(jobs, program):
    """Its functions log as JSON, levels change while it runs, and its slots are profiled."""
    job = submit(jobs, program(TALKING), configuration={"logging.format": "json"})
    await_record(jobs, job, lambda record: record.slots)
    assert "saw" not in logs(jobs, job)
    jobs.set_log_levels(job, {"shop": "DEBUG"})
    assert jobs.log_levels(job)["shop"] == "DEBUG"
    until(lambda: '"saw' in logs(jobs, job))
    said = [json.loads(line) for line in logs(jobs, job).splitlines() if line.startswith("{")]
    one = next(line for line in said if line["logger"] == "shop")
    assert {
        "level": "DEBUG",
        "job_id": job,
        "job_name": "talking",
        "operator": "Talk",
        "subtask": 0,
    }.items() <= one.items()
    with pytest.raises(PenstockError, match="LOUD"):
        jobs.set_log_levels(job, {"shop": "LOUD"})
    assert isinstance(jobs.profile(job, ProfileOrder(samples=3, millis=1)), list)
    jobs.cancel(job)
    await_record(jobs, job, lambda record: record.status == "CANCELED")
    with pytest.raises(Refused, match="CANCELED"):
        jobs.log_levels(job)
