"""RabbitMQ queues as sources and sinks."""

from penstock.connectors.rabbitmq.queues import *  # noqa: F403
from penstock.connectors.rabbitmq.queues import __all__  # noqa: F401
