"""RabbitMQ queues as sources and sinks.

RMQSource is exactly once with checkpoints and correlation ids, at least once with checkpoints alone, and at most once
without checkpoints. Messages are acknowledged once a checkpoint that holds their effects is complete. A message that
comes again is recognised by its id. RMQSink is at least once with checkpoints.
"""

from __future__ import annotations

from typing import Any

from penstock.base.arguments import check_arguments
from penstock.base.type_variables import IN, OUT
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


class RMQSource(Source[OUT]):
    """Reads the messages of a queue.

    By default one consumer reads, whatever the parallelism. With correlation ids there can be only one, because the
    broker may send a message again to any consumer, and only the one that knows its id can drop it. Without them there
    may be several `consumers`, which share the messages.
    """

    @check_arguments
    def __init__(
        self,
        connection_config: RMQConnectionConfig,
        queue_name: str,
        use_correlation_id: bool,
        deserialization_schema: DeserializationSchema[OUT],
        *,
        consumers: int = 1,
    ) -> None:
        """Read a queue.

        With `use_correlation_id`, every message has a unique correlation id, by which it is recognised.
        """
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
        """Declare a durable queue. Called on every new connection. Override it for another queue, or to bind it."""
        channel.queue_declare(self.queue_name, durable=True)

    def get_boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def get_produced_type(self) -> TypeInformation[OUT] | None:
        return self.deserialization_schema.get_produced_type()

    def create_enumerator(self) -> SplitEnumerator:
        return StaticSplits([Consumer(f"consumer-{number}") for number in range(self.consumers)])

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return QueueReader(self, context)


class RMQSink(Sink[IN]):
    """Publishes every record to a queue: by default as a persistent message to the default exchange.

    Override the methods below to publish elsewhere, with other properties, or only where a queue is bound.
    """

    @check_arguments
    def __init__(
        self, connection_config: RMQConnectionConfig, queue_name: str, serialization_schema: SerializationSchema[IN]
    ) -> None:
        _check(connection_config, queue_name)
        if not isinstance(serialization_schema, SerializationSchema):
            raise TypeError(f"RMQSink takes a SerializationSchema, not {serialization_schema!r}")
        self.connection_config = connection_config
        self.queue_name = queue_name
        self.serialization_schema = serialization_schema

    def setup_queue(self, channel: Any) -> None:
        """Declare a durable queue.

        Called on every new connection. Override it for another queue, or for an exchange.
        """
        channel.queue_declare(self.queue_name, durable=True)

    def compute_exchange(self, value: Any) -> str:
        """Return the exchange for the record. The default exchange sends to the queue that the routing key names."""
        return ""

    def compute_routing_key(self, value: Any) -> str:
        """Return the routing key for the record: by default, the name of the queue."""
        return self.queue_name

    def compute_properties(self, value: Any) -> Any:
        """Return the message's properties, a pika.BasicProperties."""
        return pika().BasicProperties(delivery_mode=2)

    def compute_mandatory(self, value: Any) -> bool:
        """Return True if the job must fail when a message reaches no queue. By default such a message is lost."""
        return False

    def create_writer(self, context: WriterContext, restored: list[Any]) -> SinkWriter:
        return QueueWriter(self)


def _check(connection_config: Any, queue_name: Any) -> None:
    if not isinstance(connection_config, RMQConnectionConfig):
        raise TypeError(f"a RabbitMQ connector takes an RMQConnectionConfig, not {connection_config!r}")
    if not isinstance(queue_name, str) or not queue_name:
        raise ValueError(f"the queue's name is a string that is not empty, not {queue_name!r}")
