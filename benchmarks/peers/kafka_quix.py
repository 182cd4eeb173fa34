"""Quix Streams: Kafka to keyed count to Kafka, two processes of one consumer group, state in RocksDB with changelogs.

Records of a key lie in all partitions, so `group_by` writes them to another topic first.
"""

import multiprocessing
import os

import kafka_jobs as k
from quixstreams import Application
from workloads import PARALLELISM


def count(key_and_rest, state):
    count = state.get("count", 0) + 1
    state.set("count", count)
    return k.result(k.key_of(key_and_rest), count)


def run(settings, process):
    app = Application(
        broker_address=settings["servers"],
        consumer_group=settings["target"],
        auto_offset_reset="earliest",
        consumer_extra_config={"isolation.level": "read_committed"},
        commit_interval=settings["interval_millis"] / 1000,
        processing_guarantee=settings["guarantee"].replace(" ", "-"),
        state_dir=os.path.join(os.getcwd(), f"state-{process}"),
        loglevel="WARNING",
    )
    source = app.topic(settings["source"], key_deserializer="string", value_deserializer="string")
    target = app.topic(settings["target"], key_serializer="string", value_serializer="string")
    as_text = dict.fromkeys(("key_serializer", "key_deserializer", "value_serializer", "value_deserializer"), "string")
    keyed = app.dataframe(source).group_by(k.key_of, name="key", **as_text)
    keyed.apply(count, stateful=True).to_topic(target)
    app.run()


def main():
    settings = k.settings()
    processes = [multiprocessing.Process(target=run, args=(settings, number)) for number in range(PARALLELISM)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise SystemExit(f"RuntimeError: exit codes {[process.exitcode for process in processes]}")


if __name__ == "__main__":
    main()
