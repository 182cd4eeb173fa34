"""Where a Kafka source starts and stops, what it finds, and how records are decoded."""

import threading
import time
from collections import Counter

import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Duration, SimpleStringSchema, Types, WatermarkStrategy
from penstock.connectors.kafka.kafka_source import KafkaSplit
from penstock.datastream import OutputTag
from penstock.datastream.connectors.base import BadRecord, BadRecords, Boundedness
from penstock.datastream.connectors.kafka import (
    FlinkKafkaConsumer,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecord,
    KafkaRecordDeserializationSchema,
    KafkaSource,
    KafkaTopicPartition,
)
from penstock.datastream.functions import ProcessFunction
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.errors import UndecodableRecord
from penstock.testing import in_process
from tests.connectors.kafka.jobs import Reading, collect, environment, read_until, strings, values_of
from tests.waiting import Patience, until

EARLIEST, LATEST, NONE = (
    KafkaOffsetResetStrategy.EARLIEST,
    KafkaOffsetResetStrategy.LATEST,
    KafkaOffsetResetStrategy.NONE,
)


@pytest.fixture
def letters(kafka, name):
    """Two partitions: a, b, c at the times 1000, 2000, 3000, and d, e, f at 1500, 2500, 3500."""
    kafka.create_topic(name, 2)
    for partition, text in enumerate(("abc", "def")):
        for index, letter in enumerate(text):
            kafka.send(name, [letter], partition, timestamp=1000 * (index + 1) + 500 * partition)
    return name


def test_all_partitions_are_read_whole(kafka, name):
    kafka.create_topic(name, 5)
    sent = [f"{partition}:{index}" for partition in range(5) for index in range(200)]
    for partition in range(5):
        kafka.send(name, [text for text in sent if text.startswith(f"{partition}:")], partition)
    found = collect(strings(kafka, name).build(), parallelism=3)
    assert sorted(found) == sorted(sent)
    for partition in range(5):
        assert [text for text in found if text.startswith(f"{partition}:")] == [
            text for text in sent if text.startswith(f"{partition}:")
        ]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (KafkaOffsetsInitializer.earliest(), "abcdef"),
        (KafkaOffsetsInitializer.latest(), ""),
        (KafkaOffsetsInitializer.timestamp(2000), "bcef"),
        (KafkaOffsetsInitializer.timestamp(2001), "cef"),
        (KafkaOffsetsInitializer.timestamp(99_000), ""),
    ],
)
def test_starting_offsets(kafka, letters, start, expected):
    source = strings(kafka, letters).set_starting_offsets(start).build()
    assert sorted(collect(source)) == list(expected)


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        (KafkaOffsetsInitializer.earliest(), ""),
        (KafkaOffsetsInitializer.latest(), "abcdef"),
        (KafkaOffsetsInitializer.timestamp(2500), "abd"),
        (KafkaOffsetsInitializer.timestamp(99_000), "abcdef"),
    ],
)
@pytest.mark.parametrize("how", ["set_bounded", "set_unbounded"])
def test_stopping_offsets(kafka, letters, how, stop, expected):
    builder = strings(kafka, letters).set_property("partition.discovery.interval.ms", "-1")
    source = getattr(builder, how)(stop).build()
    assert source.get_boundedness() is (
        Boundedness.BOUNDED if how == "set_bounded" else Boundedness.CONTINUOUS_UNBOUNDED
    )
    assert sorted(collect(source, parallelism=2)) == list(expected)


def test_given_offsets_and_a_strategy_for_the_others(kafka, letters):
    first = KafkaTopicPartition(letters, 0)
    builder = strings(kafka, letters)
    given_one = KafkaOffsetsInitializer.offsets({first: 1})
    assert sorted(collect(builder.set_starting_offsets(given_one).build())) == list("bcdef")
    others_at_end = KafkaOffsetsInitializer.offsets({first: 1}, LATEST)
    assert sorted(collect(builder.set_starting_offsets(others_at_end).build())) == list("bc")
    both = KafkaOffsetsInitializer.offsets({first: 2, KafkaTopicPartition(letters, 1): 1}, NONE)
    assert sorted(collect(builder.set_bounded(both).set_starting_offsets(given_one).build())) == list("bd")


def test_committed_offsets_and_a_strategy_for_those_that_are_not(kafka, letters):
    builder = strings(kafka, letters).set_group_id(letters)
    commit(kafka, letters, {0: 2})
    from_committed = KafkaOffsetsInitializer.committed_offsets(EARLIEST)
    assert sorted(collect(builder.set_starting_offsets(from_committed).build())) == list("cdef")
    from_committed = KafkaOffsetsInitializer.committed_offsets(LATEST)
    assert sorted(collect(builder.set_starting_offsets(from_committed).build())) == list("c")


def commit(kafka, topic, offsets):
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": topic})
    consumer.commit(offsets=[TopicPartition(topic, n, offset) for n, offset in offsets.items()], asynchronous=False)
    consumer.close()


def test_only_the_given_partitions_are_read(kafka, letters):
    source = strings(kafka).set_partitions({KafkaTopicPartition(letters, 1)}).build()
    assert sorted(collect(source)) == list("def")


def test_a_pattern_matches_whole_names(kafka, name):
    for topic in (f"{name}-a", f"{name}-b", f"{name}-a-not", f"x{name}-a"):
        kafka.create_topic(topic)
        kafka.send(topic, [topic])
    source = strings(kafka).set_topic_pattern(f"{name}-[ab]").build()
    assert sorted(collect(source, parallelism=2)) == [f"{name}-a", f"{name}-b"]


def test_partitions_and_topics_that_come_later_are_read_from_their_beginning(kafka, name):
    kafka.create_topic(f"{name}-1")
    kafka.send(f"{name}-1", ["before the start"])
    builder = KafkaSource.builder().set_bootstrap_servers(kafka.bootstrap).set_topic_pattern(f"{name}-.*")
    builder.set_value_only_deserializer(SimpleStringSchema()).set_starting_offsets(KafkaOffsetsInitializer.latest())
    source = builder.set_property("partition.discovery.interval.ms", "50").build()
    with in_process():
        stream = environment(2).from_source(source, WatermarkStrategy.no_watermarks(), "Kafka")
        with stream.execute_and_collect() as results:
            found = [first_read(results, lambda: kafka.send(f"{name}-1", ["first"]))]
            kafka.create_topic(f"{name}-2", 2)
            kafka.send(f"{name}-2", ["second"], 1)
            found.append(next(text for text in results if text != "first"))
            kafka.add_partitions(f"{name}-1", 3)
            kafka.send(f"{name}-1", ["third"], 2)
            found.append(next(results))
    assert found == ["first", "second", "third"]


def first_read(results, send):
    """The first value read by a job that starts at the end of a topic: values are sent until the job has started."""
    read = threading.Event()

    def send_on():
        while not read.wait(0.2):
            send()

    sending = threading.Thread(target=send_on)
    sending.start()
    try:
        return next(results)
    finally:
        read.set()
        sending.join()


def test_discovery_goes_on_where_a_checkpoint_was(kafka, name):
    kafka.create_topic(name, 2)
    source = strings(kafka, name).build()
    first = source.create_enumerator()
    assert [split.split_id for split in first.discover()] == [f"{name}-0", f"{name}-1"]
    assert first.discover() == []
    kafka.add_partitions(name, 3)
    kafka.send(name, ["early"], 2)
    second = source.create_enumerator()
    second.restore_state(first.snapshot_state())
    assert second.discover() == [KafkaSplit(name, 2, 0, 1, reset=-2)]
    first.close()
    second.close()


def test_whole_records_with_a_function(kafka, name):
    kafka.create_topic(name, 2)
    kafka.send(name, ["v"], 1, key=b"k", headers=[("h", b"1"), ("h", b"2"), ("n", None)], timestamp=1234)
    kafka.send(name, [None], 1, key=b"gone", timestamp=1235)
    source = strings(kafka, name).set_deserializer(lambda record: record).build()
    assert collect(source) == [
        KafkaRecord(name, 1, 0, b"k", b"v", [("h", b"1"), ("h", b"2"), ("n", None)], 1234),
        KafkaRecord(name, 1, 1, b"gone", None, [], 1235),
    ]


def test_a_value_only_schema_leaves_tombstones_out(kafka, name):
    kafka.create_topic(name)
    kafka.send(name, ["a", None, "b"], key=b"k", timestamp=5)
    assert collect(strings(kafka, name).build()) == ["a", "b"]


class UntilStop(SimpleStringSchema):
    def is_end_of_stream(self, next_element):
        return next_element == "stop"


class Doubled(KafkaRecordDeserializationSchema):
    def deserialize(self, record):
        return record.value.decode() * 2

    def is_end_of_stream(self, next_element):
        return next_element == "stopstop"

    def get_produced_type(self):
        return Types.STRING()


def test_a_schema_ends_each_partition(kafka, name):
    kafka.create_topic(name, 2)
    kafka.send(name, ["a", "stop", "never"], 0)
    kafka.send(name, ["b", "c", "stop", "never"], 1)
    builder = KafkaSource.builder().set_bootstrap_servers(kafka.bootstrap).set_topics(name)
    builder.set_property("partition.discovery.interval.ms", "-1")
    assert sorted(collect(builder.set_value_only_deserializer(UntilStop()).build(), 2)) == ["a", "b", "c"]
    source = builder.set_deserializer(Doubled()).build()
    assert source.get_produced_type() == Types.STRING()
    assert sorted(collect(source)) == ["aa", "bb", "cc"]


class Times(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


def test_timestamps_of_records_are_event_times(kafka, letters):
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    with in_process():
        stream = environment().from_source(strings(kafka, letters).build(), strategy, "Kafka").process(Times())
        with stream.execute_and_collect() as results:
            found = dict(results)
    assert found == {"a": 1000, "b": 2000, "c": 3000, "d": 1500, "e": 2500, "f": 3500}


def test_each_partition_has_a_watermark_of_its_own(kafka, name):
    """One subtask reads two partitions far apart in time; with one clock for both, half of it would be late."""
    kafka.create_topic(name, 2)
    for partition, start in ((0, 0), (1, 1_000_000)):
        for n in range(50):
            kafka.send(name, [str(partition)], partition, timestamp=start + n * 1000 + 1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1))
    with in_process(epoch_records=7):
        stream = environment().from_source(strings(kafka, name).build(), strategy, "Kafka")
        counts = (
            stream.map(lambda text: (text, 1), Types.TUPLE([Types.STRING(), Types.INT()]))
            .key_by(lambda pair: pair[0])
            .window(TumblingEventTimeWindows.of(Duration.of_seconds(10)))
            .reduce(lambda a, b: (a[0], a[1] + b[1]))
        )
        with counts.execute_and_collect() as results:
            found = Counter()
            for text, count in results:
                found[text] += count
    assert found == {"0": 50, "1": 50}


class Strict(SimpleStringSchema):
    def deserialize(self, message):
        return message.decode("ascii")


def test_a_bad_record_fails_the_job_with_its_position(kafka, name):
    kafka.create_topic(name)
    kafka.send(name, [b"a", b"\xff", b"b"])
    source = strings(kafka, name).set_value_only_deserializer(Strict()).build()
    with pytest.raises(UndecodableRecord, match=f"{name}-0@1"):
        collect(source)
    assert collect(source, bad_records=BadRecords.skip()) == ["a", "b"]


def test_bad_records_put_aside_have_their_positions_and_values_keep_their_times(kafka, name):
    kafka.create_topic(name)
    for index, value in enumerate([b"a", b"\xff", b"b"]):
        kafka.send(name, [value], timestamp=1000 + index)
    source = strings(kafka, name).set_value_only_deserializer(Strict()).build()
    tag = OutputTag("bad")
    with in_process():
        stream = environment().from_source(
            source, WatermarkStrategy.no_watermarks(), "Kafka", bad_records=BadRecords.to_side_output(tag)
        )
        good = stream.process(Times()).map(lambda pair: ("good", *pair))
        bad = stream.get_side_output(tag).map(lambda record: ("bad", record))
        with good.union(bad).execute_and_collect() as results:
            found = list(results)
    assert [entry for entry in found if entry[0] == "good"] == [("good", "a", 1000), ("good", "b", 1002)]
    [(_, aside)] = [entry for entry in found if entry[0] == "bad"]
    assert isinstance(aside, BadRecord)
    assert (aside.message, aside.position) == (b"\xff", f"{name}-0@1")


def test_a_bounded_source_ends_though_its_last_offsets_hold_no_records(kafka, name):
    """The end of a transaction takes an offset; the offsets of one that was aborted hold nothing that may be read."""
    kafka.create_topic(name, 2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": name})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(name, b"kept", partition=0)
    producer.commit_transaction(60)
    producer.begin_transaction()
    for partition in (0, 1):
        producer.produce(name, b"dropped", partition=partition)
    producer.flush(60)
    producer.abort_transaction(60)
    assert kafka.is_settled(name)
    assert kafka.end_offsets(name) == {0: 4, 1: 2}
    assert collect(strings(kafka, name).build()) == ["kept"]
    uncommitted = strings(kafka, name).set_property("isolation.level", "read_uncommitted").build()
    assert sorted(collect(uncommitted)) == ["dropped", "dropped", "kept"]
    stop_inside = KafkaOffsetsInitializer.offsets({KafkaTopicPartition(name, 0): 3, KafkaTopicPartition(name, 1): 1})
    assert collect(strings(kafka, name).set_bounded(stop_inside).build()) == ["kept"]


def test_an_open_transaction_is_not_read_and_not_waited_for(kafka, name):
    kafka.create_topic(name)
    kafka.send(name, ["before"])
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": name})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(name, b"open")
    producer.flush(60)
    kafka.send(name, ["behind"])
    assert collect(strings(kafka, name).build()) == ["before"]
    producer.commit_transaction(60)
    assert kafka.is_settled(name)
    assert collect(strings(kafka, name).build()) == ["before", "open", "behind"]


# --- positions ---
def test_a_reader_goes_on_where_its_state_was(kafka, letters):
    source = strings(kafka, letters).build()
    splits = source.create_enumerator().discover()
    reader = source.create_reader(Reading())
    reader.add_splits(splits)
    before = reader.fetch(1, 10)
    while not values_of(before):
        before = reader.fetch(1, 10)
    state = reader.snapshot_state()
    reader.close()
    successor = source.create_reader(Reading())
    successor.add_splits(state)
    after = read_until(successor, 5)
    assert sorted(values_of(before) + values_of(after)) == list("abcdef")
    assert len(values_of(before)) == 1
    patience = Patience()
    while successor.waits():
        assert not patience.spent(), after
        after.extend(successor.fetch(10, 0.1))
    assert {part.split_id for part in after if part.last} == {f"{letters}-0", f"{letters}-1"}
    assert successor.snapshot_state() == []
    successor.close()


def test_offsets_are_committed_behind_checkpoints(kafka, letters):
    source = strings(kafka, letters).set_group_id(letters).build()
    reader = source.create_reader(Reading())
    reader.add_splits(source.create_enumerator().discover())
    read_until(reader, 6)
    reader.checkpoint_id = 1
    reader.snapshot_state()
    assert kafka.committed(letters, letters) == {}
    reader.notify_checkpoint_complete(1)
    until(lambda: kafka.committed(letters, letters) == {0: 3, 1: 3})
    reader.close()


def test_offsets_are_not_committed_if_told_so(kafka, letters):
    builder = strings(kafka, letters).set_group_id(letters).set_property("commit.offsets.on.checkpoint", "false")
    source = builder.build()
    reader = source.create_reader(Reading())
    reader.add_splits(source.create_enumerator().discover())
    read_until(reader, 6)
    reader.snapshot_state()
    reader.notify_checkpoint_complete(1)
    time.sleep(0.2)  # for one that is under way to show
    assert kafka.committed(letters, letters) == {}
    reader.close()
    assert kafka.committed(letters, letters) == {}


def test_a_job_commits_its_offsets(kafka, letters, tmp_path):
    source = strings(kafka, letters).set_group_id(letters).build()
    options = {
        "execution_checkpointing_interval": "10 ms",
        "execution_checkpointing_dir": f"file://{tmp_path}",
    }
    with in_process():
        stream = environment(**options).from_source(source, WatermarkStrategy.no_watermarks(), "Kafka")
        with stream.execute_and_collect() as results:
            assert sorted(results) == list("abcdef")
    until(lambda: kafka.committed(letters, letters) == {0: 3, 1: 3})


@given(st.integers(1, 64), st.integers(1, 16), st.text("abc.-_", min_size=1, max_size=20))
def test_partitions_of_a_topic_are_spread_evenly(partitions, parallelism, topic):
    source = KafkaSource({}, SimpleStringSchema())
    owners = Counter(source.owner(KafkaSplit(topic, n, 0), 0, parallelism) for n in range(partitions))
    assert set(owners) <= set(range(parallelism))
    shares = [owners[n] for n in range(parallelism)]
    assert max(shares) - min(shares) <= 1


# --- the old name ---
def test_the_old_consumer_reads_too(kafka, letters):
    properties = {"bootstrap.servers": kafka.bootstrap, "group.id": letters, "auto.offset.reset": "earliest"}
    with pytest.warns(DeprecationWarning):
        consumer = FlinkKafkaConsumer(letters, UntilStop(), {**properties, "partition.discovery.interval.ms": "-1"})
    for partition in (0, 1):
        kafka.send(letters, ["stop"], partition)
    with in_process(), environment().add_source(consumer).execute_and_collect() as results:
        assert sorted(results) == list("abcdef")
    assert sorted(collect(consumer.set_start_from_timestamp(2500))) == list("cef")
    assert sorted(collect(consumer.set_start_from_earliest())) == list("abcdef")
    commit(kafka, letters, {0: 1, 1: 2})
    assert sorted(collect(consumer.set_start_from_group_offsets())) == list("bcf")
    assert consumer.get_produced_type() == Types.STRING()
    assert consumer.source.commits_offsets
    assert not consumer.set_commit_offsets_on_checkpoints(False).source.commits_offsets
