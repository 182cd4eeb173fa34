"""PyFlink in thread mode with checkpoints: recovery, and state in RocksDB."""

import os
import sys
import time
from pathlib import Path

import checkpoints_jobs as j
import workloads as w
from pyflink.common import Configuration, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.datastream.functions import KeyedProcessFunction
from pyflink.datastream.state import ValueStateDescriptor

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
RECORD = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])
TAIL_SECONDS = 0.02  # between two records of a source's subtask once the state is filled
RECORDS_BEFORE_FAILURE = 25


def environment(options):
    configuration = Configuration()
    configuration.set_string("python.execution-mode", "thread")
    configuration.set_string("python.executable", sys.executable)
    configuration.set_string("python.client.executable", sys.executable)
    for name, value in options.items():
        configuration.set_string(name, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(w.PARALLELISM)
    return env


def endless_numbers(env):
    source = NumberSequenceSource(0, w.PARALLELISM * j.SHARE - 1)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", type_info=Types.LONG())


def wait_and_cancel(client, reached, patience):
    def check():
        if client.get_job_status().result().is_terminal_state():
            client.get_job_execution_result().result()
            raise SystemExit("RuntimeError: the job ended too early")

    j.wait_until(reached, check, patience)
    client.cancel().result()


def completed_checkpoints(folder):
    """The numbers of the complete checkpoints that are there; the older ones are deleted one by one."""
    files = Path(folder, j.CHECKPOINTS).glob("*/chk-*/_metadata")
    return [int(file.parent.name.removeprefix("chk-")) for file in files]


def task_of(runtime_context):
    """Flink's TaskInfo. In thread mode PyFlink 2.3 asks the Java context for methods that Flink 2 moved there."""
    return runtime_context._runtime_context.getTaskInfo()


# c. Recovery.


def recovery(settings):
    options = {
        **j.checkpoint_options(settings["interval_millis"]),
        "state.backend.type": "hashmap",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": str(settings["failures"]),
        "restart-strategy.fixed-delay.delay": f"{settings['delay_millis']} ms",
    }
    env = environment(options)
    records = endless_numbers(env).map(fill_then_tail(settings["keys"]), output_type=RECORD)
    fragile = Fragile(os.getcwd(), settings["failures"])
    records.key_by(w.key_of, key_type=Types.LONG()).process(fragile, output_type=Types.LONG()).print()
    client = env.execute_async("recovery")
    wait_and_cancel(client, lambda: len(j.recoveries()) == settings["failures"], settings["patience"])
    return {"recoveries": j.recoveries()}


def fill_then_tail(keys):
    """From numbers to records; those after the last key come slowly, but for the first after a restart."""
    is_late = False

    def record(number):
        nonlocal is_late
        place, source = j.place_of(number, j.SHARE), number // j.SHARE
        if place < keys:
            return place, j.FILL, source
        if is_late:
            time.sleep(TAIL_SECONDS)
        is_late = True
        return place % keys, j.TAIL, source

    return record


class Fragile(j.RecoverySteps, KeyedProcessFunction):
    """Fails in one subtask, when both sources are through with the fill and a checkpoint that began later is complete.

    Python functions are not told of checkpoints, so this one looks for their files.
    """

    def __init__(self, folder, failures):
        self.folder, self.failures = folder, failures

    def open(self, runtime_context):
        self.value = runtime_context.get_state(ValueStateDescriptor("value", Types.LONG()))
        task = task_of(runtime_context)
        self.begin(task.getIndexOfThisSubtask(), task.getAttemptNumber())
        self.tails, self.sources, self.filled_at = 0, set(), None

    def process_element(self, value, ctx):
        self.value.update(self.value_after(value, self.value.value()))
        return []

    def shall_fail(self, record):
        self.tails += 1
        self.sources.add(record[2])
        if self.subtask != 0 or len(self.sources) < w.PARALLELISM:
            return False
        if self.attempt > 0:
            return self.tails >= RECORDS_BEFORE_FAILURE
        newest = max(completed_checkpoints(self.folder), default=0)
        self.filled_at = newest if self.filled_at is None else self.filled_at
        return newest >= self.filled_at + 2  # the next one may have begun before the state was filled


# d. Large state.


def large_state(settings):
    env = environment({**j.checkpoint_options(settings["interval_millis"]), **j.rocksdb_options(settings)})
    pairs = endless_numbers(env).map(j.fill_then_random(settings["keys"], settings["fill"]), output_type=PAIR)
    counts = pairs.key_by(w.key_of, key_type=Types.LONG()).process(MeteredCount(os.getcwd()), output_type=Types.LONG())
    counts.print()
    client = env.execute_async("large state")
    settle, seconds = settings["settle_seconds"], settings["seconds"]
    wait_and_cancel(client, lambda: j.metered_for(settle, seconds), settings["patience"])
    return {"rate": j.metered_rate(settle), "checkpoints": max(completed_checkpoints(os.getcwd()), default=0)}


class MeteredCount(KeyedProcessFunction):
    def __init__(self, folder):
        self.folder = folder

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.meter = j.Meter(self.folder, task_of(runtime_context).getIndexOfThisSubtask())

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        self.meter.count(value[1])
        return []


if __name__ == "__main__":
    j.main({"recovery": recovery, "large_state": large_state})
