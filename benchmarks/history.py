"""What ended jobs cost a server: memory with 1,000 of them, and the time for lists and pages: `make bench-history`.

One real job with many checkpoints is run to its end; its record, under other ids, is what the register or the archive
of a server holds a thousand times.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import environments
import psutil
from measuring import attempt, folder_of, header, say
from pages import about, failures, joined, quick_warning, save, table, targets

sys.path.insert(0, str(environments.ROOT))

from rest_load import Server as AnyServer

JOBS, CHECKPOINTS = 1000, 100
MOST_KILOBYTES = 20  # of the server's memory for each ended job
PLACES = ("register", "archive")


class Server(AnyServer):
    """A server that runs no job, with a configuration."""

    def __init__(self, folder: Path, options: dict[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._options = options
        super().__init__(folder)
        told = json.loads(self._command("server", "status", "--json", "--data", str(folder / "server")))
        self.process = psutil.Process(told["pid"])

    def _command(self, *words: str) -> str:
        given = [word for name, value in self._options.items() for word in ("-D", f"{name}={value}")]
        return super()._command(*words, *(given if words[:2] == ("server", "start") else ()))

    def megabytes(self) -> float:
        return self.process.memory_info().rss / (1 << 20)


def ended_record(folder: Path):
    """The record of a job that ran here and has ended, with as many checkpoints as a record has."""
    from penstock.common import Configuration
    from penstock.datastream import StreamExecutionEnvironment
    from penstock.service.launch.submission import start
    from penstock.testing import ManualClock, in_process

    configuration = Configuration()
    configuration.set_string("execution.checkpointing.interval", "10 ms")
    configuration.set_string("execution.checkpointing.dir", (folder / "checkpoints").as_uri())
    with in_process(epoch_records=10, clock=ManualClock(int(time.time() * 1000), tick=12)):
        env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(4)
        env.from_sequence(0, 40 * 3 * CHECKPOINTS).key_by(lambda n: n % 100).reduce(lambda a, b: a + b).discard()
        job = start(env, "history")
        job.result()
    return job.record()


def fill(place: str, folder: Path, record, jobs: int) -> dict[str, str]:
    """Put ended jobs where a server finds them, and say with which options it does."""
    from penstock.service.server.job_archives import Archive
    from penstock.service.server.register import Register
    from penstock.service.server.specs import Revision, Spec
    from penstock.service.server.supervisor import Ended

    records = [replace(record, job_id=f"{number:032x}") for number in range(jobs)]
    if place == "archive":
        archive = Archive((folder / "archive").as_uri())
        for one in records:
            archive.keep(one)
        return {"jobmanager.archive.fs.dir": (folder / "archive").as_uri()}
    register = Register((folder / "storage").as_uri() + "/default")
    for one in records:
        entry = register.add(Spec(one.job_id, one.started, "program.py"), Revision(), b"")
        entry.keep(0, one)
        entry.replace("ended.json", Ended("FINISHED", int(time.time() * 1000)))
    return {"high-availability.storageDir": (folder / "storage").as_uri(), "jobstore.expiration-time": "1 d"}


def measure(place: str, record, jobs: int) -> dict:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        empty = Server(folder / "empty", {})
        before = empty.megabytes()
        empty.stop()
        options = fill(place, folder, record, jobs)
        server = Server(folder / "full", options)
        try:
            until = time.monotonic() + 120
            while len(server.get("/jobs/overview")["jobs"]) < jobs and time.monotonic() < until:
                time.sleep(0.2)
            began = time.perf_counter()
            listed = server.get("/jobs/overview")["jobs"]
            listing = time.perf_counter() - began
            assert len(listed) == jobs
            with_lists = server.megabytes()
            began = time.perf_counter()
            for job in listed:
                assert server.get(f"/jobs/{job['jid']}")["state"] == "FINISHED"
            pages = (time.perf_counter() - began) / jobs
            return {
                "empty": before,
                "listed": with_lists,
                "visited": server.megabytes(),
                "kilobytes": 1024 * (with_lists - before) / jobs,
                "list_millis": 1000 * listing,
                "page_millis": 1000 * pages,
            }
        finally:
            server.stop()


def page(results: dict) -> str:
    rows, aims = [], []
    for place, found in results["places"].items():
        if "error" in found:
            continue
        sizes = [f"{found[name]:.0f}" for name in ("empty", "listed", "visited")]
        rows.append([place, *sizes, *(f"{found[n]:.1f}" for n in ("kilobytes", "list_millis", "page_millis"))])
        met = found["kilobytes"] <= MOST_KILOBYTES
        aims.append((f"{place}: ≤ {MOST_KILOBYTES} KB for a job", f"{found['kilobytes']:.1f} KB", met))
    head = ["in the", "MB without", "MB listed", "MB, each page seen", "KB for a job", "list, ms", "page of a job, ms"]
    text = (
        f"{results['jobs']:,} jobs that have ended, each with {results['checkpoints']} checkpoints and "
        f"{results['record_kilobytes']:.0f} KB as JSON: the memory of the server's process (RSS) without any, once all "
        "are listed, and after the page of each was asked for: of those, the last 32 are held as a whole. A job's "
        "share is that of the list.\n"
    )
    return joined(
        [
            "# Ended jobs in a server\n",
            quick_warning(results),
            about(results),
            text,
            table(head, rows),
            targets(results, aims),
            failures(results["places"]),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=JOBS)
    given = parser.parse_args()
    from penstock.engine.job.job_record import as_json

    jobs = 50 if given.quick else given.jobs
    with tempfile.TemporaryDirectory() as name:
        record = ended_record(Path(name))
    size = len(json.dumps(as_json(record))) / 1024
    results = header(given.quick) | {"jobs": jobs, "checkpoints": len(record.checkpoints.completed), "places": {}}
    results["record_kilobytes"] = size
    for place in PLACES:
        results["places"][place] = found = attempt(place, measure, place, record, jobs)
        say(f"{place}: " + ", ".join(f"{name} {value:.1f}" for name, value in found.items() if name != "error"))
    text = page(results)
    save(folder_of(given.quick, partial=jobs != JOBS and not given.quick), "history", results, text)
    print(text)


if __name__ == "__main__":
    main()
