"""A job from Kafka to Kafka that is stopped with a savepoint and goes on with another parallelism."""

import pytest

from penstock.common import SimpleStringSchema, Types, WatermarkStrategy
from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.kafka import KafkaSource
from penstock.errors import OffsetOutOfRange
from penstock.testing import in_process
from tests.connectors.kafka.jobs import environment, text_sink
from tests.waiting import until


def start(kafka, name, parallelism, tmp_path, savepoint=None):
    """A job without an end that copies one topic into another, exactly once, and looks for new partitions."""
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(kafka.bootstrap)
        .set_topics(name)
        .set_group_id(name)
        .set_value_only_deserializer(SimpleStringSchema())
        .set_property("partition.discovery.interval.ms", "100")
        .build()
    )
    sink = text_sink(kafka, f"{name}-out").set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    options = {
        "execution_checkpointing_interval": "50 ms",
        "execution_checkpointing_dir": f"file://{tmp_path}/checkpoints",
    }
    if savepoint is not None:
        options["execution_state__recovery_path"] = savepoint
    env = environment(parallelism, **options)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "Kafka").uid("source")
    stream.map(lambda text: text, Types.STRING()).uid("same").sink_to(
        sink.set_transactional_id_prefix(name).build()
    ).uid("sink")
    return env.execute_async()


def wait_for(kafka, name, number):
    """What the topic has once it has so much; the job has a transaction open nearly always."""
    found = []

    def enough():
        found[:] = kafka.values(f"{name}-out", settling=0)
        return len(found) >= number

    until(enough, progress=lambda: len(found), told=lambda: f"only {len(found)} of {number}")
    return found


def stop(job, tmp_path):
    return job.stop_with_savepoint(False, f"file://{tmp_path}/savepoints").result()


def test_positions_and_commits_go_on_with_another_parallelism(kafka, name, tmp_path):
    kafka.create_topic(name, 3)
    kafka.create_topic(f"{name}-out", 2)
    sent = []

    def send(number, partition):
        values = [f"{partition}:{len(sent) + n}" for n in range(number)]
        sent.extend(values)
        kafka.send(name, values, partition)

    savepoint = None
    for round_number, parallelism in enumerate((1, 3, 2)):
        for partition in range(3):
            send(40, partition)
        with in_process(epoch_records=25):
            job = start(kafka, name, parallelism, tmp_path, savepoint)
            wait_for(kafka, name, len(sent) - 60)
            if round_number == 1:
                kafka.add_partitions(name, 4)
                send(10, 3)
                wait_for(kafka, name, len(sent))
            savepoint = stop(job, tmp_path)
    with in_process():
        job = start(kafka, name, 1, tmp_path, savepoint)
        found = wait_for(kafka, name, len(sent))
        stop(job, tmp_path)
    assert sorted(found) == sorted(sent)
    assert len(kafka.values(f"{name}-out")) == len(sent)
    assert sum(kafka.committed(name, name).values()) == len(sent)
    assert kafka.is_settled(f"{name}-out")


def test_what_was_deleted_while_a_job_was_stopped_is_not_skipped_silently(kafka, name, tmp_path):
    kafka.create_topic(name)
    kafka.create_topic(f"{name}-out")
    kafka.send(name, ["a", "b"])
    with in_process():
        job = start(kafka, name, 1, tmp_path)
        wait_for(kafka, name, 2)
        savepoint = stop(job, tmp_path)
        kafka.send(name, ["c", "d", "e"])
        kafka.delete_records(name, 0, 4)
        job = start(kafka, name, 1, tmp_path, savepoint)
        with pytest.raises(OffsetOutOfRange, match=r"offset to read is 2,.* from 4 to 5"):
            job.get_job_execution_result().result()
