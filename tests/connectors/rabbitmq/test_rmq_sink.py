"""A writer step by step, and what its overridable methods do."""

import pika
import pytest

from penstock.common import SimpleStringSchema
from penstock.connectors.rabbitmq import rabbitmq_writer as _rabbitmq_writer
from penstock.datastream.connectors.rabbitmq import RMQSink
from penstock.errors import AccessDenied, ConnectorError, NotFound, TypeMismatch
from tests.connectors.rabbitmq.queues import sever


def writer_of(queues, queue, kind=RMQSink, **settings):
    return kind(queues.config(**settings), queue, SimpleStringSchema()).create_writer(None, [])


def write(writer, *values):
    for value in values:
        writer.write(value, None)


def test_a_batch_is_seen_when_it_is_flushed(queues, queue):
    writer = writer_of(queues, queue)
    write(writer, "a", "b")
    assert queues.ready(queue) == 0
    writer.flush(False)
    assert queues.contents(queue) == ["a", "b"]
    write(writer, "c")
    writer.end_epoch(0)
    assert queues.contents(queue) == ["c"]
    writer.close()


def test_a_full_batch_is_not_held_back(queues, queue, monkeypatch):
    monkeypatch.setattr(_rabbitmq_writer, "BATCH_MESSAGES", 3)
    monkeypatch.setattr(_rabbitmq_writer, "BATCH_BYTES", 10)
    writer = writer_of(queues, queue)
    write(writer, "a", "b", "c", "d")
    assert queues.contents(queue) == ["a", "b", "c"]
    write(writer, "0123456789")
    assert queues.contents(queue) == ["d", "0123456789"]
    writer.close()


def test_a_lost_connection_is_opened_again_and_the_batch_published_once(queues, queue):
    writer = writer_of(queues, queue)
    write(writer, "a", "b")
    sever(writer._link)
    writer.flush(False)
    assert queues.contents(queue) == ["a", "b"]
    writer.close()


def test_a_transaction_that_was_cut_off_leaves_nothing(queues, queue):
    writer = writer_of(queues, queue)
    write(writer, "a", "b")
    for message in writer._batch:
        writer._link.channel.basic_publish(**message)
    sever(writer._link)
    writer.flush(False)
    assert queues.contents(queue) == ["a", "b"]
    writer.close()


def test_messages_are_persistent(queues, queue):
    writer = writer_of(queues, queue)
    write(writer, "a")
    writer.flush(True)
    writer.close()
    with queues.channel() as channel:
        _, properties, _ = channel.basic_get(queue, auto_ack=True)
    assert properties.delivery_mode == 2


def test_exchange_routing_key_and_properties(queues, queue):
    class Topics(RMQSink):
        def setup_queue(self, channel):
            channel.exchange_declare(f"{self.queue_name}-exchange", "topic")
            channel.queue_declare(self.queue_name)
            channel.queue_bind(self.queue_name, f"{self.queue_name}-exchange", "even.*")

        def compute_exchange(self, value):
            return f"{self.queue_name}-exchange"

        def compute_routing_key(self, value):
            return f"{'odd' if int(value) % 2 else 'even'}.{value}"

        def compute_properties(self, value):
            return pika.BasicProperties(correlation_id=f"id-{value}")

    writer = writer_of(queues, queue, Topics)
    write(writer, "1", "2", "3", "4")
    writer.flush(True)
    writer.close()
    with queues.channel() as channel:
        _, properties, body = channel.basic_get(queue, auto_ack=True)
    assert (properties.correlation_id, body) == ("id-2", b"2")
    assert queues.contents(queue) == ["4"]


def test_a_mandatory_message_that_no_queue_gets(queues, queue):
    class Elsewhere(RMQSink):
        def compute_routing_key(self, value):
            return "nowhere"

        def compute_mandatory(self, value):
            return True

    writer = writer_of(queues, queue, Elsewhere)
    write(writer, "a", "b")
    with pytest.raises(NotFound, match=r"2 messages.*'nowhere': NO_ROUTE: b'a'"):
        writer.flush(False)
    writer.close()


def test_an_exchange_that_is_not_there(queues, queue):
    class Elsewhere(RMQSink):
        def compute_exchange(self, value):
            return "nowhere"

    writer = writer_of(queues, queue, Elsewhere)
    write(writer, "a")
    with pytest.raises(NotFound, match="no exchange 'nowhere'"):
        writer.flush(False)


def test_a_record_that_is_no_string(queues, queue):
    writer = writer_of(queues, queue)
    with pytest.raises(TypeMismatch):
        write(writer, 1)
    writer.close()


def test_nobody_there_and_wrong_credentials(queues, queue):
    with pytest.raises(ConnectorError, match="failed 6 times"):
        writer_of(queues, queue, port=1, network_recovery_interval=1)
    with pytest.raises(AccessDenied, match="'nobody'"):
        writer_of(queues, queue, user_name="nobody")


def test_by_uri(queues, queue):
    from penstock.datastream.connectors.rabbitmq import RMQConnectionConfig

    config = RMQConnectionConfig.Builder().set_uri(f"amqp://guest:guest@127.0.0.1:{queues.port}/%2F").build()
    writer = RMQSink(config, queue, SimpleStringSchema()).create_writer(None, [])
    write(writer, "a")
    writer.flush(True)
    writer.close()
    assert queues.contents(queue) == ["a"]
