"""Writing to topics: the conversion of values into records, and the writers of the three guarantees."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any, Generic

from penstock.api.functions.source_functions import SinkFunction
from penstock.base.arguments import check_arguments
from penstock.base.type_variables import IN
from penstock.common.serialization import SerializationSchema
from penstock.connectors.committing.prepared_records import PreparingWriter
from penstock.connectors.kafka.kafka_client import RETRIES, Client, client_settings, library
from penstock.connectors.retrying import Retries
from penstock.connectors.source_api import (
    Committer,
    DeliveryGuarantee,
    Sink,
    SinkWriter,
    StreamTransformer,
    SupportsPreprocessing,
    WriterContext,
)
from penstock.errors import ConnectorError, NotFound
from penstock.formats.batch_of_rows import BatchOfRows
from penstock.formats.message_batches import LEAST_TOGETHER, writes_together

if TYPE_CHECKING:
    from penstock.connectors.kafka.builders import KafkaRecordSerializationSchemaBuilder, KafkaSinkBuilder

log = logging.getLogger("penstock.connectors.kafka")
MARKER_TOPIC = "penstock-commits"
PARTITIONS_SECONDS = 300.0
"""Longest time, in seconds, until a partitioner learns of new partitions."""

Headers = Sequence[tuple[str, bytes | str | None]] | Mapping[str, bytes | str | None] | None
Partitioner = Callable[[bytes | None, Any, str, list[int]], int]
ToSend = tuple[str, bytes | None, bytes | None, int, int, Any]
"""Topic, value, key, partition (-1: the client chooses), timestamp (0: now) and headers."""


class KafkaTopicSelector(ABC):
    """Chooses the topic of each record."""

    @abstractmethod
    def apply(self, data: Any) -> str:
        """Return the topic for a value."""


@dataclass(frozen=True)
class KafkaRecordSerializationSchema(Generic[IN]):
    """The conversion of a value into a record of Kafka."""

    topic: str | Callable[[Any], str]
    value_schema: SerializationSchema
    key_schema: SerializationSchema | None = None
    partitioner: Partitioner | None = None
    header_provider: Callable[[Any], Headers] | None = None
    timestamp: Callable[[Any, int | None], int | None] | None = None
    writes_timestamps: bool = True

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """Return a builder without settings."""
        from penstock.connectors.kafka.builders import KafkaRecordSerializationSchemaBuilder

        return KafkaRecordSerializationSchemaBuilder()


class Serializer:
    """Applies a KafkaRecordSerializationSchema to values."""

    def __init__(self, schema: KafkaRecordSerializationSchema, partitions: Callable[[str], list[int]]) -> None:
        self._schema = schema
        self._partitions = partitions
        self._plain_topic = schema.topic if isinstance(schema.topic, str) and _is_plain(schema) else None

    def chunk(self, values: list[Any], timestamps: list[int | None] | None) -> list[ToSend] | None:
        """Return the records of a chunk, or None if one of them fails.

        The caller then processes the records one by one.
        """
        try:
            return list(self._all(values, timestamps))
        except Exception:
            return None

    def batch(self, rows: BatchOfRows) -> list[ToSend] | None:
        """Return the records of rows in columns; None if the rows must be converted one by one."""
        topic, stamps = self._plain_topic, rows.timestamps if self._schema.writes_timestamps else None
        if topic is None or len(rows) < LEAST_TOGETHER or not self._takes_columns:
            return None
        values = self._schema.value_schema.write_batch(rows.batch)  # type: ignore[attr-defined]
        keys: Iterable[bytes | None] | None = repeat(None, len(rows))
        if self._schema.key_schema is not None:
            keys = self._schema.key_schema.write_batch(rows.batch)  # type: ignore[attr-defined]
        if values is None or keys is None:
            return None
        times = repeat(0) if stamps is None else [_time_or_zero(stamp) for stamp in stamps]
        return [(topic, v, k, -1, t, None) for v, k, t in zip(values, keys, times, strict=False)]

    @cached_property
    def _takes_columns(self) -> bool:
        schemas = [self._schema.value_schema, self._schema.key_schema]
        return all(schema is None or writes_together(schema) for schema in schemas)

    def _all(self, values: Iterable[Any], timestamps: Iterable[int | None] | None) -> Iterable[ToSend]:
        schema = self._schema
        stamps = timestamps if timestamps is not None and schema.writes_timestamps else repeat(None)
        pairs = zip(values, stamps, strict=False)
        if self._plain_topic is None:
            return (self.one(value, stamp) for value, stamp in pairs)
        topic, serialize = self._plain_topic, schema.value_schema.serialize
        if schema.key_schema is None:
            return ((topic, serialize(v), None, -1, _time_or_zero(t), None) for v, t in pairs)
        key = schema.key_schema.serialize
        return ((topic, serialize(v), key(v), -1, _time_or_zero(t), None) for v, t in pairs)

    def one(self, value: Any, timestamp: int | None) -> ToSend:
        """Return the record of one value."""
        schema = self._schema
        topic = schema.topic if isinstance(schema.topic, str) else schema.topic(value)
        key = schema.key_schema.serialize(value) if schema.key_schema is not None else None
        if not schema.writes_timestamps:
            timestamp = None
        if schema.timestamp is not None:
            timestamp = schema.timestamp(value, timestamp)
        partition = -1 if schema.partitioner is None else self._chosen(schema.partitioner, key, value, topic)
        headers = schema.header_provider(value) if schema.header_provider is not None else None
        return (
            topic,
            schema.value_schema.serialize(value),
            key,
            partition,
            _time_or_zero(timestamp),
            headers or None,
        )

    def _chosen(self, partitioner: Partitioner, key: bytes | None, value: Any, topic: str) -> int:
        partitions = self._partitions(topic)
        chosen = partitioner(key, value, topic, partitions)
        if chosen not in partitions:
            raise ValueError(f"the partitioner chose {chosen!r} for topic {topic!r}, which has only {partitions}")
        return chosen


def _time_or_zero(timestamp: int | None) -> int:
    return timestamp if timestamp is not None and timestamp > 0 else 0


def _is_plain(schema: KafkaRecordSerializationSchema) -> bool:
    return schema.partitioner is None and schema.header_provider is None and schema.timestamp is None


@check_arguments
@dataclass(frozen=True)
class KafkaSink(Sink[IN], SupportsPreprocessing):
    """Writes records to Kafka topics: at least once, exactly once, or without a promise."""

    properties: dict[str, str]
    serializer: KafkaRecordSerializationSchema[IN]
    guarantee: DeliveryGuarantee = DeliveryGuarantee.AT_LEAST_ONCE
    prefix: str | None = None
    """The first part of the transactional ids; None for the job's id."""
    marker_topic: str = MARKER_TOPIC
    retries: Retries = RETRIES
    logs_failures_only: bool = False

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        """Return a builder without settings."""
        from penstock.connectors.kafka.builders import KafkaSinkBuilder

        return KafkaSinkBuilder()

    def create_writer(self, context: WriterContext, restored: list[Any]) -> SinkWriter:
        if self.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            return KafkaPreparingWriter(self, context)
        return KafkaWriter(self, context)

    def create_committer(self) -> Committer | None:
        if self.guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
            return None
        from penstock.connectors.kafka.commit import KafkaCommitter

        return KafkaCommitter(self)

    def get_transformer(self) -> StreamTransformer | None:
        """Return None: the stream is written as it is, because the writer selects the topics."""
        return None

    def producer(self, **more: Any) -> Client:
        """Make a producer. Its default settings are for throughput."""
        given = client_settings(self.properties, "group.id", "auto.offset.reset", "isolation.level", "transactional.id")
        safe = self.guarantee is not DeliveryGuarantee.NONE
        settings = {
            "linger.ms": 10,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": 1_000_000,
            "message.timeout.ms": 120_000,
            "topic.metadata.propagation.max.ms": 10_000,
            "partitioner": "murmur2_random",
            **({"enable.idempotence": True} if safe else {}),
            **given,
            "delivery.report.only.error": True,
            **more,
        }
        if "delivery.timeout.ms" in given:
            del settings["message.timeout.ms"]
        if "transactional.id" in more:
            # The transaction's own time limit holds for its messages.
            settings.pop("message.timeout.ms", None)
            settings.pop("delivery.timeout.ms", None)
        return Client("Producer", settings, self.retries)


class Sending:
    """A producer and the errors of its deliveries."""

    def __init__(self, sink: KafkaSink, **more: Any) -> None:
        self.errors: list[tuple[Any, str]] = []
        self.lost: Callable[[], None] = lambda: None
        """Called for every record that is given up with only a line in the log."""
        self._logs_only = sink.logs_failures_only
        self.client = sink.producer(on_delivery=self._on_delivery, **more)
        self.producer: Any = self.client.client
        self._partitions: dict[str, tuple[float, list[int]]] = {}

    def _on_delivery(self, error: Any, message: Any) -> None:
        code = library().KafkaError
        if error is None or error.code() in (code._PURGE_QUEUE, code._PURGE_INFLIGHT):
            # A purged record was given up because of another error.
            return
        if self._logs_only:
            log.error("a record for topic %r was not delivered: %s", message.topic(), error.str())
            self.lost()
        else:
            self.errors.append((error, message.topic()))

    def send(self, records: Iterable[ToSend]) -> None:
        """Hand records to the producer. Wait while its buffer is full."""
        produce = self.producer.produce
        for topic, value, key, partition, timestamp, headers in records:
            try:
                if headers is None and not timestamp:
                    produce(topic, value, key, partition)
                elif headers is None:
                    produce(topic, value, key, partition, None, None, timestamp)  # by position: half the time
                else:
                    produce(topic, value, key, partition, timestamp=timestamp, headers=headers)
            except BufferError:
                self._send_later(topic, value, key, partition, timestamp, headers)
            except library().KafkaException as error:
                self._raise_refusal(error, topic, value)

    def _send_later(self, *record: Any) -> None:
        topic, value, key, partition, timestamp, headers = record
        more = {} if headers is None else {"headers": headers}
        while True:
            self.producer.poll(0.05)
            self.check()
            try:
                self.producer.produce(topic, value, key, partition, timestamp=timestamp, **more)
            except BufferError:
                continue
            return

    def _raise_refusal(self, exception: Exception, topic: str, value: bytes | None) -> None:
        """Raise an error if the library will never accept a record.

        Raise the library's own error if a transaction failed before.
        """
        error, code = exception.args[0], library().KafkaError
        if error.code() not in (code.MSG_SIZE_TOO_LARGE, code._UNKNOWN_PARTITION, code._UNKNOWN_TOPIC):
            raise exception
        size = len(value) if value is not None else 0
        raise ConnectorError(
            f"a record of {size} bytes is too large for topic {topic!r} in Kafka at {self.client.servers}: "
            f"{error.str()}; message.max.bytes, of the producer and of the topic, sets the largest size"
        ) from exception

    def check(self) -> None:
        """Raise the first error of the deliveries."""
        if not self.errors:
            return
        (error, topic), count = self.errors[0], len(self.errors)
        self.errors = []
        self.client.refuse(error, f"writing to topic {topic!r}")
        code = library().KafkaError
        if error.code() in (code._UNKNOWN_TOPIC, code.UNKNOWN_TOPIC_OR_PART, code._UNKNOWN_PARTITION):
            raise NotFound(f"topic {topic!r} in Kafka at {self.client.servers}: {error.str()}")
        raise ConnectorError(
            f"{count} records were not delivered to topic {topic!r} in Kafka at {self.client.servers}: {error.str()}"
        )

    def flush(self) -> None:
        """Wait until every record has arrived, or a delivery has failed."""
        while self.producer.flush(1.0):
            self.check()
            for error in self.client.heard:
                self.client.refuse(error, "writing")
        self.check()

    def partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic, as they were at most `PARTITIONS_SECONDS` ago."""
        until, partitions = self._partitions.get(topic, (0.0, []))
        if time.monotonic() > until:
            partitions = self.client.partitions(topic)
            self._partitions[topic] = time.monotonic() + PARTITIONS_SECONDS, partitions
        return partitions

    def close(self) -> None:
        """Drop all records that were not sent."""
        self.producer = None
        self.client.close()


class KafkaWriter(SinkWriter):
    """Sends records as they come. With AT_LEAST_ONCE, it waits for all deliveries before a checkpoint."""

    def __init__(self, sink: KafkaSink, context: WriterContext) -> None:
        self._waits = sink.guarantee is not DeliveryGuarantee.NONE
        self._sending = Sending(sink)
        self._sending.lost = context.runtime.get_metrics_group().counter("numRecordsSendErrors").inc
        self._serializer = Serializer(sink.serializer, self._sending.partitions)
        if isinstance(sink.serializer.topic, str):
            self._sending.partitions(sink.serializer.topic)
        else:
            # A producer that is connected before its first record sends it sooner.
            self._sending.client.topics()

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        self._sending.send([self._serializer.one(value, context.timestamp())])

    def write_all(self, values: list[Any], timestamps: list[int | None] | None, context: SinkFunction.Context) -> bool:
        records = self._serializer.chunk(values, timestamps)
        if records is None:
            return False
        self._sending.send(records)
        return True

    def write_batch(self, rows: BatchOfRows, context: SinkFunction.Context) -> bool:
        records = self._serializer.batch(rows)
        if records is None:
            return False
        self._sending.send(records)
        return True

    def end_epoch(self, now: int) -> None:
        self._sending.producer.poll(0)
        self._sending.check()

    def flush(self, end_of_input: bool) -> None:
        if self._waits or end_of_input:
            self._sending.flush()

    def close(self) -> None:
        self._sending.close()


class KafkaPreparingWriter(PreparingWriter):
    """Keeps records for the checkpoint. The committer sends them in a transaction."""

    def __init__(self, sink: KafkaSink, context: WriterContext) -> None:
        super().__init__(context, sink.prefix or context.runtime.get_job_id())
        self._sink = sink
        self._sending: Sending | None = None
        self._serializer = Serializer(sink.serializer, self._partitions)
        if isinstance(sink.serializer.topic, str):
            self._partitions(sink.serializer.topic)
        if sink.serializer.partitioner is None:
            self.close()

    def _partitions(self, topic: str) -> list[int]:
        if self._sending is None:
            self._sending = Sending(self._sink)
        return self._sending.partitions(topic)

    def to_record(self, value: Any, context: SinkFunction.Context) -> ToSend:
        return self._serializer.one(value, context.timestamp())

    def write_all(self, values: list[Any], timestamps: list[int | None] | None, context: SinkFunction.Context) -> bool:
        records = self._serializer.chunk(values, timestamps)
        if records is None:
            return False
        self._records.extend(records)
        return True

    def write_batch(self, rows: BatchOfRows, context: SinkFunction.Context) -> bool:
        records = self._serializer.batch(rows)
        if records is None:
            return False
        self._records.extend(records)
        return True

    def close(self) -> None:
        sending, self._sending = self._sending, None
        if sending is not None:
            sending.close()
