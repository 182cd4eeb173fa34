"""Savepoints that the last build before 0.2 wrote: `python -m tests.compat.savepoints_before_0_2`, in that build only.

Each is an archive of the savepoint's files, of `expected.json`, which that build made of it, and of `outside.json`, if
the program has files and sinks.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from penstock.common import Configuration
from penstock.common.job import JobClient
from penstock.datastream import StreamExecutionEnvironment
from penstock.service.launch.submission import with_defaults
from penstock.testing import InProcessCluster, ManualClock, in_process
from tests.compat import program_2_patterns, program_2_sql, program_2_streams, program_2_tables
from tests.compat.savepoints import FOLDER

PROGRAMS: dict[str, ModuleType] = {
    "patterns": program_2_patterns,
    "sql": program_2_sql,
    "streams": program_2_streams,
    "tables": program_2_tables,
}
EPOCHS = {"patterns": 18, "sql": 30, "streams": 30, "tables": 12}
"""Number of epochs before the savepoint of each program."""
OPTIONS = {"restart-strategy.type": "none", "pipeline.auto-watermark-interval": "1 ms"}
LATER = 100_000_000
"""The time at which jobs start again, in milliseconds, long after the savepoint."""


class StoppingCluster(InProcessCluster):
    """Waits before an epoch until a savepoint is wanted."""

    def __init__(self, epochs: int) -> None:
        super().__init__()
        self.left = epochs
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def run(self, command: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            self.reached.set()
            assert self.go_on.wait(60)
        return super().run(command)


def archive(kind: str, backend: str) -> Path:
    """The archive of a savepoint."""
    return FOLDER / f"before-0.2-{kind}-{backend}.zip"


def unpack(kind: str, backend: str, folder: Path) -> Path:
    """Write the files of a savepoint into a folder."""
    with ZipFile(archive(kind, backend)) as packed:
        packed.extractall(folder)
    return folder


def run(
    program: ModuleType, options: dict[str, str], parallelism: int, stop_in: str | None = None, epochs: int = -1
) -> tuple[list[Any], str | None]:
    """Run a program, up to a savepoint or to its end. Return its results and the path of the savepoint."""
    configuration = Configuration()
    for name, value in {**OPTIONS, **options}.items():
        configuration.set_string(name, value)
    cluster = StoppingCluster(epochs)
    clock = ManualClock(now=1_000_000 if stop_in else LATER, tick=2)
    with (
        in_process(epoch_records=4 if stop_in else 16, clock=clock),
        with_defaults(cluster=lambda settings, deployment: cluster),
    ):
        environment = StreamExecutionEnvironment.get_execution_environment(configuration)
        environment.set_parallelism(parallelism).enable_checkpointing(40)
        with program.build(environment).execute_and_collect() as results:
            path = None
            if stop_in is not None:
                assert cluster.reached.wait(60)
                future = JobClient(results._job).stop_with_savepoint(False, stop_in)
                while not results._job._driver._messages:
                    time.sleep(0.001)
                cluster.go_on.set()
                path = future.result()
            return list(results), path


def add_up(program: ModuleType, records: Iterable[Any]) -> Counter[str]:
    """Return results as a bag. Changes of tables begin with +1 or -1; those that cancel out are left out."""
    if program is not program_2_sql:
        return Counter(map(repr, records))
    found: Counter[str] = Counter()
    for count, *row in records:
        found[repr(tuple(row))] += count
    return Counter({row: count for row, count in found.items() if count})


def restore(kind: str, folder: Path, parallelism: int, backend: str) -> Counter[str]:
    """Run a program from a savepoint to its end. Return everything that comes after the savepoint."""
    program = PROGRAMS[kind]
    options = {"execution.state-recovery.path": folder.as_uri(), "state.backend.type": backend}
    if not hasattr(program, "outside"):
        return add_up(program, run(program, options, parallelism)[0])
    program.reset()
    program.put_back(json.loads((folder / "outside.json").read_text()))
    records, _ = run(program, options, parallelism)
    return add_up(program, [*records, *program.results()])


def write(kind: str, backend: str) -> None:
    program = PROGRAMS[kind]
    if hasattr(program, "outside"):
        program.reset()
    program_2_streams.ANSWERING[0] = False
    with tempfile.TemporaryDirectory() as scratch:
        before, path = run(program, {"state.backend.type": backend}, 2, scratch, EPOCHS[kind])
        program_2_streams.ANSWERING[0] = True
        assert path is not None
        folder = Path(path.removeprefix("file://"))
        if hasattr(program, "outside"):
            (folder / "outside.json").write_text(json.dumps(program.outside()))
        rest = restore(kind, folder, 2, backend)
        (folder / "expected.json").write_text(json.dumps(rest, indent=0, sort_keys=True))
        with ZipFile(archive(kind, backend), "w") as packed:
            for file in sorted(folder.iterdir()):
                packed.writestr(ZipInfo(file.name), file.read_bytes(), ZIP_DEFLATED, 9)
    print(archive(kind, backend).name, len(before), "results before,", len(rest), "different ones after the savepoint")


if __name__ == "__main__":
    for kind in PROGRAMS:
        for backend in ("hashmap", "rocksdb"):
            write(kind, backend)
