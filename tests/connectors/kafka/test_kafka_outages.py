"""A broker that goes away and comes back, in the middle of reading and of writing."""

import threading
import time
from collections.abc import Iterator

import pytest

from penstock.common import Types, WatermarkStrategy
from penstock.connectors.kafka.commit import OriginCommitter
from penstock.connectors.kafka.kafka_source import KafkaSplit
from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.errors import ConnectorError
from penstock.testing import in_process
from tests.connectors.kafka.jobs import (
    IMPATIENT,
    Reading,
    Writing,
    environment,
    read_until,
    strings,
    text_sink,
    values_of,
)
from tests.services.kafka import Kafka
from tests.waiting import until


@pytest.fixture
def fragile(kafka: Kafka) -> Iterator[Kafka]:
    """The broker of all tests, which these may stop."""
    yield kafka
    if kafka.process is None:
        kafka.start()


def restart(kafka, kill=True):
    kafka.kill() if kill else kafka.stop()
    kafka.start()


@pytest.mark.soak
def test_a_reader_goes_on_after_a_restart(fragile, name):
    fragile.create_topic(name)
    fragile.send(name, ["a", "b"])
    reader = strings(fragile, name).build().create_reader(Reading())
    reader.add_splits([KafkaSplit(name, 0, 0)])
    assert values_of(read_until(reader, 2)) == ["a", "b"]
    restart(fragile)
    fragile.send(name, ["c"])
    assert values_of(read_until(reader, 1)) == ["c"]
    reader.close()


@pytest.mark.soak
@pytest.mark.parametrize("when", ["before the transaction", "in the middle", "while it ends"])
def test_a_commit_survives_a_restart(fragile, name, monkeypatch, when):
    fragile.create_topic(name)
    builder = text_sink(fragile, name).set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    sink = builder.set_transactional_id_prefix(name).set_property("transaction.timeout.ms", "20000").build()
    committer = sink.create_committer()
    writer = sink.create_writer(Writing(), [])

    def commit(*values):
        writer.write_all(list(values), None, None)
        committer.commit(writer.prepare_commit())

    commit("a")
    ending, waiting = OriginCommitter._again_while_told, [when]

    def ends(self, action):
        if waiting and waiting.pop() == "in the middle":
            self._sending.producer.flush(10)
            restart(fragile)
        ending(self, action)

    monkeypatch.setattr(OriginCommitter, "_again_while_told", ends)
    if when == "before the transaction":
        restart(fragile)
    elif when == "while it ends":
        fragile.kill()
        threading.Timer(0.5, fragile.start).start()
    commit("b", "c")
    commit("d")
    committer.close()
    writer.close()
    assert fragile.values(name) == ["a", "b", "c", "d"]
    assert fragile.is_settled(name)


def test_a_job_goes_on_after_a_restart(fragile, name, tmp_path):
    """Reading, counting and writing exactly once, while the broker is killed in between."""
    fragile.create_topic(name, 2)
    fragile.create_topic(f"{name}-out", 2)
    fragile.send(name, [str(n) for n in range(300)])
    source = strings(fragile, name).build()
    builder = text_sink(fragile, f"{name}-out").set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    flag = tmp_path / "enough"

    def slowly(text):
        time.sleep(0.005)
        if int(text) > 100:
            flag.touch()
        return text

    def kill():
        until(flag.exists)
        restart(fragile)

    killing = threading.Thread(target=kill)
    killing.start()
    options = {
        "execution_checkpointing_interval": "50 ms",
        "execution_checkpointing_dir": f"file://{tmp_path}/checkpoints",
        "restart__strategy_type": "fixed-delay",
        "restart__strategy_fixed__delay_attempts": "10000",
        "restart__strategy_fixed__delay_delay": "200 ms",
    }
    try:
        with in_process(epoch_records=20):
            env = environment(2, **options)
            stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "Kafka")
            stream.map(slowly, Types.STRING()).sink_to(builder.set_transactional_id_prefix(name).build())
            env.execute()
    finally:
        killing.join()
    assert sorted(fragile.values(f"{name}-out"), key=int) == [str(n) for n in range(300)]


def test_readers_and_writers_give_up_in_the_end(fragile, name):
    fragile.create_topic(name)
    writer = text_sink(fragile, name).set_property("delivery.timeout.ms", "10000").build().create_writer(Writing(), [])
    writer.write_all(["a"], None, None)
    writer.flush(False)
    source = strings(fragile, name).set_retries(IMPATIENT).build()
    reader = source.create_reader(Reading())
    reader.add_splits([KafkaSplit(name, 0, 0)])
    read_until(reader, 1)
    fragile.stop()
    writer.write_all(["b"], None, None)
    with pytest.raises(ConnectorError, match=f"{fragile.bootstrap} did not answer 2 times"):
        read_until(reader, 1)
    with pytest.raises(ConnectorError, match=f"not delivered to topic '{name}' in Kafka at {fragile.bootstrap}"):
        writer.flush(False)
    began = time.monotonic()
    reader.close()
    writer.close()
    assert time.monotonic() - began < 100, "closing does not wait for a broker that is gone"
