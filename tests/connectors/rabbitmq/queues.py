"""What the tests do with a broker beside the connectors."""

from __future__ import annotations

import socket
from contextlib import contextmanager, suppress

import pika

from penstock.common import SimpleStringSchema
from penstock.common.typeinfo import Types
from penstock.datastream.connectors.base import ReaderContext
from penstock.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQSource
from penstock.errors import UndecodableRecord

END = "the end"


class UntilEnd(SimpleStringSchema):
    """Strings until one says that nothing follows."""

    def is_end_of_stream(self, next_element):
        return next_element == END

    def get_produced_type(self):
        return Types.STRING()


class Queues:
    """A second client of the broker."""

    def __init__(self, port):
        self.port = port

    @contextmanager
    def channel(self):
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", self.port))
        try:
            yield connection.channel()
        finally:
            if connection.is_open:
                connection.close()

    def publish(self, queue, *texts, ids=True):
        with self.channel() as channel:
            channel.queue_declare(queue, durable=True)
            for text in texts:
                properties = pika.BasicProperties(correlation_id=text if ids else None, delivery_mode=2)
                channel.basic_publish("", queue, text.encode(), properties)

    def contents(self, queue):
        """Take out all messages."""
        with self.channel() as channel:
            taken = iter(lambda: channel.basic_get(queue, auto_ack=True), (None, None, None))
            return [body.decode() for _, _, body in taken]

    def ready(self, queue):
        with self.channel() as channel:
            return channel.queue_declare(queue, passive=True).method.message_count

    def config(self, **settings):
        builder = RMQConnectionConfig.Builder().set_host("127.0.0.1").set_port(self.port)
        builder.set_network_recovery_interval(100)
        for name, value in settings.items():
            getattr(builder, f"set_{name}")(value)
        return builder.build()

    def source(self, queue, use_correlation_id=True, schema=None, **settings):
        return RMQSource(self.config(), queue, use_correlation_id, schema or UntilEnd(), **settings)


class Subtask(ReaderContext):
    """A reader's surroundings without a job."""

    def __init__(self, takes_checkpoints=True, skip=False):
        self._takes_checkpoints = takes_checkpoints
        self.skip = skip
        self.rejected = []

    @property
    def takes_checkpoints(self):
        return self._takes_checkpoints

    @property
    def runtime(self):
        raise AssertionError("not needed")

    def decode(self, decode, messages, position):
        return [decode(message) for message in messages], None

    def reject(self, message, error, position):
        if not self.skip:
            raise UndecodableRecord(f"{position}: {error}") from error
        self.rejected.append((message, position))


class Reading:
    """A reader that a test drives step by step."""

    def __init__(self, source, splits=None, **settings):
        self.reader = source.create_reader(Subtask(**settings))
        self.reader.add_splits(splits or source.create_enumerator().discover())
        self.number = 0

    def read(self, count, wait=5.0):
        """Read until so many records have come; with a count of 0, see that none come."""
        values = []
        while True:
            fetched = self.reader.fetch(1000, wait if len(values) < count else 0.2)
            values += [value for part in fetched for value in part.values]
            if len(values) >= count and not fetched:
                return values
            if not fetched:
                raise AssertionError(f"only {values} came")

    def checkpoint(self):
        self.number += 1
        self.reader.checkpoint_id = self.number
        return list(self.reader.snapshot_state())

    def complete(self, number=None):
        self.reader.notify_checkpoint_complete(number or self.number)

    def die(self):
        """As the process would: the broker sees the socket close."""
        for consumer in self.reader._consumers:
            sever(consumer._link)


def sever(link):
    """Cut the cable: neither side says goodbye."""
    with suppress(OSError, AttributeError):  # it may be gone already
        link.connection._impl._transport._sock.shutdown(socket.SHUT_RDWR)
