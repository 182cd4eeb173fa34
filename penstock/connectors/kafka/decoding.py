"""The decoding of messages into values with timestamps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from penstock.common.serialization import DeserializationSchema
from penstock.connectors.kafka.kafka_source import KafkaRecord, KafkaRecordDeserializationSchema
from penstock.connectors.source_api import ReaderContext
from penstock.formats.batch_of_rows import BatchOfRows
from penstock.formats.message_batches import MessagesTogether

Decoded = tuple[Sequence[Any], list[int] | None, bool]
"""Values, their timestamps if there are any, and True if a value has ended its partition."""


class Messages:
    """Messages of one partition, as the library gives them, with the fields of all of them at once."""

    def __init__(self, messages: list[Any], message_type: Any) -> None:
        self.each = messages
        self._type = message_type

    def __len__(self) -> int:
        return len(self.each)

    @cached_property
    def values(self) -> list[bytes | None]:
        return list(map(self._type.value, self.each))

    @cached_property
    def keys(self) -> list[bytes | None]:
        return list(map(self._type.key, self.each))

    @cached_property
    def timestamps(self) -> list[int]:
        return [timestamp for _, timestamp in map(self._type.timestamp, self.each)]

    @cached_property
    def offsets(self) -> list[int]:
        return list(map(self._type.offset, self.each))

    def records(self) -> list[KafkaRecord]:
        return [_record(message) for message in self.each]

    def with_values(self) -> Messages:
        """Return the messages that have a value."""
        if None not in self.values:
            return self
        return Messages([message for message in self.each if message.value() is not None], self._type)

    def with_some_value(self) -> Messages:
        """Return the messages whose value is not empty."""
        return Messages([message for message in self.each if message.value()], self._type)


def _record(message: Any) -> KafkaRecord:
    return KafkaRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        message.key(),
        message.value(),
        message.headers() or [],
        message.timestamp()[1],
    )


class BatchDeserializationSchema(KafkaRecordDeserializationSchema):
    """Turns whole records into values, and, where possible, many records into one record batch.

    The rows of such a batch have no timestamps.
    """

    @abstractmethod
    def deserialize_batch(self, messages: Messages) -> BatchOfRows | None:
        """Return the rows of the messages, in order; None if the messages must be decoded one by one."""


class Decoding:
    """Applies a deserialization schema to messages."""

    def __init__(
        self, schema: DeserializationSchema | KafkaRecordDeserializationSchema, context: ReaderContext
    ) -> None:
        self._schema = schema
        self._context = context
        self._whole = isinstance(schema, KafkaRecordDeserializationSchema)
        base = KafkaRecordDeserializationSchema if self._whole else DeserializationSchema
        self._may_end = getattr(type(schema), "is_end_of_stream", None) is not base.is_end_of_stream
        self._together = None if self._whole or self._may_end else MessagesTogether.of(schema)

    def decode(self, messages: Messages, split_id: str) -> Decoded:
        if not self._whole:
            messages = messages.with_values()
        rows = self._rows(messages)
        return self._one_by_one(messages, split_id) if rows is None else rows

    def _rows(self, messages: Messages) -> Decoded | None:
        """Decode all messages at once; return None if that is not possible."""
        if isinstance(self._schema, BatchDeserializationSchema):
            batch = self._schema.deserialize_batch(messages)
            return None if batch is None else (batch, None, False)
        rows = None if self._together is None else self._together.rows(messages.values)  # type: ignore[arg-type]
        return None if rows is None else (rows, messages.timestamps, False)

    def _one_by_one(self, messages: Messages, split_id: str) -> Decoded:
        raw: list[Any] = messages.records() if self._whole else messages.values
        values, kept = self._context.decode(
            self._schema.deserialize, raw, lambda index: f"{split_id}@{messages.each[index].offset()}"
        )
        timestamps = messages.timestamps
        if kept is not None:
            timestamps = [timestamps[index] for index in kept]
        if self._may_end:
            for index, value in enumerate(values):
                if self._schema.is_end_of_stream(value):
                    return values[:index], timestamps[:index], True
        return values, timestamps, False
