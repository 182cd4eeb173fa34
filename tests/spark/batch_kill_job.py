"""A BATCH job with sinks in both of its stages, which kills executors itself.

    python batch_kill_job.py FOLDER MASTER

The environment variable KILLS says which: "own" or "others". Numbers go into every exactly-once sink in the first stage
(FOLDER/systems.json says where the systems are), are counted by key in the second, and the counts go to FOLDER/counts.
"""

import os
import sys
import time
from pathlib import Path

from penstock.common import Configuration, Encoder, Types
from penstock.datastream import KeyedProcessFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.connectors.file_system import FileSink
from penstock.datastream.state import ValueStateDescriptor
from tests.spark.once import Once, fail, kill_executor, kill_other_executors
from tests.spark.sinks_kill_job import write_everywhere

RECORDS = 20_000
KEYS = 50
PATIENCE = 400
"""Seconds that any of it may take, for machines that are busy."""


class Count(KeyedProcessFunction):
    """Counts the numbers of a key. The subtask that does not kill says when it has come to its end."""

    def __init__(self, folder, killing):
        self.folder, self.killing = str(folder), killing
        self.has_failed = Once(0, Path(folder, "failed"), fail)
        self.kills = Once(0, Path(folder, "killed"), kill_executor if killing == "own" else self.kill_others)

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.attempt = runtime_context.get_attempt_number()
        self.last = None

    def process_element(self, value, ctx):
        if self.last not in (None, ctx.get_current_key()) and self.subtask == 1:
            # In the middle: one key is done, and others are to come.
            (self.has_failed if self.attempt == 0 else self.kills).map(0)
        self.last = ctx.get_current_key()
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(0)

    def on_timer(self, timestamp, ctx):
        yield f"{ctx.get_current_key()} {self.count.value()}"

    def close(self):
        if self.subtask == 0 and self.attempt == 1:
            Path(self.folder, "other-has-ended").touch()

    def kill_others(self):
        """What the other subtask has sent to the driver counts, and is to be there however often it is done again."""
        deadline = time.monotonic() + PATIENCE
        while not Path(self.folder, "other-has-ended").exists():
            assert time.monotonic() < deadline, "the other subtask does not end"
            time.sleep(0.05)
        time.sleep(1)
        kill_other_executors()


def main(folder, master):
    configuration = Configuration()
    for name, value in {
        "spark.master": master,
        "spark.shuffle.io.retryWait": "1s",  # it is 5 s, three times over, and the executor does not come back
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1",
        "restart-strategy.fixed-delay.delay": "10 ms",
    }.items():
        configuration.set_string(name, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    numbers = env.from_sequence(1, RECORDS)
    write_everywhere(numbers, folder)
    counts = numbers.key_by(lambda number: number % KEYS).process(Count(folder, os.environ["KILLS"]))
    counts.sink_to(FileSink.for_row_format(f"{folder}/counts", Encoder.simple_string_encoder()).build())
    env.execute("counting")


if __name__ == "__main__":
    main(*sys.argv[1:])
