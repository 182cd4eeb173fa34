"""Publishing to RabbitMQ in batches, each in a transaction: a lost connection leaves no batch half-published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.api.functions.source_functions import SinkFunction
from penstock.connectors.rabbitmq.connection import Link
from penstock.connectors.source_api import SinkWriter
from penstock.errors import NotFound

if TYPE_CHECKING:
    from penstock.connectors.rabbitmq.queues import RMQSink

BATCH_MESSAGES = 1000
BATCH_BYTES = 4 << 20


class QueueWriter(SinkWriter):
    """Collects a batch and publishes it when it is full, at the end of an epoch, and before a checkpoint."""

    def __init__(self, sink: RMQSink) -> None:
        self._sink = sink
        self._batch: list[dict[str, Any]] = []
        self._bytes = 0
        self._returned: list[str] = []
        self._link = Link(sink.connection_config, self._prepare)
        self._link.call(lambda: None, "connecting to RabbitMQ")

    def _prepare(self, channel: Any, declare: bool) -> None:
        if declare:
            self._sink.setup_queue(channel)
        channel.tx_select()
        channel.add_on_return_callback(self._return)

    def _return(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        where = f"exchange {method.exchange!r} with routing key {method.routing_key!r}"
        self._returned.append(f"{where}: {method.reply_text}: {body[:100]!r}")

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        message = {
            "exchange": self._sink.compute_exchange(value),
            "routing_key": self._sink.compute_routing_key(value),
            "body": self._sink.serialization_schema.serialize(value),
            "properties": self._sink.compute_properties(value),
            "mandatory": self._sink.compute_mandatory(value),
        }
        self._batch.append(message)
        self._bytes += len(message["body"])
        if len(self._batch) >= BATCH_MESSAGES or self._bytes >= BATCH_BYTES:
            self._publish()

    def flush(self, end_of_input: bool) -> None:
        self._publish()

    def end_epoch(self, now: int) -> None:
        self._publish()

    def _publish(self) -> None:
        if not self._batch:
            return
        self._link.call(self._transaction, f"publishing to queue {self._sink.queue_name!r}")
        self._batch, self._bytes = [], 0
        if self._returned:
            raise NotFound(
                f"RabbitMQ has no queue for {len(self._returned)} messages. The first was sent to {self._returned[0]}"
            )

    def _transaction(self) -> None:
        for message in self._batch:
            self._link.channel.basic_publish(**message)
        self._link.channel.tx_commit()
        self._link.connection.process_data_events(time_limit=0)

    def close(self) -> None:
        self._link.drop()
