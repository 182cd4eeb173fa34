"""What goes wrong is named: servers, topics, partitions, offsets and rights."""

import sys
import time

import pytest

from penstock.common import SimpleStringSchema, Types
from penstock.connectors.kafka.kafka_client import Client, client_settings
from penstock.connectors.kafka.kafka_source import KafkaSplit
from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
)
from penstock.errors import (
    AccessDenied,
    ConfigurationError,
    ConnectorError,
    MissingDependency,
    NotFound,
    OffsetOutOfRange,
)
from penstock.testing import in_process
from tests.connectors.kafka.jobs import IMPATIENT, Reading, collect, environment, read_until, strings, text_sink
from tests.services.kafka import PASSWORD, USER
from tests.services.service import free_port


def test_a_missing_topic_is_named(kafka, name):
    with pytest.raises(NotFound, match=f"'{name}'.*{kafka.bootstrap}"):
        collect(strings(kafka, name).build())


def test_a_missing_partition_is_named(kafka, name):
    kafka.create_topic(name)
    source = strings(kafka).set_partitions({KafkaTopicPartition(name, 0), KafkaTopicPartition(name, 3)}).build()
    with pytest.raises(NotFound, match=f"{name}-3"):
        collect(source)


def test_servers_that_are_not_there_are_named(name):
    servers = f"127.0.0.1:{free_port()}"
    builder = KafkaSource.builder().set_bootstrap_servers(servers).set_topics(name).set_retries(IMPATIENT)
    source = builder.set_value_only_deserializer(SimpleStringSchema()).build()
    began = time.monotonic()
    with pytest.raises(ConnectorError, match=f"{servers}.*failed 2 times"):
        collect(source)
    assert time.monotonic() - began < 100


def test_only_who_needs_an_answer_complains_that_there_is_none(name):
    servers = f"127.0.0.1:{free_port()}"
    client = Client("Producer", {"bootstrap.servers": servers}, IMPATIENT)
    client.meet(name)
    with pytest.raises(ConnectorError, match=f"{servers}.*failed 2 times"):
        client.partitions(name)


def test_nothing_committed_and_no_strategy(kafka, name):
    kafka.create_topic(name)
    builder = strings(kafka, name).set_group_id(name)
    source = builder.set_starting_offsets(KafkaOffsetsInitializer.committed_offsets()).build()
    with pytest.raises(NotFound, match=f"'{name}' has committed nothing for {name}-0; set a KafkaOffsetReset"):
        collect(source)


# --- offsets that are gone ---
@pytest.fixture
def shortened(kafka, name):
    """Ten records, of which retention left the last four."""
    kafka.create_topic(name)
    kafka.send(name, [str(n) for n in range(10)])
    kafka.delete_records(name, 0, 6)
    return name


@pytest.mark.parametrize("offset", [3, 17])
def test_an_offset_that_is_gone_ends_the_job_with_advice(kafka, shortened, offset):
    reader = strings(kafka, shortened).build().create_reader(Reading())
    reader.add_splits([KafkaSplit(shortened, 0, offset)])
    with pytest.raises(
        OffsetOutOfRange, match=f"(?s){shortened}.*offset to read is {offset},.*from 6 to 10.*retention"
    ):
        read_until(reader, 1)
    reader.close()


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [(KafkaOffsetResetStrategy.EARLIEST, "6789"), (KafkaOffsetResetStrategy.LATEST, "")],
)
def test_a_strategy_helps_at_the_start(kafka, shortened, strategy, expected):
    start = KafkaOffsetsInitializer.offsets({KafkaTopicPartition(shortened, 0): 3}, strategy)
    assert collect(strings(kafka, shortened).set_starting_offsets(start).build()) == list(expected)


def test_a_strategy_does_not_help_after_a_restore(kafka, shortened):
    start = KafkaOffsetsInitializer.offsets({KafkaTopicPartition(shortened, 0): 3}, KafkaOffsetResetStrategy.EARLIEST)
    source = strings(kafka, shortened).set_starting_offsets(start).build()
    first = source.create_reader(Reading())
    first.add_splits(source.create_enumerator().discover())
    state = first.snapshot_state()
    first.close()
    second = source.create_reader(Reading())
    second.add_splits(state)
    with pytest.raises(OffsetOutOfRange):
        read_until(second, 1)
    second.close()


def test_without_a_strategy_a_given_offset_must_be_there(kafka, shortened):
    start = KafkaOffsetsInitializer.offsets({KafkaTopicPartition(shortened, 0): 3}, KafkaOffsetResetStrategy.NONE)
    with pytest.raises(OffsetOutOfRange, match="offset to read is 3,"):
        collect(strings(kafka, shortened).set_starting_offsets(start).build())


def test_a_topic_that_is_deleted_while_it_is_read(kafka, name):
    kafka.create_topic(name)
    kafka.send(name, ["a"])
    source = strings(kafka, name).set_property("topic.metadata.propagation.max.ms", "500").build()
    reader = source.create_reader(Reading())
    reader.add_splits([KafkaSplit(name, 0, 0)])
    read_until(reader, 1)
    kafka.delete_topic(name)
    with pytest.raises(NotFound, match=name):
        read_until(reader, 1)
    reader.close()


# --- rights ---
def secured(password):
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": (
            f'org.apache.kafka.common.security.plain.PlainLoginModule required username="{USER}" password="{password}";'
        ),
    }


def test_a_wrong_password(kafka, name):
    source = strings(kafka, name).set_bootstrap_servers(kafka.with_password).set_properties(secured("wrong")).build()
    with pytest.raises(AccessDenied, match=kafka.with_password):
        collect(source)


def test_too_few_rights_to_read(kafka, name):
    kafka.create_topic(name)
    source = strings(kafka, name).set_bootstrap_servers(kafka.with_password).set_properties(secured(PASSWORD)).build()
    with pytest.raises(AccessDenied, match=name):
        collect(source)


@pytest.mark.parametrize("guarantee", list(DeliveryGuarantee), ids=lambda g: g.name)
@pytest.mark.parametrize("password", [PASSWORD, "wrong"])
def test_too_few_rights_to_write(kafka, name, guarantee, password):
    kafka.create_topic(name)
    builder = text_sink(kafka, name).set_bootstrap_servers(kafka.with_password).set_delivery_guarantee(guarantee)
    for key, value in secured(password).items():
        builder.set_property(key, value)
    with in_process(), pytest.raises(AccessDenied):
        env = environment()
        env.from_collection(["a"], Types.STRING()).sink_to(builder.set_transactional_id_prefix(name).build())
        env.execute()


def test_the_package_that_is_missing_is_named(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    source = KafkaSource.builder().set_bootstrap_servers("x:1").set_topics(name)
    with pytest.raises(MissingDependency, match=r"penstock\[kafka\]"):
        source.set_value_only_deserializer(SimpleStringSchema()).build().create_enumerator().discover()


def test_a_transaction_that_kafka_does_not_allow(kafka, name):
    kafka.create_topic(name)
    builder = text_sink(kafka, name).set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    builder.set_property("transaction.timeout.ms", "3600000")
    with in_process(), pytest.raises(ConnectorError, match=f"(?i){kafka.bootstrap}.*timeout"):
        env = environment()
        env.from_collection(["a"], Types.STRING()).sink_to(builder.set_transactional_id_prefix(name).build())
        env.execute()


# --- settings ---
def test_settings_under_the_names_of_java():
    given = {
        "bootstrap.servers": "here:1",
        "key.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
        "max.poll.records": "500",
        "fetch.max.wait.ms": "7",
        "sasl.jaas.config": 'X required username="me" password="a \\"b\\"";',
        "partition.discovery.interval.ms": "10",
    }
    assert client_settings(given) == {
        "bootstrap.servers": "here:1",
        "fetch.wait.max.ms": "7",
        "sasl.username": "me",
        "sasl.password": 'a "b"',
    }


def test_a_login_of_java_through_kerberos():
    module = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
    given = {"sasl.jaas.config": f'{module} keyTab="/etc/u.keytab" principal="u@REALM" serviceName="kafka";'}
    assert client_settings(given) == {
        "sasl.kerberos.keytab": "/etc/u.keytab",
        "sasl.kerberos.principal": "u@REALM",
        "sasl.kerberos.service.name": "kafka",
    }


def test_a_setting_of_the_program_counts_more_than_our_own(name):
    client = Client("Producer", {"bootstrap.servers": "here:1", "reconnect.backoff.ms": "700"}, IMPATIENT)
    assert client.settings["reconnect.backoff.ms"] == "700"


def test_a_setting_that_nobody_knows(kafka, name):
    with pytest.raises(ConfigurationError, match=r"no\.such\.setting"):
        collect(strings(kafka, name).set_property("no.such.setting", "1").build())


def test_builders_say_what_is_missing():
    text = SimpleStringSchema()
    builder = KafkaSource.builder()
    for step, complaint in (
        (lambda: builder.set_bootstrap_servers("x:1"), "set_bootstrap_servers"),
        (lambda: builder.set_topics("t"), "set_topics"),
        (lambda: builder.set_value_only_deserializer(text), "set_value_only_deserializer"),
        (lambda: builder.set_starting_offsets(KafkaOffsetsInitializer.committed_offsets()), None),
    ):
        if complaint is not None:
            with pytest.raises(ValueError, match=complaint):
                builder.build()
        step()
    with pytest.raises(ValueError, match="set_group_id"):
        builder.build()
    assert builder.set_group_id("g").build().group == "g"

    sink = KafkaSink.builder()
    with pytest.raises(ValueError, match="set_bootstrap_servers"):
        sink.build()
    with pytest.raises(ValueError, match="set_record_serializer"):
        sink.set_bootstrap_servers("x:1").build()
    serializer = KafkaRecordSerializationSchema.builder()
    with pytest.raises(ValueError, match="set_topic"):
        serializer.build()
    with pytest.raises(ValueError, match="set_value_serialization_schema"):
        serializer.set_topic("t").build()
    sink.set_record_serializer(serializer.set_value_serialization_schema(text).build())
    assert sink.build().guarantee is DeliveryGuarantee.AT_LEAST_ONCE
    with pytest.raises(ValueError, match="set_transactional_id_prefix"):
        sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).build()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda b: b.set_topics(), ValueError),
        (lambda b: b.set_topics("no spaces"), ValueError),
        (lambda b: b.set_topic_pattern("("), ValueError),
        (lambda b: b.set_topics("a").set_topic_pattern("a.*"), ValueError),
        (lambda b: b.set_partitions(set()), ValueError),
        (lambda b: b.set_partitions({("a", 1)}), TypeError),
        (lambda b: b.set_starting_offsets("earliest"), TypeError),
        (lambda b: b.set_bounded(None), TypeError),
        (lambda b: b.set_value_only_deserializer(str), TypeError),
        (lambda b: b.set_deserializer(SimpleStringSchema()), TypeError),
        (lambda b: b.set_property(1, "x"), TypeError),
        (lambda b: b.set_retries(3), TypeError),
        (lambda b: KafkaOffsetsInitializer.timestamp(-1), ValueError),
        (lambda b: KafkaOffsetsInitializer.committed_offsets("earliest"), TypeError),
        (lambda b: KafkaOffsetsInitializer.offsets({("t", 0): 1}), TypeError),
        (lambda b: KafkaOffsetsInitializer.offsets({KafkaTopicPartition("t", 0): -1}), ValueError),
        (lambda b: KafkaTopicPartition("t", -1), ValueError),
        (lambda b: KafkaTopicPartition(3, 1), TypeError),
        (lambda b: KafkaSink.builder().set_delivery_guarantee("exactly-once"), TypeError),
        (lambda b: KafkaSink.builder().set_transactional_id_prefix(""), ValueError),
        (lambda b: KafkaSink.builder().set_record_serializer(SimpleStringSchema()), TypeError),
        (lambda b: KafkaRecordSerializationSchema.builder().set_topic_selector("t"), TypeError),
        (lambda b: KafkaRecordSerializationSchema.builder().set_key_serialization_schema(str), TypeError),
        (lambda b: KafkaRecordSerializationSchema.builder().set_partitioner(3), TypeError),
    ],
)
def test_builders_refuse_what_makes_no_sense(wrong, error):
    with pytest.raises(error):
        wrong(KafkaSource.builder())
