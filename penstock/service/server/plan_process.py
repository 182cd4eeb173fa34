"""The plan of a program, created in a separate process without starting the job.

python -m penstock.service.server.plan_process FOLDER
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.common.configuration import Configuration
from penstock.common.job import JobID, JobStatus
from penstock.engine.job.job_record import JobRecord, as_json, from_json, record_of
from penstock.engine.job.job_view import JobView, StatusChange
from penstock.engine.observe.rates import Rates
from penstock.errors import PenstockError, ProgramError
from penstock.service.launch.program_runner import Program
from penstock.service.launch.recorded_settings import settings_record
from penstock.service.launch.submission import plan_of, with_defaults
from penstock.service.options.server_options import PYTHON, ServerSettings, job_options
from penstock.service.server.drivers import process_environment
from penstock.service.server.specs import Spec
from penstock.service.server.virtual_environments import python_for

if TYPE_CHECKING:
    from penstock.datastream import StreamExecutionEnvironment

LONGEST_SECONDS = 120


class _FirstJobReached(BaseException):
    """The program has reached its first job. As a BaseException, it passes the handlers of most programs."""

    def __init__(self, record: JobRecord) -> None:
        super().__init__("the plan is known")
        self.record = record


def plan_program(spec: Spec, parallelism: int | None, program: bytes, settings: ServerSettings) -> JobRecord:
    """Return the record of the first job that a program would start.

    Raise ProgramError with the program's output if it starts no job.
    """
    configuration = {**job_options(settings.configuration), **spec.configuration}
    if parallelism is not None:
        configuration["parallelism.default"] = str(parallelism)
    with tempfile.TemporaryDirectory(prefix="penstock-plan-") as name:
        folder = Path(name)
        (folder / spec.program).write_bytes(program)
        (folder / "spec.json").write_text(json.dumps({"spec": as_json(spec), "configuration": configuration}))
        python = PYTHON.of(configuration) or python_for(spec.requirements, settings.data / "environments")
        try:
            done = subprocess.run(
                [python, "-m", "penstock.service.server.plan_process", str(folder)],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
                timeout=LONGEST_SECONDS,
                env=process_environment(),
            )
        except subprocess.TimeoutExpired:
            raise ProgramError(f"the program did not start a job within {LONGEST_SECONDS} s") from None
        if (folder / "plan.json").exists():
            return from_json(JobRecord, json.loads((folder / "plan.json").read_text()))
    raise ProgramError(f"the program starts no job:\n{(done.stderr or done.stdout).strip()[-4000:]}")


def _stop_at_job(environment: StreamExecutionEnvironment, job_name: str | None) -> bool:
    plan, now = plan_of(environment, job_name), int(time.time() * 1000)
    view = JobView(JobID().hex, plan, JobStatus.CREATED, (StatusChange(JobStatus.CREATED, now),))
    raise _FirstJobReached(record_of(view, settings_record(environment.settings), Rates(), now))


def main(folder: Path) -> None:
    """Run the program up to its first job, and write the job's record to a file."""
    told: dict[str, Any] = json.loads((folder / "spec.json").read_text())
    spec = from_json(Spec, told["spec"])
    configuration = Configuration.from_dict(told["configuration"])
    try:
        with with_defaults(configuration=configuration, before_start=_stop_at_job, plans_only=True):
            Program(folder / spec.program, spec.entry).run(spec.arguments, spec.pyflink)
    except _FirstJobReached as reached:
        (folder / "plan.json").write_text(json.dumps(as_json(reached.record)))
    except PenstockError as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
