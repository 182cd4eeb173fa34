"""REST under load: 200 requests a second for a minute, while a job with a steady input runs: `make bench-rest`.

The job reads a fixed number of records a second. Counted are requests that fail, how long requests take, and whether
the job keeps up with its input meanwhile.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from measuring import attempt, folder_of, header, say
from pages import about, failures, joined, quick_warning, save, table, targets

RATE, REQUESTS, CLIENTS = 20_000, 200, 8  # records a second, requests a second, threads that ask
PROGRAM = '''
import time
from penstock.common import Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import SourceFunction

class Steady(SourceFunction):
    """As many records a second as were asked for, whatever happens."""
    def run(self, context):
        self.going, began, sent = True, time.monotonic(), 0
        while self.going:
            due = int((time.monotonic() - began) * {rate})
            for number in range(sent, due):
                context.collect(number)
            sent = due
            time.sleep(0.005)
    def cancel(self):
        self.going = False

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
env.enable_checkpointing(1000)
numbers = env.add_source(Steady(), "steady", Types.LONG())
numbers.key_by(lambda n: n % 1000, Types.LONG()).reduce(lambda a, b: a + b).filter(lambda n: False).print()
env.execute("steady")
'''
PATHS = [
    "/overview",
    "/jobs/overview",
    "/jobs/{job}",
    "/jobs/{job}/checkpoints",
    "/jobs/{job}/exceptions",
    "/jobs/{job}/metrics",
    "/jobs/{job}/vertices/{vertex}",
    "/jobs/{job}/vertices/{vertex}/subtasks/metrics?get=numRecordsIn,busyTimeMsPerSecond",
    "/taskmanagers",
]


class Server:
    """A server of its own, with one job."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = {**os.environ, "PENSTOCK_HOME": str(folder / "home"), "PENSTOCK_CONF_DIR": str(folder)}
        (folder / "penstock-conf.yaml").write_text("rest.port: 0\n")
        started = self._command("server", "start", "--daemon", "--data", str(folder / "server"))
        self.url = "http://" + started.split("http://")[1].split()[0]

    def _command(self, *words: str) -> str:
        command = [sys.executable, "-m", "penstock", *words]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            raise RuntimeError(f"penstock {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def submit(self, program: str) -> str:
        file = self._folder / "steady.py"
        file.write_text(program)
        return self._command("run", "-d", "-m", self.url.removeprefix("http://"), str(file)).split()[1]

    def get(self, path: str) -> dict:
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return json.load(answer)

    def stop(self) -> None:
        self._command("server", "stop", "--data", str(self._folder / "server"))


def records_of(server: Server, job: str) -> int:
    return max(vertex["metrics"]["read-records"] for vertex in server.get(f"/jobs/{job}")["vertices"])


def rate_over(server: Server, job: str, seconds: float) -> float:
    began, before = time.monotonic(), records_of(server, job)
    time.sleep(seconds)
    return (records_of(server, job) - before) / (time.monotonic() - began)


def asked(server: Server, paths: list[str], seconds: float) -> dict:
    """Ask at the rate wanted, from several threads; how long each request took, and what failed."""
    times: list[float] = []
    errors: list[str] = []
    numbers, began = itertools.count(), time.monotonic()

    def ask() -> None:
        while True:
            number = next(numbers)
            due = began + number / REQUESTS
            if due > began + seconds:
                return
            time.sleep(max(0.0, due - time.monotonic()))
            start = time.monotonic()
            try:
                server.get(paths[number % len(paths)])
            except Exception as error:
                errors.append(f"{paths[number % len(paths)]}: {error}")
            times.append(time.monotonic() - start)

    threads = [threading.Thread(target=ask) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ordered = sorted(times)
    return {
        "requests": len(times),
        "per_second": len(times) / (time.monotonic() - began),
        "errors": len(errors),
        "first_errors": errors[:3],
        "median_millis": 1000 * statistics.median(ordered),
        "p99_millis": 1000 * ordered[int(len(ordered) * 0.99)],
    }


def measured(_: str, seconds: float) -> dict:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        server = Server(Path(folder))
        try:
            job = server.submit(PROGRAM.format(rate=RATE))
            until = time.monotonic() + 120
            while records_of(server, job) < 5 * RATE:
                if time.monotonic() > until:
                    raise RuntimeError("the job does not come to speed")
                time.sleep(0.5)
            vertex = server.get(f"/jobs/{job}")["vertices"][-1]["id"]
            alone = rate_over(server, job, seconds)
            paths = [path.format(job=job, vertex=vertex) for path in PATHS]
            found: dict = {}
            load = threading.Thread(target=lambda: found.update(asked(server, paths, seconds)))
            load.start()
            beside = rate_over(server, job, seconds)
            load.join()
        finally:
            server.stop()
    say(f"{found['per_second']:.0f} requests/s, {found['errors']} errors, rate {beside:.0f} of {alone:.0f}")
    return {**found, "alone": alone, "beside": beside}


def page(results: dict) -> str:
    run = results["load"]
    if "beside" not in run:
        return joined([failures(results), about(results)])
    kept = run["beside"] / run["alone"]
    rows = [
        ("no request fails", f"{run['errors']} of {run['requests']:,}", run["errors"] == 0),
        (f"{REQUESTS} requests a second are answered", f"{run['per_second']:.0f}", run["per_second"] > 0.98 * REQUESTS),
        (f"the job keeps its {RATE:,} records a second, to 1 %", f"{100 * kept:.1f}%", kept > 0.99),
    ]
    caption = (
        f"A server with one job, {results['seconds']:.0f} s without requests and as long with {REQUESTS} a second from "
        f"{CLIENTS} threads on the same machine, over {len(PATHS)} paths in turn. The job reads {RATE:,} records a "
        "second, whatever happens, and takes a checkpoint every second.\n"
    )
    answers = table(
        ["", "median", "99th percentile"],
        [["milliseconds of a request", f"{run['median_millis']:.1f}", f"{run['p99_millis']:.1f}"]],
    )
    return joined(
        ["# REST under load\n", quick_warning(results), targets(results, rows), caption, answers, about(results)]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few seconds, to prove that everything works")
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    seconds = 5.0 if options.quick else options.seconds
    results = {**header(options.quick), "seconds": seconds}
    results["load"] = attempt("REST under load", measured, "", seconds)
    text = page(results)
    save(folder_of(options.quick), "rest", results, text)
    print(text)


if __name__ == "__main__":
    main()
