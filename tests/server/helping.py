"""What tests of the server have in common."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from penstock.service.options.server_options import ServerSettings
from penstock.service.rest.job_backend import RunRequest
from penstock.service.server.service import Service
from tests.server.counting import KEYS
from tests.waiting import SPARK_SECONDS, until

HERE = Path(__file__).parent
ADDRESS = "http://127.0.0.1:1"


def service(folder: Path, **options: str) -> Service:
    """A server in this process; options have "__" for each dot and "_" for each hyphen."""
    given = {"spark.master": "local[2]", "penstock.server.restart.initial-backoff": "50 ms"}
    given |= {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
    return Service(ServerSettings.of(folder, given))


def submit(jobs, program: Path, *arguments: str, **more) -> str:
    uploaded = jobs.upload(program.name, program)
    return jobs.run(RunRequest(uploaded.id, tuple(arguments), **more))


def await_record(jobs, job_id, condition, what="it did not happen"):
    """The job's record once it fulfils a condition; a job that makes checkpoints gets on."""

    def progress():
        record = jobs.record(job_id)
        return record.status, record.epoch, record.checkpoints.completed_in_all, len(record.failures)

    return until(
        lambda: (record := jobs.record(job_id)) and condition(record) and record,
        progress=progress,
        patience=SPARK_SECONDS,
        every=0.05,
        told=lambda: f"{what}: {jobs.record(job_id)}\n{logs(jobs, job_id)}",
    )


def await_checkpoints(jobs, job_id, more=2):
    """The job's record after so many more checkpoints of its driver."""
    record = await_record(jobs, job_id, lambda record: record.checkpoints.completed_in_all > 0)
    least = record.checkpoints.completed_in_all + more
    return await_record(jobs, job_id, lambda record: record.checkpoints.completed_in_all >= least)


def logs(jobs, job_id) -> str:
    return "\n".join(file.path.read_text(errors="replace")[-4000:] for file in jobs.logs(job_id))


def check_counts(folder: Path, parts: int) -> int:
    """Every number is there once, every key's counts have no gap; how many numbers there are.

    Numbers come from `parts` interleaved sequences, of which one may be ahead of another.
    """
    numbers, counts = [], defaultdict(list)
    for path in (folder / "visible").iterdir():
        for line in path.read_text().splitlines():
            number, key, count = map(int, line.split())
            numbers.append(number)
            counts[key].append(count)
    for part in range(parts):
        own = sorted(number for number in numbers if number % parts == part)
        assert own == list(range(part, part + len(own) * parts, parts)), f"sequence {part} of {parts}"
    for key, found in counts.items():
        assert sorted(found) == list(range(1, len(found) + 1)), f"key {key}"
    assert len(counts) == KEYS
    return len(numbers)
