"""Penstock with checkpoints: what they cost a job, what one costs, recovery, and state in RocksDB."""

import os
import time
from dataclasses import dataclass
from statistics import median

import checkpoints_jobs as j
import penstock_peer
import workloads as w

from penstock.common import Configuration, Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import KeyedProcessFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.engine.operators.sources.source_operator import CHUNK_RECORDS, Reader, Source
from penstock.engine.records.elements import Chunk

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
WHOLE_STEP = {"penstock.epoch.max-records": "1000000000", "penstock.epoch.max-time": "10 min"}
FILES_ONLY = {"execution.checkpointing.data-inline-threshold": "0"}  # even for small states, so that all are alike


def environment(options):
    configuration = Configuration()
    for name, value in options.items():
        configuration.set_string(name, value)
    env = StreamExecutionEnvironment.create_local_environment(w.PARALLELISM)
    env.configure(configuration)
    return env


# a. What checkpoints cost a job.


def throughput(settings):
    """The keyed count of the main benchmark without and with checkpoints, in turn."""
    keys, sizes = settings["keys"], settings["sizes"]
    kinds = {"without": {}, "with": j.checkpoint_options(settings["interval_millis"])}
    for options in kinds.values() if len(sizes) > 1 else ():  # no warm-up for a run that is measured as a whole
        count_seconds(w.Job(w.KEYED_COUNT, penstock_peer.WARM_UP_RECORDS, 10), options)
    rounds = []
    for number in range(settings["rounds"]):
        order = list(kinds) if number % 2 == 0 else list(reversed(kinds))
        measured = {kind: [count_seconds(w.Job(w.KEYED_COUNT, n, keys), kinds[kind]) for n in sizes] for kind in order}
        rounds.append(measured)
    return {"rounds": rounds}


def count_seconds(job, options):
    env = environment(options)
    start = time.perf_counter()
    with penstock_peer.keyed_count(env, job).execute_and_collect() as results:
        digest = w.digest(job, results)
        seconds = time.perf_counter() - start
        history = history_of(results)
    if digest != w.expected_digest(job):
        raise SystemExit(f"ValueError: wrong results: {digest} instead of {w.expected_digest(job)}")
    return {"seconds": seconds, "checkpoints": len(history), "written": sum(c.written for c in history)}


def history_of(client):
    return client._job.view.checkpoints.completed


# b. What one checkpoint costs.

HOUR_MILLIS, STEP_SECONDS = 3_600_000, 600  # checkpoints are asked for, one after each step
OFFSET = 100_000_000  # gives keys and values the same number of bytes in small and large states


def cost(settings):
    """The cost of a checkpoint, by number of keys."""
    return {"by_keys": {str(keys): cost_at(keys, settings["repeats"], settings["few"]) for keys in settings["keys"]}}


def cost_at(keys, repeats, few):
    """A full checkpoint of a state that was filled before, then others after one in a hundred and after few changed."""
    percent = [range(shift, keys, 100) for shift in range(repeats)]
    spread = [range(shift, keys, keys // few)[:few] for shift in range(repeats)]
    steps = [range(keys), *percent, *spread]
    env = environment({**j.checkpoint_options(HOUR_MILLIS), **WHOLE_STEP, **FILES_ONLY})
    stream = env._source("Steps", Steps(steps), Types.LONG(), check=False)
    stream.key_by(lambda key: key, key_type=Types.LONG()).process(Touch()).discard()
    client = env.execute_async("checkpoint cost")
    touched = 0
    for step in steps:
        touched += len(step)
        j.wait_until(lambda wanted=touched: touched_by(client) >= wanted, client.get_job_status().result, STEP_SECONDS)
        client._job.trigger_checkpoint(full=step is steps[0])
    client.get_job_execution_result().result()
    costs = [cost_of(one, len(step)) for one, step in zip(history_of(client), steps, strict=False)]
    if len(costs) < len(steps):
        raise SystemExit(f"ValueError: {len(costs)} checkpoints for {len(steps)} steps")
    return {
        "full": costs[0],
        "percent": middle_of(costs[1 : 1 + repeats]),
        "few": middle_of(costs[1 + repeats :]),
        "each": costs,
    }


def touched_by(client):
    """How many records the keyed function has had."""
    slots = client._job.record().slots
    return sum(count for slot in slots for name, count in slot.metrics.items() if name.endswith(".numRecordsIn"))


def cost_of(completed, changed):
    return {
        "changed": changed,
        "sync_millis": completed.sync_millis,
        "async_millis": completed.async_millis,
        "written": completed.written,
    }


def middle_of(costs):
    return {name: median(one[name] for one in costs) for name in costs[0]}


class Touch(KeyedProcessFunction):
    def open(self, runtime_context):
        self.value = runtime_context.get_state(ValueStateDescriptor("value", Types.LONG()))

    def process_element(self, value, ctx):
        self.value.update((self.value.value() or OFFSET) + 1)


@dataclass
class Steps(Source):
    """Numbers step by step, each step in one epoch, the next once a checkpoint that covers it is complete."""

    steps: list[range]

    def reader(self, context, position=None):
        return StepReader(self.steps, context.subtask, position)


class StepReader(Reader):
    """Every subtask has its share of each step."""

    def __init__(self, steps, subtask, position):
        self._steps = [step[subtask :: w.PARALLELISM] for step in steps]
        self._subtask = subtask
        self._step, self._next = position or (0, 0)
        self._covered_by = None
        if position and self._is_emitted():  # this reader was restored from a complete checkpoint
            self._advance()

    def poll(self, output, budget):
        if self._step == len(self._steps):
            return self.after_steps(output, budget)
        numbers = self._steps[self._step][self._next : self._next + CHUNK_RECORDS]
        if numbers:
            output.chunk(Chunk([self.record(number) for number in numbers]))
        self._next += len(numbers)
        return len(numbers)

    def record(self, number):
        return OFFSET + number

    def after_steps(self, output, budget):
        self.finished = True
        return 0

    def waits_for_input(self):
        return True

    def position(self):
        return self._step, self._next

    def snapshot(self, into):
        if self._is_emitted() and self._covered_by is None:
            self._covered_by = into.checkpoint

    def checkpoint_complete(self, checkpoint):
        if self._covered_by is not None and checkpoint >= self._covered_by:
            self._advance()

    def _is_emitted(self):
        return self._step < len(self._steps) and self._next >= len(self._steps[self._step])

    def _advance(self):
        self._step, self._next, self._covered_by = self._step + 1, 0, None


# c. Recovery.

TAIL_KEYS = 32  # for every subtask in an epoch: enough for both keyed subtasks to get some
EPOCHS_BEFORE_FAILURE = 5


def recovery(settings):
    """Fill the state, wait for a checkpoint, fail and come back, as often as the settings say."""
    options = {
        **j.checkpoint_options(settings["interval_millis"]),
        **WHOLE_STEP,
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": str(settings["failures"]),
        "restart-strategy.fixed-delay.delay": f"{settings['delay_millis']} ms",
    }
    env = environment(options)
    stream = env._source("Fill", FillThenTail([range(settings["keys"])]), None, check=False)
    stream.key_by(w.key_of, key_type=Types.LONG()).process(Fragile(os.getcwd(), settings["failures"])).discard()
    client = env.execute_async("recovery")
    wait_and_cancel(client, lambda: len(j.recoveries()) == settings["failures"], settings["patience"])
    return {"recoveries": j.recoveries(), "checkpoint_bytes": max(one.size for one in history_of(client))}


def wait_and_cancel(client, reached, patience):
    def check():
        if client.get_job_status().result().is_terminal_state():
            client.get_job_execution_result().result()
            raise SystemExit("RuntimeError: the job ended too early")

    j.wait_until(reached, check, patience)
    client.cancel().result()


class Fragile(j.RecoverySteps, KeyedProcessFunction):
    def __init__(self, folder, failures):
        self.folder, self.failures = folder, failures

    def open(self, runtime_context):
        self.value = runtime_context.get_state(ValueStateDescriptor("value", Types.LONG()))
        self.begin(runtime_context.get_index_of_this_subtask(), runtime_context.get_attempt_number())

    def process_element(self, value, ctx):
        self.value.update(self.value_after(value, self.value.value()))


class FillThenTail(Steps):
    """One step, and then some records an epoch; after a few epochs one that makes the function fail."""

    def reader(self, context, position=None):
        return TailReader(self.steps, context.subtask, position)


class TailReader(StepReader):
    def __init__(self, steps, subtask, position):
        super().__init__(steps, subtask, position)
        self._keys = len(steps[0])
        self._served = None
        self._epochs = 0

    def record(self, number):
        return number, j.FILL, self._subtask

    def after_steps(self, output, budget):
        if budget is self._served:
            return 0
        self._served = budget
        self._epochs += 1
        fails = self._epochs == EPOCHS_BEFORE_FAILURE and self._subtask == 0
        kinds = [j.TAIL] * (TAIL_KEYS - 1) + [j.FAIL if fails else j.TAIL]
        output.chunk(Chunk([(key % self._keys, kind, self._subtask) for key, kind in enumerate(kinds)]))
        return TAIL_KEYS


# d. Large state.


def large_state(settings):
    """Fill the state, then count random keys until the rate is known."""
    options = {
        **j.checkpoint_options(settings["interval_millis"]),
        **(j.rocksdb_options(settings) if settings["backend"] == "rocksdb" else {}),
        "penstock.epoch.max-records": str(settings["epoch_records"]),
    }
    env = environment(options)
    numbers = env.from_sequence(0, w.PARALLELISM * j.SHARE - 1)
    pairs = numbers.map(j.fill_then_random(settings["keys"], settings["fill"]), output_type=PAIR)
    pairs.key_by(w.key_of, key_type=Types.LONG()).process(MeteredCount(os.getcwd())).discard()
    client = env.execute_async("large state")
    settle, seconds = settings["settle_seconds"], settings["seconds"]
    wait_and_cancel(client, lambda: j.metered_for(settle, seconds), settings["patience"])
    history = history_of(client)
    return {
        "rate": j.metered_rate(settle),
        "checkpoints": len(history),
        "checkpoint_bytes": max((one.size for one in history), default=0),
    }


class MeteredCount(KeyedProcessFunction):
    def __init__(self, folder):
        self.folder = folder

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.meter = j.Meter(self.folder, runtime_context.get_index_of_this_subtask())

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        self.meter.count(value[1])


if __name__ == "__main__":
    j.main({"throughput": throughput, "cost": cost, "recovery": recovery, "large_state": large_state})
