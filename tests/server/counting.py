"""A program for a server: numbers are counted by key, exactly once, into files below a folder.

    counting.py FOLDER [spark]

Without `spark` its slots are in the driver's process, so that it starts at once.
"""

import sys
from contextlib import nullcontext
from pathlib import Path

from penstock.common import Types
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor
from penstock.testing import in_process
from tests.spark.kill_job import FolderSink

KEYS = 8
RATE = 400


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{value} {value % KEYS} {count}"


def main(folder, where="here"):
    for part in ("prepared", "visible"):
        Path(folder, part).mkdir(parents=True, exist_ok=True)
    with nullcontext() if where == "spark" else in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        env.enable_checkpointing(200)
        numbers = env.generate(rate=RATE).uid("numbers")
        counted = numbers.key_by(lambda number: number % KEYS).process(Count()).uid("count")
        counted.sink_to(FolderSink(folder)).uid("sink")
        env.execute("counting")
    Path(folder, "ended").touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
