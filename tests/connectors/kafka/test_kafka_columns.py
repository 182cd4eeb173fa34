"""Messages of a declared row type as columns: the same rows, times and offsets as one by one."""

import json

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from confluent_kafka import Producer

from penstock.common import Row, Types, WatermarkStrategy
from penstock.connectors.kafka import kafka_sink as sink_module
from penstock.connectors.kafka.kafka_sink import KafkaRecordSerializationSchema, KafkaSink
from penstock.connectors.kafka.kafka_source import KafkaSource
from penstock.connectors.kafka.offsets import KafkaOffsetsInitializer
from penstock.datastream.connectors.base import BadRecords, DeliveryGuarantee
from penstock.datastream.functions import MapFunction, ProcessFunction
from penstock.formats import message_batches as together
from penstock.formats.avro import avro_format as avro
from penstock.formats.avro.avro_format import AvroRowDeserializationSchema, AvroRowSerializationSchema
from penstock.formats.json.json_format import JsonRowDeserializationSchema, JsonRowSerializationSchema
from penstock.table import EnvironmentSettings, StreamTableEnvironment
from penstock.table.connectors.kafka_records import Reading
from penstock.testing import in_process
from penstock.testing.crashes import StoreSink, crash_point, simulate
from tests.connectors.kafka.jobs import environment

NUMBER = 300
SALE = Types.ROW_NAMED(["k", "v", "price", "name"], [Types.LONG(), Types.LONG(), Types.DOUBLE(), Types.STRING()])
SALES = [Row(k=n % 7, v=n, price=n / 4, name=None if n % 11 == 0 else f"ä {n}") for n in range(NUMBER)]
AVRO = json.dumps(
    {
        "type": "record",
        "name": "sale",
        "fields": [
            {"name": "k", "type": "long"},
            {"name": "v", "type": "long"},
            {"name": "price", "type": "double"},
            {"name": "name", "type": ["null", "string"]},
        ],
    }
)
FORMATS = {
    "json": (JsonRowSerializationSchema(SALE), JsonRowDeserializationSchema(SALE)),
    "avro": (
        AvroRowSerializationSchema(avro_schema_string=AVRO),
        AvroRowDeserializationSchema(avro_schema_string=AVRO),
    ),
}


@pytest.fixture(scope="module")
def filled(kafka):
    """A topic for each format, with sales at times that grow by a second."""
    for name, (writing, _) in FORMATS.items():
        kafka.create_topic(f"sales-{name}", 2)
        producer = Producer({"bootstrap.servers": kafka.bootstrap})
        for number, sale in enumerate(SALES):
            producer.produce(
                f"sales-{name}", writing.serialize(sale), partition=number % 2, timestamp=1000 * (number + 1)
            )
        producer.flush()
    return "sales-"


def source(kafka, topic, reading):
    builder = KafkaSource.builder().set_bootstrap_servers(kafka.bootstrap).set_topics(topic)
    return builder.set_value_only_deserializer(reading).set_bounded(KafkaOffsetsInitializer.latest()).build()


def found(kafka, topic, reading, program, strategy=None, **more):
    with in_process():
        env = environment(2)
        stream = env.from_source(
            source(kafka, topic, reading), strategy or WatermarkStrategy.no_watermarks(), "Kafka", **more
        )
        with program(stream).execute_and_collect() as results:
            return sorted(map(str, results))


class Timed(ProcessFunction):
    def process_element(self, value, ctx):
        yield ctx.timestamp(), str(value)


@pytest.mark.parametrize("format", FORMATS)
def test_rows_and_times_are_the_same_in_both_forms(kafka, filled, format):
    topic, reading = filled + format, FORMATS[format][1]
    expected = sorted(str((1000 * (n + 1), str(sale))) for n, sale in enumerate(SALES))
    assert found(kafka, topic, reading, lambda stream: stream.process(Timed())) == expected

    def sizes(batch):
        return pa.record_batch([pa.array([batch.num_rows], pa.int64())], ["rows"])

    counted = found(
        kafka, topic, reading, lambda stream: stream.map_batches(sizes, Types.ROW_NAMED(["rows"], [Types.LONG()]))
    )
    assert len(counted) < NUMBER / 4

    def by_batch(stream):
        return stream.map_batches(lambda batch: batch, SALE).process(Timed())

    assert found(kafka, topic, reading, by_batch) == expected


@pytest.mark.parametrize("format", FORMATS)
def test_keys_and_sums(kafka, filled, format):
    topic, reading = filled + format, FORMATS[format][1]

    def summed(stream):
        return stream.key_by("k").sum("v").map(lambda row: (row.k, row.v))

    rows = found(kafka, topic, reading, lambda stream: summed(stream.map(lambda row: row, SALE)))
    last = {k: sum(sale.v for sale in SALES if sale.k == k) for k in range(7)}
    columns = found(kafka, topic, reading, summed)
    assert len(columns) == len(rows) == NUMBER
    assert {str(pair) for pair in last.items()} <= set(columns)


def test_watermarks_follow_the_times_of_kafka(kafka, filled):
    class Marks(ProcessFunction):
        def process_element(self, value, ctx):
            yield ctx.timestamp() > ctx.timer_service().current_watermark()

    strategy = WatermarkStrategy.for_monotonous_timestamps()

    def late(stream):
        return stream.filter_batches(lambda batch: pc.greater(batch["v"], -1)).process(Marks())

    assert found(kafka, filled + "json", FORMATS["json"][1], late, strategy) == ["True"] * NUMBER


def test_what_cannot_be_read_is_found_among_many(kafka, name):
    kafka.create_topic(name)
    values = [b'{"k":%d}' % n if n != 150 else b"nonsense" for n in range(NUMBER)]
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for value in values:
        producer.produce(name, value)
    producer.flush()
    reading, rows = (
        JsonRowDeserializationSchema(Types.ROW_NAMED(["k"], [Types.LONG()])),
        lambda stream: stream.map(lambda row: row.k),
    )
    with pytest.raises(Exception, match=f"{name}-0@150.*nonsense"):
        found(kafka, name, reading, rows)
    skipped = found(kafka, name, reading, rows, bad_records=BadRecords.skip())
    assert skipped == sorted(str(n) for n in range(NUMBER) if n != 150)


# --- crashes ---
class Crashing(MapFunction):
    def map(self, value):
        crash_point("mapping")
        return value


@pytest.mark.parametrize("format", FORMATS)
def test_crashes_change_nothing(kafka, filled, format, monkeypatch):
    monkeypatch.setattr(together, "LEAST_COLUMNS", 1)
    monkeypatch.setattr(together, "LEAST_TOGETHER", 1)
    monkeypatch.setattr(together, "LEAST_BATCH", 1)
    monkeypatch.setattr(sink_module, "LEAST_TOGETHER", 1)
    monkeypatch.setattr(avro, "LEAST_WRITTEN", 1)
    writing, reading = FORMATS[format]
    expected = sorted(writing.serialize(sale) for sale in SALES)
    crashes, steps = 0, None
    for seed in range(5):
        out = f"crashes-{format}-{seed}"
        kafka.create_topic(out, 2)
        serializer = KafkaRecordSerializationSchema(out, writing)
        sink = KafkaSink.builder().set_bootstrap_servers(kafka.bootstrap).set_record_serializer(serializer)
        sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix(out)

        def build(environment, sink=sink):
            environment.set_parallelism(2)
            stream = environment.from_source(
                source(kafka, filled + format, reading), WatermarkStrategy.no_watermarks(), "Kafka"
            )
            same = stream.uid("source").map_batches(lambda batch: batch, SALE).uid("same")
            same.sink_to(sink.build()).uid("kafka")
            same.map(Crashing()).uid("crashing").map(str).uid("text").sink_to(StoreSink("store")).uid("store")

        outcome = simulate(build, seed, steps=steps)
        crashes, steps = crashes + len(outcome.crashes), outcome.steps
        assert sorted(message.value() for message in kafka.read(out)) == expected
        assert sorted(outcome.store.visible("store")) == sorted(map(str, SALES))
    assert crashes


# --- tables ---
@pytest.mark.parametrize("format", FORMATS)
def test_a_query_reads_columns(kafka, filled, format, monkeypatch):
    def refused(self, record):
        raise AssertionError(f"{record} was looked at by itself")

    monkeypatch.setattr(Reading, "deserialize", refused)
    with in_process():
        t_env = StreamTableEnvironment.create(environment_settings=EnvironmentSettings.in_streaming_mode())
        t_env.execute_sql(
            "CREATE TABLE t (k BIGINT NOT NULL, v BIGINT NOT NULL, price DOUBLE NOT NULL, name STRING,"
            " ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp')"
            f" WITH ('connector' = 'kafka', 'topic' = '{filled}{format}',"
            f" 'format' = '{format}', 'properties.bootstrap.servers' = '{kafka.bootstrap}',"
            " 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset')"
        )
        query = "SELECT k, COUNT(*) AS n, SUM(v) AS s, COUNT(name) AS m, CAST(MAX(ts) AS STRING) AS t FROM t GROUP BY k"
        rows = sorted(t_env.sql_query(query).to_pandas().itertuples(index=False, name=None))
    expected = []
    for k in range(7):
        own = [(n, sale) for n, sale in enumerate(SALES) if sale.k == k]
        latest = f"1970-01-01 00:{(own[-1][0] + 1) // 60:02d}:{(own[-1][0] + 1) % 60:02d}.000"
        named = sum(sale.name is not None for _, sale in own)
        expected.append((k, len(own), sum(sale.v for _, sale in own), named, latest))
    assert rows == expected
