"""Writes the savepoints that later versions must read: `python -m tests.compat.savepoints`, once per format version."""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
from collections import Counter
from pathlib import Path

from penstock.common import Configuration
from penstock.common.job import JobClient
from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.checkpoint.metadata import VERSION
from penstock.testing import ManualClock, in_process
from tests.compat import program_1

FOLDER = Path(__file__).with_name("savepoints")
VARIANTS = {
    f"{VERSION}-hashmap": {"state.backend.type": "hashmap"},
    f"{VERSION}-hashmap-compressed": {
        "state.backend.type": "hashmap",
        "execution.checkpointing.snapshot-compression": "true",
    },
    f"{VERSION}-hashmap-files": {
        "state.backend.type": "hashmap",
        "execution.checkpointing.dir": "memory://checkpoints",
        "execution.checkpointing.data-inline-threshold": "0 b",
    },
    f"{VERSION}-rocksdb": {"state.backend.type": "rocksdb"},
}


class StoppingClock(ManualClock):
    """Asks for a savepoint when the job has rested a number of times."""

    def __init__(self, after: int) -> None:
        super().__init__(now=1_000_000, tick=2)
        self.left = after
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def now(self) -> int:
        self.left -= 1
        if self.left == 0:
            self.reached.set()
            self.go_on.wait(30)
        return super().now()


def run(options: dict[str, str], parallelism: int, stop_in: str | None = None) -> tuple[Counter[str], str | None]:
    """The results of a run, from the beginning or from `execution.state-recovery.path`, and its savepoint."""
    configuration = Configuration()
    for name, value in options.items():
        configuration.set_string(name, value)
    clock = StoppingClock(40 if stop_in is not None else -1)
    with in_process(epoch_records=4, clock=clock):
        environment = StreamExecutionEnvironment.get_execution_environment(configuration)
        environment.set_parallelism(parallelism).enable_checkpointing(10)
        with program_1.build(environment).execute_and_collect() as results:
            path = None
            if stop_in is not None:
                assert clock.reached.wait(30)
                future = JobClient(results._job).stop_with_savepoint(False, stop_in)
                while not results._job._driver._messages:
                    pass
                clock.go_on.set()
                path = future.result()
            return Counter(map(repr, results)), path


def write() -> None:
    whole, _ = run({}, 2)
    for name, options in VARIANTS.items():
        target = FOLDER / name
        shutil.rmtree(target, ignore_errors=True)
        with tempfile.TemporaryDirectory() as scratch:
            before, path = run(options, 2, stop_in=scratch)
            assert path is not None
            shutil.copytree(path.removeprefix("file://"), target)
        rest, _ = run({"execution.state-recovery.path": target.as_uri()}, 2)
        assert before + rest == whole and before and rest, name
        (target / "expected.json").write_text(json.dumps(sorted(rest.elements()), indent=1) + "\n")
        print(name, sum(before.values()), "before,", sum(rest.values()), "behind")


if __name__ == "__main__":
    write()
