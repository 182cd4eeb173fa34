"""RabbitMQ queues as sources and sinks.

RMQSource is exactly once with checkpoints and correlation ids, at least once with checkpoints alone, and at most once
without: messages are acknowledged when a checkpoint that holds their effects is complete, and one that comes again is
known by its id. RMQSink is at least once with checkpoints.
"""

from __future__ import annotations

from typing import Any

from penstock.common.serialization import DeserializationSchema, SerializationSchema
from penstock.common.typeinfo import TypeInformation
from penstock.connectors.rabbitmq.connection import RMQConnectionConfig, pika
from penstock.connectors.rabbitmq.rabbitmq_reader import Consumer, QueueReader
from penstock.connectors.rabbitmq.rabbitmq_writer import QueueWriter
from penstock.connectors.source_api import (
    Boundedness,
    ReaderContext,
    Sink,
    SinkWriter,
    Source,
    SourceReader,
    SplitEnumerator,
    StaticSplits,
    WriterContext,
)

__all__ = ["RMQConnectionConfig", "RMQSink", "RMQSource"]


class RMQSource(Source):
    """Reads the messages of a queue.

    One consumer reads, whatever the parallelism: the broker sends a message again to any of them, and only the one that
    knows its id can drop it. Without correlation ids there may be several `consumers`, which share the messages.
    """

    def __init__(
        self,
        connection_config: RMQConnectionConfig,
        queue_name: str,
        use_correlation_id: bool,
        deserialization_schema: DeserializationSchema,
        *,
        consumers: int = 1,
    ) -> None:
        """`use_correlation_id` says that every message has a correlation id of its own, by which it is known again."""
        _check(connection_config, queue_name)
        if not isinstance(deserialization_schema, DeserializationSchema):
            raise TypeError(f"RMQSource takes a DeserializationSchema, not {deserialization_schema!r}")
        if consumers < 1:
            raise ValueError(f"RMQSource needs at least one consumer, not {consumers!r}")
        if consumers > 1 and use_correlation_id:
            raise ValueError(f"with correlation ids there can be only one consumer, not {consumers}")
        self.connection_config = connection_config
        self.queue_name = queue_name
        self.use_correlation_id = use_correlation_id
        self.deserialization_schema = deserialization_schema
        self.consumers = consumers

    def setup_queue(self, channel: Any) -> None:
        """Called on every new connection: declares a durable queue. Override for another one, or to bind it."""
        channel.queue_declare(self.queue_name, durable=True)

    def get_boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def get_produced_type(self) -> TypeInformation | None:
        return self.deserialization_schema.get_produced_type()

    def create_enumerator(self) -> SplitEnumerator:
        return StaticSplits([Consumer(f"consumer-{number}") for number in range(self.consumers)])

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return QueueReader(self, context)


class RMQSink(Sink):
    """Publishes every record to a queue: by default as a persistent message to the default exchange.

    Override the methods below to publish somewhere else, with other properties, or only where a queue is bound.
    """

    def __init__(
        self, connection_config: RMQConnectionConfig, queue_name: str, serialization_schema: SerializationSchema
    ) -> None:
        _check(connection_config, queue_name)
        if not isinstance(serialization_schema, SerializationSchema):
            raise TypeError(f"RMQSink takes a SerializationSchema, not {serialization_schema!r}")
        self.connection_config = connection_config
        self.queue_name = queue_name
        self.serialization_schema = serialization_schema

    def setup_queue(self, channel: Any) -> None:
        """Called on every new connection: declares a durable queue. Override for another one, or for an exchange."""
        channel.queue_declare(self.queue_name, durable=True)

    def compute_exchange(self, value: Any) -> str:
        """Return the exchange that gets the record; the default one sends to the queue named by the routing key."""
        return ""

    def compute_routing_key(self, value: Any) -> str:
        return self.queue_name

    def compute_properties(self, value: Any) -> Any:
        """Return the message's properties, a pika.BasicProperties."""
        return pika().BasicProperties(delivery_mode=2)

    def compute_mandatory(self, value: Any) -> bool:
        """Return whether the job must fail if no queue gets the message, instead of losing it."""
        return False

    def create_writer(self, context: WriterContext, restored: list[Any]) -> SinkWriter:
        return QueueWriter(self)


def _check(connection_config: Any, queue_name: Any) -> None:
    if not isinstance(connection_config, RMQConnectionConfig):
        raise TypeError(f"a RabbitMQ connector takes an RMQConnectionConfig, not {connection_config!r}")
    if not isinstance(queue_name, str) or not queue_name:
        raise ValueError(f"the queue's name is a string that is not empty, not {queue_name!r}")
