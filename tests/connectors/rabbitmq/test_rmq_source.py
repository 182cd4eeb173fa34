"""A reader step by step: what it acknowledges when, and what it knows again."""

import pytest

from penstock.common import SimpleStringSchema
from penstock.datastream.connectors.rabbitmq import RMQSource
from penstock.errors import AccessDenied, ConnectorError, NotFound, SchemaMismatch, UndecodableRecord
from tests.connectors.rabbitmq.queues import END, Reading, sever


def test_messages_stay_in_the_queue_until_a_checkpoint_is_complete(queues, queue):
    queues.publish(queue, "a", "b", "c")
    reading = Reading(queues.source(queue))
    assert reading.read(3) == ["a", "b", "c"]
    [split] = reading.checkpoint()
    assert sorted(split.ids) == ["a", "b", "c"]
    reading.die()
    again = Reading(queues.source(queue))
    assert again.read(3) == ["a", "b", "c"]
    again.checkpoint()
    again.complete()
    assert again.checkpoint()[0].ids == ()
    again.die()
    assert queues.contents(queue) == []


def test_only_what_a_complete_checkpoint_holds_is_acknowledged(queues, queue):
    reading = Reading(queues.source(queue))
    for text in ("a", "b", "c"):
        queues.publish(queue, text)
        reading.read(1)
        reading.checkpoint()
    queues.publish(queue, "d")
    reading.read(1)
    reading.complete(2)
    assert sorted(reading.checkpoint()[0].ids) == ["c", "d"]
    reading.die()
    assert queues.contents(queue) == ["c", "d"]


def test_messages_of_the_checkpoint_that_come_again_are_dropped(queues, queue):
    queues.publish(queue, "a", "b")
    reading = Reading(queues.source(queue))
    reading.read(2)
    splits = reading.checkpoint()
    queues.publish(queue, "c")
    assert reading.read(1) == ["c"]
    reading.die()
    successor = Reading(queues.source(queue), splits)
    assert successor.read(1) == ["c"]
    successor.checkpoint()
    successor.complete()
    successor.die()
    assert queues.contents(queue) == []


def test_a_connection_that_is_lost_in_between_changes_nothing(queues, queue):
    queues.publish(queue, "a", "b")
    reading = Reading(queues.source(queue))
    reading.read(2)
    reading.checkpoint()
    sever(reading.reader._consumers[0]._link)
    reading.complete()
    queues.publish(queue, "c")
    assert reading.read(1) == ["c"]
    assert sorted(reading.checkpoint()[0].ids) == ["a", "b", "c"]
    reading.complete()
    assert reading.checkpoint()[0].ids == ()
    reading.die()
    assert queues.contents(queue) == []


def test_without_ids_messages_come_at_least_once(queues, queue):
    queues.publish(queue, "a", "b", ids=False)
    reading = Reading(queues.source(queue, use_correlation_id=False))
    assert reading.read(2) == ["a", "b"]
    splits = reading.checkpoint()
    reading.die()
    successor = Reading(queues.source(queue, use_correlation_id=False), splits)
    assert successor.read(2) == ["a", "b"]
    successor.checkpoint()
    successor.complete()
    successor.die()
    assert queues.contents(queue) == []


def test_without_checkpoints_messages_are_gone_once_sent(queues, queue):
    queues.publish(queue, "a", "b")
    reading = Reading(queues.source(queue), takes_checkpoints=False)
    assert reading.read(2) == ["a", "b"]
    reading.die()
    assert queues.contents(queue) == []


def test_the_prefetch_count_is_the_most_between_two_checkpoints(queues, queue):
    queues.publish(queue, *map(str, range(5)))
    source = RMQSource(queues.config(prefetch_count=2), queue, True, SimpleStringSchema())
    reading = Reading(source)
    assert reading.read(2) == ["0", "1"]
    reading.checkpoint()
    reading.complete()
    assert reading.read(2) == ["2", "3"]
    reading.die()


def test_the_message_that_ends_the_stream_and_those_behind_it(queues, queue):
    queues.publish(queue, "a", END, "b")
    reading = Reading(queues.source(queue))
    fetched = []
    while not fetched or not fetched[-1].last:
        fetched += reading.reader.fetch(10, 5.0)
    assert [value for part in fetched for value in part.values] == ["a"]
    assert reading.reader.fetch(10, 0.1) == []
    assert reading.checkpoint() == []
    reading.complete()
    reading.reader.close()
    assert queues.contents(queue) == ["b"]


def test_a_message_without_an_id(queues, queue):
    queues.publish(queue, "a", ids=False)
    reading = Reading(queues.source(queue))
    with pytest.raises(UndecodableRecord, match=f"delivery 1 of queue '{queue}'.*needs one on every message"):
        reading.read(1)
    reading.die()
    queues.publish(queue, "b")
    skipping = Reading(queues.source(queue), skip=True)
    assert skipping.read(1) == ["b"]
    assert len(skipping.reader._context.rejected) == 1
    skipping.die()


def test_several_consumers_share_the_messages(queues, queue):
    queues.publish(queue, *map(str, range(20)), ids=False)
    source = queues.source(queue, use_correlation_id=False, consumers=2)
    splits = source.create_enumerator().discover()
    assert [split.split_id for split in splits] == ["consumer-0", "consumer-1"]
    reading = Reading(source, splits)
    assert sorted(map(int, reading.read(20))) == list(range(20))
    reading.checkpoint()
    reading.complete()
    reading.die()
    assert queues.contents(queue) == []


def test_a_missing_queue_is_declared(queues, queue):
    reading = Reading(queues.source(queue))
    assert reading.read(0) == []
    queues.publish(queue, "a")
    assert reading.read(1) == ["a"]
    reading.die()


def test_a_queue_that_is_there_with_other_properties(queues, queue):
    with queues.channel() as channel:
        channel.queue_declare(queue, durable=True, arguments={"x-max-length": 10})
    with pytest.raises(SchemaMismatch, match="x-max-length"):
        Reading(queues.source(queue)).read(0)

    class AsItIs(RMQSource):
        def setup_queue(self, channel):
            channel.queue_declare(self.queue_name, passive=True)

    source = AsItIs(queues.config(), queue, True, SimpleStringSchema())
    reading = Reading(source)
    assert reading.read(0) == []
    reading.die()
    with pytest.raises(NotFound, match="nowhere"):
        Reading(AsItIs(queues.config(), "nowhere", True, SimpleStringSchema())).read(0)


def test_a_queue_that_is_deleted(queues, queue):
    reading = Reading(queues.source(queue))
    reading.read(0)
    with queues.channel() as channel:
        channel.queue_delete(queue)
    with pytest.raises(NotFound, match=f"'{queue}' was deleted"):
        reading.read(1)
    reading.die()


def test_wrong_credentials(queues, queue):
    config = queues.config(password="wrong")
    with pytest.raises(AccessDenied, match="rejected the login of user 'guest'"):
        Reading(RMQSource(config, queue, True, SimpleStringSchema())).read(0)


def test_a_virtual_host_that_is_not_there(queues, queue):
    config = queues.config(virtual_host="nowhere")
    with pytest.raises(NotFound, match="refuses virtual host 'nowhere'"):
        Reading(RMQSource(config, queue, True, SimpleStringSchema())).read(0)


def test_nobody_there(queues, queue):
    config = queues.config(port=1, network_recovery_interval=1)
    with pytest.raises(ConnectorError, match=r"at 127.0.0.1:1 failed 6 times"):
        Reading(RMQSource(config, queue, True, SimpleStringSchema())).read(0)
    at_once = queues.config(port=1, automatic_recovery=False)
    with pytest.raises(ConnectorError, match="failed 1 times"):
        Reading(RMQSource(at_once, queue, True, SimpleStringSchema())).read(0)


def test_a_quorum_queue(queues, queue):
    class Quorum(RMQSource):
        def setup_queue(self, channel):
            channel.queue_declare(self.queue_name, durable=True, arguments={"x-queue-type": "quorum"})

    reading = Reading(Quorum(queues.config(), queue, True, SimpleStringSchema()))
    reading.read(0)
    with queues.channel() as channel:
        import pika

        channel.basic_publish("", queue, b"a", pika.BasicProperties(correlation_id="a"))
    assert reading.read(1) == ["a"]
    reading.checkpoint()
    reading.complete()
    reading.die()
    assert queues.contents(queue) == []
