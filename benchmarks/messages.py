"""Messages of Kafka read and written many at a time beside one by one: `make bench-messages`.

First what the formats cost by themselves, in this process; then a query over topics of a real broker, whose runs take
turns: as it is, and with all messages read one by one.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

import environments
from measuring import attempt, folder_of, header, say
from pages import about, failures, joined, quick_warning, save, table, times

sys.path.insert(0, str(environments.ROOT))

from penstock.connectors.kafka.decoding import Messages
from penstock.connectors.kafka.kafka_sink import KafkaRecordSerializationSchema, Serializer
from penstock.formats.batch_of_rows import BatchOfRows
from penstock.formats.message_batches import MessagesTogether, reads_together
from penstock.table import EnvironmentSettings, StreamTableEnvironment
from penstock.table.connectors import declare_table
from penstock.table.connectors.kafka_records import Reading
from penstock.table.connectors.kafka_table import Kafka as KafkaConnector
from penstock.table.logical.nodes import Column
from penstock.table.operators.base.records import FromRecords
from penstock.table.operators.io.row_conversions import ToRows, values_batch
from penstock.table.types.data_types import DataTypes
from penstock.testing import in_process
from tests.services.kafka import Kafka

FORMATS = ("json", "csv", "avro")
ONE_BY_ONE, AT_ONCE = "one by one", "at once"
KEYS, PARTITIONS = 1000, 2
COLUMNS = (
    Column("k", DataTypes.BIGINT()),
    Column("v", DataTypes.BIGINT()),
    Column("price", DataTypes.DOUBLE()),
    Column("name", DataTypes.STRING()),
    Column("ts", DataTypes.TIMESTAMP(3)),
)
DDL = "k BIGINT, v BIGINT, price DOUBLE, name STRING, ts TIMESTAMP(3)"
QUERY = "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM sales GROUP BY k"


@dataclass(frozen=True)
class Sizes:
    batches: tuple[int, ...] = (1, 10, 100, 1_000, 10_000)
    seconds: float = 0.3
    """How long each cost is measured, several times over."""
    repeats: int = 15
    records: int = 300_000
    rounds: int = 3
    quick: bool = False


QUICK = Sizes((1, 100), 0.01, 1, 5_000, 1, quick=True)


class Message:
    """A message of Kafka as far as its bytes are concerned."""

    def __init__(self, value: bytes) -> None:
        self._value = value

    def value(self) -> bytes:
        return self._value

    def key(self) -> None:
        return None

    def headers(self) -> None:
        return None

    def topic(self) -> str:
        return "sales"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return 0

    def timestamp(self) -> tuple[int, int]:
        return 1, 1_700_000_000_000


def sale(number: int) -> tuple:
    moment = datetime.datetime(2024, 1, 1) + datetime.timedelta(milliseconds=number)
    return number * 7919 % KEYS, number, number % 97 / 8, f"name {number}", moment


def table_of(format: str):
    return declare_table("sales", {"format": format}, COLUMNS)


# --- costs in this process ---
def compared(ways: dict[str, Callable[[], object]], count: int, sizes: Sizes) -> dict[str, float]:
    """Microseconds for each message, in ways that take turns: the least, since nothing makes a program faster."""
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(sizes.repeats):
        for way, call in ways.items():
            found[way].append(seconds_of(call, sizes.seconds / sizes.repeats))
    return {way: min(seconds) / count * 1e6 for way, seconds in found.items()}


def seconds_of(call: Callable[[], object], least: float) -> float:
    """What one of many calls takes, in seconds of processor time."""
    call()
    calls, begin = 0, time.process_time()
    while (spent := time.process_time() - begin) < least or not calls:
        call()
        calls += 1
    return spent / calls


def costs(format: str, sizes: Sizes) -> dict:
    """For each size of a batch: what reading and writing cost in both ways."""
    return {size: costs_of(format, size, sizes) for size in sizes.batches}


def costs_of(format: str, size: int, sizes: Sizes) -> dict:
    batch = values_batch(COLUMNS, [sale(number) for number in range(size)])
    writing, _ = KafkaConnector()._writing(table_of(format))
    to_rows = ToRows(COLUMNS, False)
    values = [writing.serialize(row) for row in to_rows._rows(batch)]
    serializer = Serializer(KafkaRecordSerializationSchema("sales", writing), lambda topic: [0])
    calls = {
        "table": reading_tables(format, [Message(value) for value in values]),
        "stream": reading_streams(format, values),
        "writing": {
            ONE_BY_ONE: lambda: serializer.chunk(to_rows._rows(batch), None),
            AT_ONCE: lambda: serializer.batch(BatchOfRows(batch)) or serializer.chunk(to_rows._rows(batch), None),
        },
    }
    return {what: compared(ways, size, sizes) for what, ways in calls.items()}


def reading_tables(format: str, messages: list[Message]) -> dict[str, Callable[[], object]]:
    """From messages to a batch of the table."""
    reading = KafkaConnector()._reading(table_of(format))
    gather = FromRecords(COLUMNS, (), False)
    gather._schema = values_batch(COLUMNS, []).schema
    gather._fields, gather._names = list(range(len(COLUMNS))), [column.name for column in COLUMNS]

    def one_by_one() -> object:
        given = Messages(messages, Message)
        return gather._batch([row for one in given.records() for row in reading.deserialize(one)], None)

    def at_once() -> object:
        found = reading.deserialize_batch(Messages(messages, Message))
        return one_by_one() if found is None else found.batch

    return {ONE_BY_ONE: one_by_one, AT_ONCE: at_once}


def reading_streams(format: str, values: list[bytes]) -> dict[str, Callable[[], object]]:
    """From messages to Rows."""
    schema = KafkaConnector()._reading(table_of(format))._value.columns._schema
    assert reads_together(schema)
    together = MessagesTogether.of(schema)

    def one_by_one() -> object:
        return [schema.deserialize(value) for value in values]

    def at_once() -> object:
        found = together.rows(values)
        return one_by_one() if found is None else list(found)

    return {ONE_BY_ONE: one_by_one, AT_ONCE: at_once}


# --- a query over a broker's topics ---
@contextmanager
def looked_at(way: str) -> Iterator[None]:
    """Read messages in one of the two ways."""
    at_once = Reading.deserialize_batch
    if way == ONE_BY_ONE:
        Reading.deserialize_batch = lambda self, messages: None
    try:
        yield
    finally:
        Reading.deserialize_batch = at_once


def fill(broker: Kafka, topic: str, format: str, records: int) -> None:
    from confluent_kafka import Producer

    writing, _ = KafkaConnector()._writing(table_of(format))
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 50})
    for first in range(0, records, 10_000):
        batch = values_batch(COLUMNS, [sale(number) for number in range(first, min(first + 10_000, records))])
        for number, value in enumerate(writing.write_batch(batch)):
            producer.produce(topic, value, partition=number % PARTITIONS)
        producer.flush()


def query(broker: Kafka, topic: str, format: str) -> dict:
    """Seconds, and seconds of processor time, of one run."""
    with in_process():
        t_env = StreamTableEnvironment.create(environment_settings=EnvironmentSettings.in_streaming_mode())
        t_env.get_config().set("parallelism.default", str(PARTITIONS))
        t_env.execute_sql(
            f"CREATE TABLE sales ({DDL}) WITH ('connector' = 'kafka', 'topic' = '{topic}', 'format' = '{format}', "
            f"'properties.bootstrap.servers' = '{broker.bootstrap}', 'scan.startup.mode' = 'earliest-offset', "
            "'scan.bounded.mode' = 'latest-offset')"
        )
        t_env.execute_sql("CREATE TABLE nothing (k BIGINT, n BIGINT, s BIGINT) WITH ('connector' = 'blackhole')")
        begin, spent = time.perf_counter(), time.process_time()
        t_env.execute_sql(f"INSERT INTO nothing {QUERY}").wait()
        return {"seconds": time.perf_counter() - begin, "processor": time.process_time() - spent}


def queries(broker: Kafka, format: str, sizes: Sizes) -> dict:
    """Records for each second, and microseconds of processor time for each record, in both ways, which take turns."""
    topic = broker.create_topic(f"sales-{format}-{time.time_ns()}", PARTITIONS)
    fill(broker, topic, format, sizes.records)
    runs: dict[str, list[dict]] = {ONE_BY_ONE: [], AT_ONCE: []}
    query(broker, topic, format)
    for _ in range(sizes.rounds):
        for way, found in runs.items():
            with looked_at(way):
                found.append(query(broker, topic, format))
    return {
        way: {
            "rate": sizes.records / median(run["seconds"] for run in found),
            "cost": median(run["processor"] for run in found) / sizes.records * 1e6,
        }
        for way, found in runs.items()
    }


# --- the page ---
TITLES = {
    "table": "## Reading: from messages to a batch of a table\n",
    "stream": "## Reading: from messages to `Row`s\n",
    "writing": "## Writing: from a batch to messages\n",
}


def cost_table(results: dict, what: str) -> str:
    rows = []
    for format, by_size in results["costs"].items():
        for size, found in by_size.items() if "error" not in by_size else ():
            before, after = found[what][ONE_BY_ONE], found[what][AT_ONCE]
            rows.append([format, f"{size:,}", f"{before:.2f}", f"{after:.2f}", times(before / after)])
    return table(["format", "messages", ONE_BY_ONE, AT_ONCE, "ratio"], rows)


def query_table(results: dict) -> str:
    rows = []
    for format, found in results["queries"].items():
        if "error" in found:
            continue
        before, after = found[ONE_BY_ONE], found[AT_ONCE]
        rows.append(
            [
                format,
                *(f"{before['rate']:,.0f}", f"{after['rate']:,.0f}", times(after["rate"] / before["rate"])),
                *(f"{before['cost']:.2f}", f"{after['cost']:.2f}", times(before["cost"] / after["cost"])),
            ]
        )
    head = [
        f"{ONE_BY_ONE}, records/s",
        f"{AT_ONCE}, records/s",
        "ratio",
        f"{ONE_BY_ONE}, µs",
        f"{AT_ONCE}, µs",
        "ratio",
    ]
    return table(["format", *head], rows)


def page(results: dict) -> str:
    parts = [TITLES[what] + "\n" + cost_table(results, what) for what in TITLES]
    return joined(
        [
            "# Messages of Kafka, many at a time\n",
            quick_warning(results),
            about(results),
            f"Messages with five fields: {DDL}. Costs are microseconds of processor time for each message, by the "
            "number of messages that are fetched together.\n",
            *parts,
            "## A query over a topic\n",
            f"`{QUERY}` over {results['records']:,} records in {PARTITIONS} partitions of a broker on the same machine,"
            f" in one process with {PARTITIONS} slots; medians of {results['rounds']} runs, which took turns. The µs"
            " are processor time for each record, with the client's threads and the start of the job.\n",
            query_table(results),
            failures(results),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to prove that everything works")
    sizes = QUICK if parser.parse_args().quick else Sizes()
    results: dict = header(sizes.quick) | {"records": sizes.records, "rounds": sizes.rounds}
    results["costs"], results["queries"] = {}, {}
    for format in FORMATS:
        found = results["costs"][format] = attempt(f"costs of {format}", costs, format, sizes)
        say(f"{format}: {json.dumps(found)}")
    broker = Kafka()
    try:
        broker.start()
        for format in FORMATS:
            found = results["queries"][format] = attempt(f"query over {format}", queries, broker, format, sizes)
            say(f"{format}: {json.dumps(found)}")
    finally:
        broker.remove()
    save(folder_of(sizes.quick), "messages", results, page(results))


if __name__ == "__main__":
    main()
