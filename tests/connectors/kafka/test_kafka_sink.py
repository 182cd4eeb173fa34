"""What a Kafka sink writes: topics, keys, partitions, headers and times, under each guarantee."""

import logging
import time

import pytest

from penstock.common import Duration, SimpleStringSchema, Types, WatermarkStrategy
from penstock.common.serialization import SerializationSchema
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.kafka import (
    FlinkKafkaProducer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaTopicSelector,
    Semantic,
)
from penstock.errors import ConnectorError, JobFailed, NotFound
from penstock.testing import in_process
from tests.connectors.kafka.jobs import Writing, environment, strings, text_sink

GUARANTEES = list(DeliveryGuarantee)
BOTH_WAYS = [DeliveryGuarantee.AT_LEAST_ONCE, DeliveryGuarantee.EXACTLY_ONCE]
"""One for each kind of writer."""


class FirstLetter(SerializationSchema):
    def serialize(self, value):
        return value[0].encode()


def written(kafka, name, values, serializer, guarantee=DeliveryGuarantee.AT_LEAST_ONCE, parallelism=1, strategy=None):
    """Run a job that writes values."""
    sink = KafkaSink.builder().set_bootstrap_servers(kafka.bootstrap).set_record_serializer(serializer.build())
    sink.set_delivery_guarantee(guarantee).set_transactional_id_prefix(name)
    with in_process():
        env = environment(parallelism)
        stream = env.from_collection(values, Types.STRING())
        if strategy is not None:
            stream = stream.assign_timestamps_and_watermarks(strategy)
        stream.sink_to(sink.build())
        env.execute()


def to_topic(topic):
    return (
        KafkaRecordSerializationSchema.builder().set_topic(topic).set_value_serialization_schema(SimpleStringSchema())
    )


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda g: g.name)
def test_everything_arrives(kafka, name, guarantee):
    kafka.create_topic(name, 3)
    values = [f"value {n}" for n in range(1000)]
    written(kafka, name, values, to_topic(name), guarantee, parallelism=2)
    assert sorted(kafka.values(name)) == sorted(values)


@pytest.mark.parametrize("guarantee", BOTH_WAYS, ids=lambda g: g.name)
def test_keys_partitions_headers_and_times(kafka, name, guarantee):
    kafka.create_topic(name, 3)
    serializer = to_topic(name).set_key_serialization_schema(FirstLetter())
    serializer.set_partitioner(lambda key, value, topic, partitions: partitions[int(value[1])])
    serializer.set_header_provider(lambda value: [("from", value.encode()), ("none", None)])
    serializer.set_timestamp(lambda value, timestamp: 5000 + int(value[1]))
    written(kafka, name, ["a0", "b1", "c2"], serializer, guarantee)
    found = [(m.key(), m.value(), m.partition(), m.headers(), m.timestamp()[1]) for m in kafka.read(name)]
    assert found == [
        (letter.encode(), f"{letter}{n}".encode(), n, [("from", f"{letter}{n}".encode()), ("none", None)], 5000 + n)
        for n, letter in enumerate("abc")
    ]


class Number(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return 7000 + int(value)


@pytest.mark.parametrize("guarantee", BOTH_WAYS, ids=lambda g: g.name)
def test_event_times_are_written_unless_told_otherwise(kafka, name, guarantee):
    for topic in (name, f"{name}-now"):
        kafka.create_topic(topic)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0)).with_timestamp_assigner(Number())
    written(kafka, name, ["1", "2"], to_topic(name), guarantee, strategy=strategy)
    assert [message.timestamp()[1] for message in kafka.read(name)] == [7001, 7002]
    before = time.time() * 1000 - 1
    written(kafka, f"{name}-now", ["1"], to_topic(f"{name}-now").set_timestamp(None), guarantee, strategy=strategy)
    [message] = kafka.read(f"{name}-now")
    assert message.timestamp()[1] >= int(before)


class ByLetter(KafkaTopicSelector):
    def __init__(self, prefix):
        self.prefix = prefix

    def apply(self, data):
        return f"{self.prefix}-{data[0]}"


@pytest.mark.parametrize("guarantee", BOTH_WAYS, ids=lambda g: g.name)
@pytest.mark.parametrize("as_function", [True, False], ids=["function", "class"])
def test_a_selector_chooses_the_topic(kafka, name, guarantee, as_function):
    for letter in "ab":
        kafka.create_topic(f"{name}-{letter}")
    selector = (lambda value: f"{name}-{value[0]}") if as_function else ByLetter(name)
    serializer = KafkaRecordSerializationSchema.builder().set_topic_selector(selector)
    serializer.set_value_serialization_schema(SimpleStringSchema())
    written(kafka, name, ["a1", "b1", "a2"], serializer, guarantee)
    assert kafka.values(f"{name}-a") == ["a1", "a2"]
    assert kafka.values(f"{name}-b") == ["b1"]


def test_equal_keys_go_where_the_java_client_sends_them(kafka, name):
    """The default partitioner of Java: murmur2 of the key. The partitions are those that it gives for these keys."""
    kafka.create_topic(name, 4)
    written(kafka, name, ["a", "b", "c", "21"], to_topic(name).set_key_serialization_schema(SimpleStringSchema()))
    found = {message.key().decode(): message.partition() for message in kafka.read(name)}
    assert found == {key: to_positive(murmur2(key.encode())) % 4 for key in ("a", "b", "c", "21")}
    assert murmur2(b"21") == -973932308


def to_positive(number):
    return number & 0x7FFFFFFF


def murmur2(data):
    """MurmurHash2 in 32 bits, with the seed that Kafka uses."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = (0x9747B28C ^ len(data)) & mask
    whole = len(data) - len(data) % 4
    for start in range(0, whole, 4):
        k = int.from_bytes(data[start : start + 4], "little") * m & mask
        k = (k ^ (k >> 24)) * m & mask
        h = (h * m & mask) ^ k
    if len(data) % 4:
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & mask
    h = (h ^ (h >> 13)) * m & mask
    h ^= h >> 15
    return h - (1 << 32) if h >= 1 << 31 else h


def test_a_wrong_partition_says_which_there_are(kafka, name):
    kafka.create_topic(name, 2)
    with pytest.raises(Exception, match=r"chose 7 for topic .* has only \[0, 1\]"):
        written(kafka, name, ["a"], to_topic(name).set_partitioner(lambda key, value, topic, partitions: 7))


@pytest.mark.parametrize("guarantee", BOTH_WAYS, ids=lambda g: g.name)
def test_a_missing_topic_is_named(kafka, name, guarantee):
    with pytest.raises(NotFound, match=name):
        written(kafka, name, ["a"], to_topic(name), guarantee)


@pytest.mark.parametrize("guarantee", BOTH_WAYS, ids=lambda g: g.name)
def test_a_record_that_is_too_large_fails_the_job(kafka, name, guarantee):
    kafka.create_topic(name)
    kafka.send(name, ["before"])
    with pytest.raises(ConnectorError, match=f"2000000 bytes.*{name}"):
        written(kafka, name, ["x" * 2_000_000], to_topic(name), guarantee)
    assert kafka.is_settled(name)


@pytest.mark.parametrize("guarantee", BOTH_WAYS, ids=lambda g: g.name)
def test_a_record_that_the_topic_refuses_fails_the_job(kafka, name, guarantee):
    kafka.create_topic(name, max__message__bytes="500")
    with pytest.raises(ConnectorError, match=f"not delivered to topic '{name}'"):
        written(kafka, name, ["fits", "x" * 20_000], to_topic(name), guarantee)
    assert kafka.is_settled(name)
    if guarantee is DeliveryGuarantee.EXACTLY_ONCE:
        assert kafka.values(name) == []


def test_at_least_once_waits_for_delivery_at_a_checkpoint(kafka, name):
    kafka.create_topic(name)
    writer = text_sink(kafka, name).set_property("linger.ms", "60000").build().create_writer(Writing(), [])
    writer.write_all(["a", "b"], None, None)
    assert kafka.values(name) == []
    writer.flush(False)
    assert kafka.values(name) == ["a", "b"]
    writer.close()


def test_without_a_guarantee_nothing_is_waited_for_but_the_end(kafka, name):
    kafka.create_topic(name)
    sink = text_sink(kafka, name).set_delivery_guarantee(DeliveryGuarantee.NONE).set_property("linger.ms", "60000")
    writer = sink.build().create_writer(Writing(), [])
    writer.write_all(["a"], None, None)
    writer.flush(False)
    assert kafka.values(name) == []
    writer.flush(True)
    assert kafka.values(name) == ["a"]
    writer.close()


def test_a_full_buffer_is_waited_for(kafka, name):
    kafka.create_topic(name)
    sink = text_sink(kafka, name).set_property("queue.buffering.max.messages", "100")
    writer = sink.build().create_writer(Writing(), [])
    writer.write_all([str(n) for n in range(5000)], None, None)
    writer.flush(False)
    assert kafka.values(name) == [str(n) for n in range(5000)]
    writer.close()


class OnlyShort(SimpleStringSchema):
    def serialize(self, value):
        assert len(value) < 3, "too long"
        return super().serialize(value)


@pytest.mark.parametrize("guarantee", BOTH_WAYS, ids=lambda g: g.name)
def test_a_value_that_cannot_be_serialized_is_named(kafka, name, guarantee):
    kafka.create_topic(name)
    serializer = to_topic(name).set_value_serialization_schema(OnlyShort())
    with pytest.raises(JobFailed, match="too long") as failed:
        written(kafka, name, ["a", "b", "culprit", "c"], serializer, guarantee)
    assert "culprit" in failed.value.record


def test_records_that_were_read_can_be_written_with_their_times(kafka, name):
    kafka.create_topic(name)
    kafka.create_topic(f"{name}-copy")
    kafka.send(name, ["a"], timestamp=1111)
    with in_process():
        env = environment()
        stream = env.from_source(strings(kafka, name).build(), WatermarkStrategy.no_watermarks(), "Kafka")
        stream.sink_to(text_sink(kafka, f"{name}-copy").build())
        env.execute()
    [message] = kafka.read(f"{name}-copy")
    assert (message.value(), message.timestamp()[1]) == (b"a", 1111)


# --- the old name ---
@pytest.mark.parametrize("semantic", list(Semantic), ids=lambda s: s.name)
def test_the_old_producer_writes_too(kafka, name, semantic):
    kafka.create_topic(name)
    with pytest.warns(DeprecationWarning):
        producer = FlinkKafkaProducer(
            name, SimpleStringSchema(), {"bootstrap.servers": kafka.bootstrap}, semantic=semantic
        )
    with in_process():
        env = environment()
        env.from_collection(["a", "b"], Types.STRING()).add_sink(producer)
        env.execute()
    assert kafka.values(name) == ["a", "b"]
    assert producer.sink.guarantee is DeliveryGuarantee[semantic.name]


def test_the_old_producers_options(kafka, name, caplog):
    kafka.create_topic(name, max__message__bytes="500")
    with pytest.warns(DeprecationWarning):
        producer = FlinkKafkaProducer(name, SimpleStringSchema(), {"bootstrap.servers": kafka.bootstrap})
    assert producer.sink.guarantee is DeliveryGuarantee.AT_LEAST_ONCE
    assert not producer.sink.serializer.writes_timestamps
    assert producer.set_write_timestamp_to_kafka(True).sink.serializer.writes_timestamps
    assert producer.set_flush_on_checkpoint(False).sink.guarantee is DeliveryGuarantee.NONE
    assert producer.ignore_failures_after_transaction_timeout() is producer
    writer = producer.set_log_failures_only(True).create_writer(Writing(), [])
    logging.getLogger("penstock.connectors.kafka").setLevel(logging.ERROR)
    writer.write_all(["x" * 20_000, "fits"], [1, 2], None)
    writer.flush(True)
    writer.close()
    assert "was not delivered" in caplog.text
