"""FlinkKafkaConsumer and FlinkKafkaProducer in the forms of Flink 1.x's documents."""

import re

import pytest

from penstock.common import (
    BoundedOutOfOrdernessTimestampExtractor,
    SimpleStringSchema,
    Time,
    Types,
    WatermarkStrategy,
)
from penstock.datastream import ProcessFunction
from penstock.datastream.connectors.kafka import (
    FlinkFixedPartitioner,
    FlinkKafkaConsumer,
    FlinkKafkaPartitioner,
    FlinkKafkaProducer,
    KafkaTopicPartition,
    KeyedDeserializationSchema,
    KeyedSerializationSchema,
    Semantic,
)
from penstock.testing import in_process
from tests.connectors.kafka.jobs import environment

pytestmark = pytest.mark.filterwarnings("ignore:FlinkKafka:DeprecationWarning")


class ByPlace(KeyedDeserializationSchema):
    """Says where each record was."""

    def deserialize(self, message_key, message, topic, partition, offset):
        return topic, partition, offset, message_key, message


def read(consumer, count):
    with in_process():
        env = environment()
        stream = env.add_source(consumer)
        with stream.execute_and_collect() as results:
            return sorted(value for _, value in zip(range(count), results, strict=False))


def wrote(kafka, producer, values, parallelism=1):
    with in_process():
        env = environment(parallelism)
        env.from_collection(values, Types.STRING()).rebalance().add_sink(producer)
        env.execute()


def test_a_regular_expression_and_specific_offsets(kafka, name):
    kafka.create_topic(f"{name}-a", 2)
    kafka.create_topic(f"{name}-b")
    kafka.send(f"{name}-a", ["0", "1", "2"], 0)
    kafka.send(f"{name}-a", ["3"], 1)
    kafka.send(f"{name}-b", ["4", "5"], 0)
    properties = {"bootstrap.servers": kafka.bootstrap, "group.id": name, "auto.offset.reset": "earliest"}
    consumer = FlinkKafkaConsumer(re.compile(f"{name}-.*"), ByPlace(), properties)
    consumer.set_start_from_specific_offsets({KafkaTopicPartition(f"{name}-a", 0): 2})
    assert read(consumer, 4) == [
        (f"{name}-a", 0, 2, None, b"2"),
        (f"{name}-a", 1, 0, None, b"3"),
        (f"{name}-b", 0, 0, None, b"4"),
        (f"{name}-b", 0, 1, None, b"5"),
    ]
    with pytest.raises(TypeError, match="KafkaTopicPartition"):
        consumer.set_start_from_specific_offsets({f"{name}-a": 2})


@pytest.mark.parametrize(
    "times",
    [
        BoundedOutOfOrdernessTimestampExtractor(Time.seconds(0), lambda text: int(text)),
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda text: int(text)),
    ],
    ids=["extractor", "strategy"],
)
def test_event_time_of_a_consumer(kafka, name, times):
    class Timestamps(ProcessFunction):
        def process_element(self, value, ctx):
            yield ctx.timestamp()

    kafka.create_topic(name)
    kafka.send(name, ["1000", "2000"])
    properties = {"bootstrap.servers": kafka.bootstrap, "group.id": name, "auto.offset.reset": "earliest"}
    consumer = FlinkKafkaConsumer(name, SimpleStringSchema(), properties).assign_timestamps_and_watermarks(times)
    with in_process():
        stream = environment().add_source(consumer).process(Timestamps())
        with stream.execute_and_collect() as results:
            assert [next(results), next(results)] == [1000, 2000]
    with pytest.raises(TypeError, match=r"must be a WatermarkStrategy .* or an assigner of Flink 1\.x, not 5"):
        consumer.assign_timestamps_and_watermarks(5)


def test_brokers_topic_and_schema_write_each_subtask_to_one_partition(kafka, name):
    kafka.create_topic(name, 4)
    wrote(kafka, FlinkKafkaProducer(kafka.bootstrap, name, SimpleStringSchema()), list("abcdef"), parallelism=2)
    messages = kafka.read(name)
    assert sorted(message.value() for message in messages) == [b"a", b"b", b"c", b"d", b"e", b"f"]
    assert {message.partition() for message in messages} == {0, 1}


def test_partitioners_and_keyed_schemas(kafka, name):
    class ByLength(FlinkKafkaPartitioner):
        def partition(self, record, key, value, target_topic, partitions):
            return partitions[len(record) % len(partitions)]

    class Keyed(KeyedSerializationSchema):
        def serialize_key(self, element):
            return element[:1].encode()

        def serialize_value(self, element):
            return element.upper().encode()

        def get_target_topic(self, element):
            return f"{name}-long" if len(element) > 2 else None

    kafka.create_topic(name, 2)
    kafka.create_topic(f"{name}-long")
    properties = {"bootstrap.servers": kafka.bootstrap}
    wrote(kafka, FlinkKafkaProducer(name, SimpleStringSchema(), properties, ByLength()), ["a", "bb", "ccc"])
    assert sorted((message.partition(), message.value()) for message in kafka.read(name)) == [
        (0, b"bb"),
        (1, b"a"),
        (1, b"ccc"),
    ]
    wrote(kafka, FlinkKafkaProducer(name, Keyed(), properties, Semantic.AT_LEAST_ONCE), ["xx", "yyy"])
    assert [(m.key(), m.value()) for m in kafka.read(f"{name}-long")] == [(b"y", b"YYY")]
    assert (b"x", b"XX") in [(m.key(), m.value()) for m in kafka.read(name)]


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(TypeError, match="producer_config must be a Mapping"):
        FlinkKafkaProducer("topic", SimpleStringSchema(), "localhost:9092")
    fixed = FlinkFixedPartitioner()
    fixed.open(5, 8)
    assert fixed.partition("record", None, None, "topic", [0, 1, 2]) == 2
