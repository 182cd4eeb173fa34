"""Connectors beside those of the peers, and lookups against their limit: `python benchmarks/connectors.py --help`."""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import environments
import launch
from launch import Program, running
from measuring import attempt, folder_of, header, say, versions
from pages import NOTHING, about, errors_in, quick_warning, table, times
from peers import files_jobs, kafka_jobs, workloads
from peers.kafka_jobs import AT_LEAST_ONCE, EXACTLY_ONCE

sys.path.insert(0, str(environments.ROOT))

FLINK_CONNECTOR = "5.0.0-2.2"
environments.REQUIREMENTS["quix"], environments.MEASURED["quix"] = ["quixstreams==3.28.1"], ["quixstreams"]


@dataclass(frozen=True)
class KafkaPeer:
    """A program that counts from topic to topic until it is ended."""

    label: str
    program: str
    environment: str
    records: int
    mode: str = ""


PENSTOCK = KafkaPeer("Penstock", "kafka_penstock.py", "", 1_000_000)
KAFKA_PEERS = (
    PENSTOCK,
    KafkaPeer("PyFlink, thread mode", "kafka_pyflink.py", "flink", 500_000, "thread"),
    KafkaPeer("PyFlink, process mode", "kafka_pyflink.py", "flink", 50_000, "process"),
    KafkaPeer("Quix Streams", "kafka_quix.py", "quix", 200_000),
)
PARTITIONS = 4
INTERVAL_MILLIS = 1000
WARM_UP = 0.1  # the share of the records that is not measured
SAMPLE_SECONDS = 0.1
SETTLED_SECONDS = 3
KAFKA_TIMEOUT = 240

FILE_PARTS = 4
FILE_PEERS = {"penstock": ["read", "copy"], "pyspark": ["count", "read", "read_rows", "copy", "copy_rows"]}
FILE_TIMEOUT = 600


@dataclass(frozen=True)
class Sizes:
    kafka_records: int | None = None
    """How many records every peer gets; None for the number that each peer is planned to get."""
    kafka_rounds: int = 2
    file_rows: int = 2_000_000
    file_warm_up_rows: int = 20_000
    file_repeats: int = 2
    quick: bool = False


QUICK = Sizes(20_000, 1, 20_000, 1_000, 1, quick=True)


# --- Kafka ---
def kafka_part(sizes: Sizes) -> dict:
    """Kafka to keyed count to Kafka, with both guarantees."""
    from tests.services.kafka import Kafka

    broker = Kafka(group__initial__rebalance__delay__ms="3000")
    try:
        broker.start()
        return {guarantee: KafkaRuns(broker, guarantee, sizes).all() for guarantee in (AT_LEAST_ONCE, EXACTLY_ONCE)}
    finally:
        broker.remove()


class KafkaRuns:
    """The runs of all peers with one guarantee, one after the other on one broker, with topics of their own."""

    def __init__(self, broker, guarantee: str, sizes: Sizes) -> None:
        self.broker = broker
        self.guarantee = guarantee
        self.sizes = sizes

    def all(self) -> dict:
        return {peer.label: attempt(f"{peer.label}, {self.guarantee}", self.best, peer) for peer in KAFKA_PEERS}

    def best(self, peer: KafkaPeer) -> dict:
        records = self.sizes.kafka_records or peer.records
        rates = [self.rate(peer, records) for _ in range(self.sizes.kafka_rounds)]
        return {"records": records, "rate": max(rates), "rates": rates}

    def rate(self, peer: KafkaPeer, records: int) -> float:
        """The rate of one run, whose results are checked."""
        source, target = (self.broker.create_topic(f"{name}-{time.time_ns()}", PARTITIONS) for name in ("in", "out"))
        settings = {
            "servers": self.broker.bootstrap,
            "source": source,
            "target": target,
            "guarantee": self.guarantee,
            "interval_millis": INTERVAL_MILLIS,
            "mode": peer.mode,
            "jar": flink_connector() if peer.environment == "flink" else "",
        }
        warm_up = int(WARM_UP * records)
        feed = Feed(self.broker.bootstrap, source, warm_up, records)
        python = environments.python_of(peer.environment)
        try:
            with running(python, peer.program, settings) as program, Watch(self.broker.bootstrap, target) as watch:
                watch.wait(program, warm_up)
                begin = feed.release()
                end = watch.wait(program, warm_up + records)
            self.check(target, warm_up + records)
        finally:
            self.forget()
        rate = records / (end - begin)
        say(f"{peer.label}, {self.guarantee}: {rate:,.0f} records/s")
        return rate

    def check(self, target: str, records: int) -> None:
        results = [message.value() for message in self.broker.read(target, timeout=120)]
        if len(results) != records:
            raise launch.RunFailed(f"{len(results):,} results for {records:,} records")
        if wrong := kafka_jobs.wrong(records, results):
            raise launch.RunFailed(wrong)

    def forget(self) -> None:
        """Delete what a run has written, so that the next finds the same disk."""
        for topic in self.broker.topics():
            if not topic.startswith(("__", "penstock-")):
                self.broker.delete_topic(topic)


class Feed:
    """The input: some records to warm up with, and all others in one transaction, so that they appear at once."""

    def __init__(self, servers: str, topic: str, warm_up: int, records: int) -> None:
        from confluent_kafka import Producer

        self.producer = Producer(
            {
                "bootstrap.servers": servers,
                "transactional.id": topic,
                "transaction.timeout.ms": 600_000,
                "queue.buffering.max.messages": warm_up + records,
                "linger.ms": 50,
                "log_level": 0,
            }
        )
        self.producer.init_transactions()
        values = kafka_jobs.values(warm_up + records)
        self.produce(topic, itertools.islice(values, warm_up))
        self.producer.commit_transaction()
        self.produce(topic, values)

    def produce(self, topic: str, values: Iterable[str]) -> None:
        self.producer.begin_transaction()
        for number, value in enumerate(values):
            self.producer.produce(topic, value, partition=number % PARTITIONS)
        self.producer.flush()

    def release(self) -> float:
        """Make the records visible, and return when that was."""
        begin = time.monotonic()
        self.producer.commit_transaction()
        return begin


class Watch:
    """What readers of committed records can see in a topic."""

    def __init__(self, servers: str, topic: str) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self.client = Consumer({"bootstrap.servers": servers, "group.id": "watch", "isolation.level": "read_committed"})
        self.partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def wait(self, program: Program, records: int) -> float:
        """When the last of this many records was seen. Offsets are counted; ends of transactions take some of them."""
        deadline, seen, since = time.monotonic() + KAFKA_TIMEOUT, 0, time.monotonic()
        while seen < records or time.monotonic() - since < SETTLED_SECONDS:
            program.check()
            now, found = time.monotonic(), self.end()
            if found > seen:
                seen, since = found, now
            if now > deadline:
                raise launch.RunFailed(f"{seen:,} of {records:,} records within {KAFKA_TIMEOUT} s")
            time.sleep(SAMPLE_SECONDS)
        return since

    def end(self) -> int:
        """The offsets of all partitions together; 0 while the broker is not ready to tell."""
        from confluent_kafka import KafkaException

        try:
            return sum(self.client.get_watermark_offsets(one, 10)[1] for one in self.partitions)
        except KafkaException:
            return 0


def flink_connector() -> str:
    from tests.services.maven import jars

    folder = jars(f"flink-kafka-{FLINK_CONNECTOR}", f"org.apache.flink:flink-sql-connector-kafka:{FLINK_CONNECTOR}")
    return str(next(folder.glob("flink-sql-connector-kafka-*.jar")))


def kafka_section(results: dict) -> str:
    caption = (
        f"A topic with {PARTITIONS} partitions, {kafka_jobs.KEYS:,} keys that lie in all of them, values like "
        "`1234,56`; key by the first part, a process function that counts in a ValueState and emits `1234,count` for "
        f"every record, into another topic; parallelism {workloads.PARALLELISM}, one broker on the same machine. "
        "Penstock and PyFlink take a checkpoint every second, Quix Streams commits as often; it runs in "
        f"{workloads.PARALLELISM} processes and brings the records of a key together through a topic, Penstock and "
        "PyFlink through their own exchange. The input is committed in one transaction while the job runs and has "
        f"counted {WARM_UP:.0%} as many records before; the time is taken from then until all results can be seen by "
        "readers of committed records, so no start-up is in it. The best of the rounds, whose rates are all given. "
        "Slower peers get fewer records. PyFlink's workers may cache the state of all keys. All results were checked: "
        "every key has each of its counts once. "
        f"PyFlink's connector is flink-sql-connector-kafka {FLINK_CONNECTOR}.\n"
    )
    head = ["", "guarantee", "Penstock's rate / this", "records/s", "each round", "records"]
    rows = []
    for guarantee, runs in results.items():
        ours = runs[PENSTOCK.label].get("rate")
        rows += [[label, guarantee, *kafka_cells(run, ours)] for label, run in runs.items()]
    return "\n".join([caption, table(head, rows)])


def kafka_cells(run: dict, ours: float | None) -> list[str]:
    if "rate" not in run:
        return ["**failed**", *[NOTHING] * 3]
    rounds = ", ".join(f"{rate:,.0f}" for rate in run["rates"])
    return [times(ours / run["rate"] if ours else None), f"{run['rate']:,.0f}", rounds, f"{run['records']:,}"]


# --- files ---
def files_part(sizes: Sizes) -> dict:
    """JSON lines and Parquet, read and written again."""
    folder = Path(tempfile.mkdtemp())
    try:
        return {format: formats_runs(folder, format, sizes) for format in (files_jobs.JSON, files_jobs.PARQUET)}
    finally:
        shutil.rmtree(folder)


def formats_runs(folder: Path, format: str, sizes: Sizes) -> dict:
    inputs = {"input": sizes.file_rows, "warm_up": sizes.file_warm_up_rows}
    settings = {name: str(write_files(folder / format / name, format, rows)) for name, rows in inputs.items()}
    measured: dict = {"rows": sizes.file_rows}
    for peer, jobs in FILE_PEERS.items():
        output = folder / format / peer
        given = {**settings, "format": format, "jobs": jobs, "output": str(output), "repeats": sizes.file_repeats}
        measured[peer] = attempt(f"{peer}, {format}", files_run, peer, given, sizes.file_rows)
        shutil.rmtree(output, ignore_errors=True)
    return measured


def write_files(folder: Path, format: str, rows: int) -> Path:
    """Write the input into files of the same size."""
    import pyarrow
    import pyarrow.parquet

    folder.mkdir(parents=True)
    share = rows // FILE_PARTS
    for part in range(FILE_PARTS):
        chosen = files_jobs.rows(part * share, share)
        if format == files_jobs.JSON:
            lines = (json.dumps(dict(zip(files_jobs.NAMES, row, strict=True)), separators=(",", ":")) for row in chosen)
            (folder / f"{part}.json").write_text("\n".join(lines) + "\n")
        else:
            columns = dict(zip(files_jobs.NAMES, map(list, zip(*chosen, strict=True)), strict=True))
            pyarrow.parquet.write_table(pyarrow.table(columns), folder / f"{part}.parquet")
    return folder


def files_run(peer: str, settings: dict, rows: int) -> dict:
    launch.TIMEOUT = FILE_TIMEOUT
    arguments = [json.dumps(settings)]
    result = launch.run_program(environments.python_of(""), launch.HERE / "peers" / f"files_{peer}.py", arguments)
    for job, seconds in result["seconds"].items():
        say(f"{peer}: {settings['format']}, {job}, {rows:,} rows in {min(seconds):.2f} s")
        if job.startswith("copy"):
            check_files(Path(settings["output"], f"{job}-0"), settings["format"], rows)
    return result


def check_files(folder: Path, format: str, rows: int) -> None:
    """Check that every id is there once."""
    import pyarrow.parquet

    ids: list[int] = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name[0] not in "._"):
        if format == files_jobs.JSON:
            with path.open() as lines:
                ids.extend(json.loads(line)["id"] for line in lines)
        else:
            ids.extend(pyarrow.parquet.read_table(path, columns=["id"])["id"].to_pylist())
    found = len(ids), len(set(ids))
    if found != (rows, rows):
        raise launch.RunFailed(f"{found[0]:,} rows in {folder.name}, {found[1]:,} of them different, of {rows:,}")


FILE_LABELS = {
    ("penstock", "read"): "Penstock: FileSource, rows dropped",
    ("pyspark", "read"): "PySpark: read, rows dropped (noop)",
    ("pyspark", "count"): "PySpark: read and count()",
    ("pyspark", "read_rows"): "PySpark: read, rows through Python (rdd.map), count",
    ("penstock", "copy"): "Penstock: FileSource to FileSink",
    ("pyspark", "copy"): "PySpark: read to write",
    ("pyspark", "copy_rows"): "PySpark: read, rows through Python (rdd.map), write",
}


def files_section(results: dict) -> str:
    rows_of = next(iter(results.values()))["rows"]
    caption = (
        f"{rows_of:,} rows (id, key, value, text) in {FILE_PARTS} files, whole jobs in a session that has run the same "
        f"job on a few rows before: the best time of the repeats. Both on `local[{workloads.PARALLELISM}]`, "
        "with the schema given and without checkpoints. PySpark's plain jobs never leave the JVM and make no Python "
        "object of a row, which every row of Penstock is; those with rdd.map show what that costs PySpark. For "
        "count() Spark decodes no column. What was written is checked: every id once.\n"
    )
    rows = [
        [label, format, *file_cells(runs, peer, job)]
        for format, runs in results.items()
        for (peer, job), label in FILE_LABELS.items()
    ]
    return "\n".join([caption, table(["", "format", "this one's time / Penstock's", "seconds", "rows/s"], rows)])


def file_cells(runs: dict, peer: str, job: str) -> list[str]:
    seconds = best_seconds(runs, peer, job)
    if seconds is None:
        return ["**failed**", NOTHING, NOTHING]
    ours = best_seconds(runs, "penstock", "copy" if job.startswith("copy") else "read")
    return [times(seconds / ours if ours else None), f"{seconds:.2f}", f"{runs['rows'] / seconds:,.0f}"]


def best_seconds(runs: dict, peer: str, job: str) -> float | None:
    return min(runs[peer].get("seconds", {}).get(job, []), default=None)


# --- lookups ---
def lookups_part(sizes: Sizes) -> dict:
    """Lookups with a latency through AsyncDataStream."""
    if importlib.util.find_spec("async_lookups") is None:
        return {"error": "benchmarks/async_lookups.py is not there"}
    return attempt("lookups", measured_lookups, sizes)


def measured_lookups(sizes: Sizes) -> dict:
    import async_lookups

    return {"table": async_lookups.table(async_lookups.measure(quick=sizes.quick))}


def lookups_section(results: dict) -> str:
    caption = (
        "Lookups that only wait, in one subtask on Spark; times are taken behind them, after the first tenth of the "
        "records. The limit is what the number of requests in flight and their latency allow. `asyncio alone` sleeps "
        "as often in a program without Penstock; a latency of 0 shows what the operator itself can do.\n"
    )
    return "\n".join([caption, results["table"], ""])


# --- all ---
@dataclass(frozen=True)
class Part:
    title: str
    measure: Callable[[Sizes], dict]
    section: Callable[[dict], str]


PARTS = {
    "kafka": Part("Kafka", kafka_part, kafka_section),
    "files": Part("Files", files_part, files_section),
    "lookups": Part("Asynchronous lookups", lookups_part, lookups_section),
}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to prove that everything runs")
    parser.add_argument("--only", metavar="PARTS", help=f"measure these alone: {','.join(PARTS)}")
    options = parser.parse_args()
    options.chosen = options.only.split(",") if options.only else list(PARTS)
    if unknown := set(options.chosen) - set(PARTS):
        parser.error(f"unknown parts {sorted(unknown)}, choose from {','.join(PARTS)}")
    return options


def run_all(options: argparse.Namespace) -> Iterator[dict]:
    """Run all parts and yield the results after each, so that none is lost if a later part is interrupted."""
    results = header(options.quick)
    for name in options.chosen:
        results[name] = attempt(name, PARTS[name].measure, QUICK if options.quick else Sizes())
        results["versions"] = versions(("", "flink", "quix"))
        yield results


def page(results: dict) -> str:
    parts = ["# Connectors: benchmark results\n", quick_warning(results), about(results)]
    for name, part in PARTS.items():
        if name in results:
            broken = "**Failed.**\n" if "error" in results[name] else part.section(results[name])
            parts += [f"## {part.title}\n", broken]
    return "\n".join(part for part in [*parts, failures(results)] if part)


def failures(results: dict) -> str:
    lines = [f"- {where}: {error}" for name in PARTS for where, error in errors_in(results.get(name), name)]
    return "## Failures\n\n" + "\n".join(lines) + "\n" if lines else ""


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # so that no server is left behind
    options = parse_arguments()
    folder = folder_of(options.quick, bool(options.only))
    for results in run_all(options):
        (folder / "connectors.json").write_text(json.dumps(results, indent=2) + "\n")
        (folder / "connectors.md").write_text(page(results))
    say(f"written: {folder / 'connectors.md'}")


if __name__ == "__main__":
    main()
