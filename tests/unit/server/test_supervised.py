"""A job of a server between two of its drivers."""

from pathlib import Path

import pytest

from penstock.engine.job.job_record import JobRecord, as_json
from penstock.service.server.register import Register
from penstock.service.server.specs import Revision, Spec
from penstock.service.server.supervised_program import SupervisedProgram

JOB = "ab" * 16


@pytest.fixture
def job(tmp_path: Path) -> SupervisedProgram:
    spec = Spec(JOB, 1_000, "program.py", (), None, False, {}, None)
    entry = Register(tmp_path.as_uri()).add(spec, Revision(), b"print()\n")
    return SupervisedProgram(entry, spec, entry.revision())


def shown(job: SupervisedProgram) -> list[str]:
    return [record.name for record in job.records()]


def test_a_job_keeps_its_name_while_the_next_driver_has_not_come_to_it(job: SupervisedProgram) -> None:
    assert shown(job) == ["program.py"]
    record = JobRecord(JOB, "clicks by hour", False, "RUNNING", (), taken=1)
    job._take({"records": {"0": as_json(record)}, "reached": True, "runs": True})
    assert shown(job) == ["clicks by hour"]
    job._take({"records": {}, "reached": False, "runs": True})
    assert shown(job) == ["clicks by hour"]
