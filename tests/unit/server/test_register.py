"""The register of jobs on storage: what is written is found again, whole or not at all; the newest leader counts."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.storage import Storage
from penstock.engine.job.job_record import JobRecord
from penstock.errors import AlreadyThere, ConfigurationError
from penstock.service.server.leadership.fencing_numbers import claim_fence, fences, leader, newest_fence, next_fence
from penstock.service.server.register import CorruptEntry, Register, readable
from penstock.service.server.specs import DriverPlace, How, Outcome, Revision, Spec, Wanted, job_id_of

JOB = "ab" * 16
SPEC = Spec(JOB, 1_000, "program.py", ("a", "b c"), "m:f", True, {"x.password": "hunter2"}, "numpy\n")


@pytest.fixture(params=["file", "memory"])
def register(request, tmp_path):
    url = tmp_path.as_uri() + "/register" if request.param == "file" else f"memory://register-{tmp_path.name}"
    return Register(url)


@pytest.fixture
def entry(register):
    return register.add(SPEC, Revision(parallelism=2), b"print()\n")


def test_what_was_submitted_is_found_again(register, entry):
    assert register.job_ids() == [JOB]
    found = register.job(JOB)
    assert found.spec() == SPEC and found.program() == ("program.py", b"print()\n")
    assert found.revision() == Revision(parallelism=2)
    with pytest.raises(AlreadyThere):
        register.add(SPEC, Revision(), b"")


def test_revisions_follow_each_other_and_the_first_of_a_number_counts(entry):
    assert entry.revise(Revision(2, 4, "s")) == Revision(2, 4, "s")
    assert entry.revise(Revision(2, 5, "t")) == Revision(2, 4, "s")
    assert (entry.revision().parallelism, entry.revision(1).parallelism) == (4, 2)


def test_an_earlier_leader_cannot_undo_what_a_later_one_has_noted(entry):
    entry.want(Wanted(None), 7)
    entry.want(Wanted(3), 7)
    entry.want(Wanted(1), 6)
    entry.want(Wanted(1), 6)
    entry.want(Wanted(1), 6)
    assert entry.read_wanted() == Wanted(3)


def test_a_driver_has_its_number_alone(entry):
    place = DriverPlace(1, 1, 5, {"host": "h", "pid": 3}, "/s", "/k", "/f")
    entry.enter(place)
    with pytest.raises(AlreadyThere):
        entry.enter(DriverPlace(1, 1, 5, {"host": "h", "pid": 4}, "/s", "/k", "/f"))
    assert entry.drivers() == [1] and entry.place(1) == place and entry.place(2) is None


def test_what_a_driver_says_first_counts(entry):
    assert entry.outcome(1) is None
    entry.end(1, Outcome(How.CANCELED, 5))
    entry.end(1, Outcome(How.FAILED, 6))
    assert entry.outcome(1) == Outcome(How.CANCELED, 5)


def test_a_driver_that_died_behind_its_savepoint_was_rescaled(entry, tmp_path):
    folder = tmp_path / "rescaling"
    entry.plan_rescaling(3, Outcome(How.RESCALED, 9, savepoint=folder.as_uri(), parallelism=4, ordinal=1))
    assert entry.outcome(3) is None, "there is no savepoint yet"
    (folder / "savepoint-1").mkdir(parents=True)
    (folder / "savepoint-1" / "part").touch()
    assert entry.outcome(3) is None, "it is not complete"
    (folder / "savepoint-1" / "_metadata").touch()
    found = entry.outcome(3)
    assert (found.how, found.parallelism, found.ordinal) == (How.RESCALED, 4, 1)
    assert found.savepoint == (folder / "savepoint-1").as_uri()


def test_the_owner_before_a_revision_is_noted_once(entry):
    assert entry.owner_before(1, 0, 4) == 4
    assert entry.owner_before(1, 0, 9) == 4, "it has begun since"
    assert entry.owner_before(2, 0, 9) == 9


def test_last_records_are_kept(entry):
    record = JobRecord(JOB, "name", False, "FINISHED", ())
    entry.keep(0, record)
    entry.keep(1, record)
    assert entry.records() == {0: record, 1: record}


def test_damaged_entries_are_reported_and_passed_over(register, entry, caplog):
    other = "cd" * 16
    Storage(register.storage.url(f"jobs/{other}")).write("spec.json", [b'{"job_id": "cd'])
    with pytest.raises(CorruptEntry, match=r"spec.json' cannot be read"):
        register.job(other).spec()
    found = [spec.job_id for _, spec in readable(map(register.job, register.job_ids()))]
    assert found == [JOB] and f"ignoring job {other}" in caplog.text


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b"null", b'"x"', b'{"job_id": 3}', b"\xff\xfe"])
def test_no_content_of_a_file_is_fatal(register, text):
    storage = Storage(register.storage.url(f"jobs/{JOB}"))
    storage.write("spec.json", [text])
    assert list(readable(map(register.job, register.job_ids()))) == []


def test_a_forgotten_job_leaves_nothing(register, entry):
    entry.keep(0, JobRecord(JOB, "name", False, "FINISHED", ()))
    register.forget(JOB)
    assert register.job_ids() == [] and register.storage.names() == []


def test_programs(register):
    register.add_program("1-a_x.py", "x.py", b"x")
    assert register.programs() == [("1-a_x.py", "x.py")]
    assert register.program("1-a_x.py") == ("x.py", b"x") and register.program("none") is None
    assert register.delete_program("1-a_x.py") and not register.delete_program("1-a_x.py")
    assert register.programs() == []


def test_nobody_else_can_look_into_a_register_on_disk(tmp_path):
    Register((tmp_path / "register").as_uri())
    assert stat.S_IMODE(os.stat(tmp_path / "register").st_mode) == 0o700


def test_a_register_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match=r"the register cannot be kept"):
        Register((tmp_path / "file" / "register").as_uri())


def test_leaders_have_numbers_that_grow(register):
    storage = register.storage
    assert newest_fence(storage) == 0
    assert [next_fence(storage, {"id": name}) for name in "abc"] == [1, 2, 3]
    assert not claim_fence(storage, 3, {"id": "d"}) and not claim_fence(storage, 2, {"id": "d"})
    assert leader(storage, 3) == {"id": "c"} and leader(storage, 9) == {}
    assert fences(storage) == [3]


@given(st.integers(0, 50), st.integers(0, 50))
def test_ids_of_later_jobs_follow_from_the_first(one, other):
    assert (job_id_of(JOB, one) == job_id_of(JOB, other)) == (one == other)
    assert job_id_of(JOB, 0) == JOB and len(job_id_of(JOB, one)) == 32


def test_the_program_copies_are_within_the_register(register, entry):
    if register.storage.local:
        assert Path(register.storage.root, "jobs", JOB, "program", "program.py").is_file()
