"""A keyed BATCH job with more input than its memory, in a session in which every task has a process of its own.

    python batch_memory_job.py RECORDS MEMORY [RECORDS MEMORY ...]

Runs a job for each pair and prints a line of JSON for it: whether the result is right, and the largest memory of a
process of the second stage, in bytes. MEMORY is what `execution.sorted-inputs.memory` says.
"""

import json
import resource
import sys

from penstock.common import Configuration
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.functions import ReduceFunction

KEYS = 500
SLOTS = 2


def record(number):
    return number % KEYS, number, f"{number:01000d}"


def held(records):
    """What the objects of the records of one slot take at least, if all of them are in memory."""
    return records // SLOTS * (sys.getsizeof(record(0)) + sys.getsizeof(record(0)[2]))


class Total(ReduceFunction):
    def reduce(self, value1, value2):
        return value1[0], value1[1] + value2[1], ""


def with_peak(total):
    """Called behind the sort, when it has all its input."""
    return total[0], total[1], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run(records, memory):
    configuration = Configuration()
    configuration.set_string("execution.sorted-inputs.memory", memory)
    configuration.set_string("spark.python.worker.reuse", "false")
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(SLOTS)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    totals = env.from_sequence(0, records - 1).map(record).key_by(lambda made: made[0]).reduce(Total()).map(with_peak)
    found = list(totals.execute_and_collect())
    right = {key: total for key, total, _ in found} == {key: sum(range(key, records, KEYS)) for key in range(KEYS)}
    return {"right": right and len(found) == KEYS, "peak": max(peak for _, _, peak in found)}


if __name__ == "__main__":
    for records, memory in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        print(json.dumps(run(int(records), memory)), flush=True)
