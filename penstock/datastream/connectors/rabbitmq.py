"""RabbitMQ queues as sources and sinks."""

from penstock.connectors.rabbitmq.queues import (
    RMQConnectionConfig,
    RMQSink,
    RMQSource,
)

__all__ = [
    "RMQConnectionConfig",
    "RMQSink",
    "RMQSource",
]
