"""The job that gets killed: numbers are counted by key, the counts are checked by a second operator, all exactly once.

    python kill_job.py FOLDER MASTER

Checkpoints and results go below FOLDER. Started again after the driver died, it goes on where it was; with
TAKEOVER=true in the environment, also if the driver still lives. It ends when there is a file FOLDER/enough.
"""

import os
import sys
import time
from pathlib import Path

from penstock.common import Configuration, Types
from penstock.datastream import (
    CheckpointedFunction,
    KeyedProcessFunction,
    ParallelSourceFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.connectors.base import Committer, Sink, SinkWriter
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor

KEYS = 50
BURST = 20


class Numbers(ParallelSourceFunction, CheckpointedFunction):
    """Subtask i of p emits i, i + p, i + 2p, …, and tells how far it came when it is enough."""

    def __init__(self, folder):
        self.folder = folder
        self.running = True

    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("position", Types.LONG()))
        self.emitted = sum(self.state.get())

    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.step = runtime_context.get_number_of_parallel_subtasks()

    def run(self, ctx):
        while self.running and not Path(self.folder, "enough").exists():
            with ctx.get_checkpoint_lock():
                for _ in range(BURST):
                    ctx.collect(self.subtask + self.emitted * self.step)
                    self.emitted += 1
            time.sleep(0.02)
        if self.running:
            Path(self.folder, f"emitted-{self.subtask}").write_text(str(self.emitted))

    def cancel(self):
        self.running = False

    def snapshot_state(self, context):
        self.state.update([self.emitted])


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value % KEYS, count


class CheckTransitions(KeyedProcessFunction):
    """A machine with one legal transition: from each count to the next. Anything else is an alarm."""

    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))

    def process_element(self, value, ctx):
        key, count = value
        before = self.last.value() or 0
        self.last.update(count)
        yield f"{key} {count}" if count == before + 1 else f"ALARM {key} {before} -> {count}"


class FolderSink(Sink):
    """Each transaction is a file that a commit renames into sight."""

    def __init__(self, folder):
        self.folder = folder

    def create_writer(self, context, restored):
        return FolderWriter(self.folder)

    def create_committer(self):
        return FolderCommitter(self.folder)


class FolderWriter(SinkWriter):
    def __init__(self, folder):
        self.folder = folder
        self.lines = []

    def write(self, value, context):
        self.lines.append(value)

    def prepare_commit(self):
        if not self.lines:
            return []
        name = os.urandom(8).hex()
        Path(self.folder, "prepared", name).write_text("\n".join(self.lines))
        self.lines = []
        return [name]


class FolderCommitter(Committer):
    def __init__(self, folder):
        self.folder = folder

    def commit(self, committables):
        for name in committables:
            if not Path(self.folder, "visible", name).exists():
                os.rename(Path(self.folder, "prepared", name), Path(self.folder, "visible", name))


def environment(folder, master, **options):
    """Checkpoints below the folder, restarts without end, and recovery of the driver."""
    configuration = Configuration()
    for name, value in {
        "spark.master": master,
        "execution.checkpointing.interval": "300 ms",
        "execution.checkpointing.dir": f"file://{folder}/checkpoints",
        "execution.recover": "latest",
        "pipeline.job-id": "5107" * 8,
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1000",
        "restart-strategy.fixed-delay.delay": "10 ms",
        "execution.takeover": os.environ.get("TAKEOVER", "false"),
        "security.ssl.internal.enabled": os.environ.get("ENCRYPTED", "false"),
        **options,
    }.items():
        configuration.set_string(name, value)
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)


def count(numbers, folder):
    """The counts of the numbers by key, checked by a second operator."""
    for part in ("prepared", "visible"):
        Path(folder, part).mkdir(parents=True, exist_ok=True)
    counted = numbers.key_by(lambda number: number % KEYS).process(Count()).uid("count")
    checked = counted.key_by(lambda pair: pair[0]).process(CheckTransitions()).uid("check")
    checked.sink_to(FolderSink(folder)).uid("sink")


def main(folder, master):
    env = environment(folder, master)
    count(env.add_source(Numbers(folder)).uid("numbers"), folder)
    env.execute("counting")
    Path(folder, "ended").touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
