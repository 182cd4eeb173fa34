"""Jobs of a program that has a Spark Connect session of its own; it says in JSON what came of them.

    python -m tests.spark.connect_job URL FOLDER

Numbers are counted by key. The job stops with a savepoint, continues from it with another parallelism, loses a slot to
SIGKILL, and goes on from its last checkpoint. Afterwards a function fails, and an idle job is cancelled.
"""

import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import psutil
from pyspark.sql import SparkSession

from penstock.common import Configuration
from penstock.datastream import RichMapFunction, StreamExecutionEnvironment
from penstock.errors import JobFailed
from tests.spark import kill_job
from tests.spark.kills import SLOT, Victim
from tests.waiting import SPARK_SECONDS, until


def environment(folder, parallelism, **options):
    configuration = Configuration()
    for name, value in {
        "execution.checkpointing.interval": "200 ms",
        "execution.checkpointing.dir": f"file://{folder}/checkpoints",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "5",
        "restart-strategy.fixed-delay.delay": "10 ms",
        **options,
    }.items():
        configuration.set_string(name, value)
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)


def counting(folder, parallelism, **options):
    env = environment(folder, parallelism, **options)
    kill_job.count(env.add_source(kill_job.Numbers(folder)).set_parallelism(2).uid("numbers"), folder)
    return env.execute_async("counting")


def slots(job):
    """By number: the process of each slot, which is no child of this process."""
    found = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            slot = SLOT.fullmatch(process.name())
            if slot is not None and job.startswith(slot[2]):
                found[int(slot[1])] = process.pid
    return found


def checkpoints(client):
    return set(Path(sys.argv[2]).glob(f"checkpoints/{client.get_job_id()}/chk-*/_metadata"))


def continue_through_faults(folder):
    client = counting(folder, 2)
    until(lambda: os.listdir(f"{folder}/visible"), patience=SPARK_SECONDS)
    savepoint = client.stop_with_savepoint(False, f"file://{folder}/savepoints").result()
    ended = client.get_job_status().result().name

    client = counting(folder, 3, **{"execution.state-recovery.path": savepoint})
    job = str(client.get_job_id())
    until(lambda: len(slots(job)) == 3 and checkpoints(client), patience=SPARK_SECONDS)
    before = slots(job)
    os.kill(before[1], signal.SIGKILL)
    until(lambda: len(slots(job)) == 3 and not set(before.values()) & set(slots(job).values()), patience=SPARK_SECONDS)
    Path(folder, "enough").touch()
    client.get_job_execution_result().result()
    until(lambda: not slots(job), patience=SPARK_SECONDS)
    Victim(Path(folder), "").check(kill_job.KEYS)
    return ended


def fail(folder):
    def reciprocal(number):
        return 1 / number

    env = environment(folder, 1, **{"restart-strategy.type": "none"})
    env.from_elements(1, 0).map(reciprocal).discard()
    try:
        env.execute("failing")
    except JobFailed as error:
        return str(error)


class ReadCached(RichMapFunction):
    def open(self, runtime_context):
        self.cache = runtime_context.get_distributed_cache()

    def map(self, value):
        name, _, inner = value.partition("/")
        return Path(self.cache.get_file(name), inner).read_text()


def read_cached(folder):
    Path(folder, "words").mkdir()
    Path(folder, "words", "one").write_text("in a folder")
    Path(folder, "word").write_text("in a file")
    env = environment(folder, 1)
    env.register_cached_file(f"{folder}/words", "words")
    env.register_cached_file(f"{folder}/word", "word")
    with env.from_elements("word", "words/one").map(ReadCached()).execute_and_collect() as read:
        return list(read)


def cancel(folder):
    env = environment(folder, 2)
    env.generate(lambda i: i, rate=0.01).key_by(lambda i: i).sum().discard()
    client = env.execute_async("idle")
    job = str(client.get_job_id())
    until(lambda: len(slots(job)) == 2, patience=SPARK_SECONDS)
    client.cancel().result()
    until(lambda: not slots(job), patience=SPARK_SECONDS)
    return client.get_job_status().result().name


def main(url, folder):
    spark = SparkSession.builder.remote(url).getOrCreate()
    results = {one.__name__: one(folder) for one in (continue_through_faults, fail, read_cached, cancel)}
    results["session"] = spark.range(3).count()
    print(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
