"""The builders of Kafka sources and sinks, which check their settings before the job runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from typing import Any, Generic, Self, cast

from penstock.base.arguments import check_arguments
from penstock.base.type_variables import IN, R, T
from penstock.common.serialization import DeserializationSchema, SerializationSchema
from penstock.connectors.kafka.kafka_client import RETRIES
from penstock.connectors.kafka.kafka_sink import (
    MARKER_TOPIC,
    Headers,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaTopicSelector,
    Partitioner,
)
from penstock.connectors.kafka.kafka_source import (
    FunctionDeserializer,
    KafkaRecord,
    KafkaRecordDeserializationSchema,
    KafkaSource,
)
from penstock.connectors.kafka.offsets import KafkaOffsetsInitializer, KafkaTopicPartition
from penstock.connectors.retrying import Retries
from penstock.connectors.source_api import Boundedness, DeliveryGuarantee

TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
LONGEST_PREFIX = 200


@check_arguments
class _ClientBuilder:
    """The settings that sources and sinks share: those for the connection to Kafka."""

    def __init__(self) -> None:
        self._properties: dict[str, str] = {}
        self._retries = RETRIES

    def set_bootstrap_servers(self, bootstrap_servers: str) -> Self:
        """Set the addresses of servers, as `host:port`, separated by commas."""
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_property(self, key: str, value: str) -> Self:
        """Set a property of the consumer or producer, under its name in Java or in librdkafka."""
        self._properties[_name(key)] = value
        return self

    def set_retries(self, retries: Retries) -> Self:
        """Set the number of attempts, and the pauses between them, while no server answers."""
        self._retries = _retries(retries)
        return self


@check_arguments
class KafkaSourceBuilder(_ClientBuilder, Generic[T]):
    """Builds a KafkaSource."""

    def __init__(self) -> None:
        super().__init__()
        self._what: dict[str, Any] = {}
        self._starting = KafkaOffsetsInitializer.earliest()
        self._stopping: KafkaOffsetsInitializer | None = None
        self._boundedness = Boundedness.CONTINUOUS_UNBOUNDED
        self._deserializer: DeserializationSchema | KafkaRecordDeserializationSchema | None = None

    # --- what to read ---
    def set_topics(self, *topics: str) -> Self:
        """Read all partitions of these topics."""
        if not topics:
            raise ValueError("set_topics() needs at least one topic")
        return self._read("topics", tuple(_topic(topic) for topic in topics))

    def set_topic_pattern(self, topic_pattern: str) -> Self:
        """Read the topics whose whole name matches a regular expression, including topics that are created later."""
        try:
            re.compile(topic_pattern)
        except re.error as error:
            raise ValueError(f"the topic pattern {topic_pattern!r} is not a regular expression: {error}") from None
        return self._read("pattern", topic_pattern)

    def set_partitions(self, partitions: Set[KafkaTopicPartition]) -> Self:
        """Read exactly these partitions."""
        for partition in partitions:
            if not isinstance(partition, KafkaTopicPartition):
                raise TypeError(f"partitions are given as KafkaTopicPartition, not as {partition!r}")
        if not partitions:
            raise ValueError("set_partitions() needs at least one partition")
        return self._read("partitions", tuple(sorted(partitions)))

    def _read(self, how: str, what: Any) -> Self:
        if self._what and how not in self._what:
            raise ValueError("a KafkaSource reads topics, a pattern or partitions: only one of them can be set")
        self._what = {how: what}
        return self

    # --- from where to where ---
    def set_starting_offsets(self, starting_offsets_initializer: KafkaOffsetsInitializer) -> Self:
        """Set the offsets at which partitions start that exist at the start of the job: earliest() by default.

        Partitions that are added later are read from their beginning.
        """
        self._starting = _offsets(starting_offsets_initializer)
        return self

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> Self:
        """Stop before these offsets, and be a bounded source that does not look for new partitions."""
        self._stopping, self._boundedness = _offsets(stopping_offsets_initializer), Boundedness.BOUNDED
        return self

    def set_unbounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> Self:
        """Stop before these offsets, but be an unbounded source to the rest of the job."""
        self._stopping = _offsets(stopping_offsets_initializer)
        self._boundedness = Boundedness.CONTINUOUS_UNBOUNDED
        return self

    # --- how ---
    def set_value_only_deserializer(self, deserialization_schema: DeserializationSchema[R]) -> KafkaSourceBuilder[R]:
        """Decode values with a schema. Records without a value (tombstones) are skipped."""
        if not callable(getattr(deserialization_schema, "deserialize", None)):
            raise TypeError(f"a value-only deserializer is a DeserializationSchema, not {deserialization_schema!r}")
        self._deserializer = deserialization_schema
        return cast("KafkaSourceBuilder[R]", self)

    def set_deserializer(
        self, deserializer: KafkaRecordDeserializationSchema[R] | Callable[[KafkaRecord], R]
    ) -> KafkaSourceBuilder[R]:
        """Decode whole records: topic, partition, offset, key, value, headers and timestamp."""
        if isinstance(deserializer, KafkaRecordDeserializationSchema):
            self._deserializer = deserializer
        elif callable(deserializer):
            self._deserializer = FunctionDeserializer(deserializer)
        else:
            raise TypeError(
                f"a deserializer is a function or a KafkaRecordDeserializationSchema, not {deserializer!r}; "
                "a DeserializationSchema goes to set_value_only_deserializer()"
            )
        return cast("KafkaSourceBuilder[R]", self)

    def set_group_id(self, group_id: str) -> Self:
        """Set the group to which offsets are committed after each checkpoint, for monitoring."""
        return self.set_property("group.id", group_id)

    def set_client_id_prefix(self, prefix: str) -> Self:
        """Set the beginning of the names by which servers know the source's clients."""
        return self.set_property("client.id.prefix", prefix)

    def set_properties(self, props: Mapping[str, str]) -> Self:
        """Set several properties of the consumer, as `set_property` does."""
        for key, value in props.items():
            self.set_property(key, value)
        return self

    def build(self) -> KafkaSource[T]:
        """Return the source.

        Raises:
            ValueError: Servers, topics or a deserializer are missing, or committed offsets are used without a group.
        """
        if not self._properties.get("bootstrap.servers"):
            raise ValueError("a KafkaSource needs servers: call set_bootstrap_servers()")
        if not self._what:
            raise ValueError("a KafkaSource needs set_topics(), set_topic_pattern() or set_partitions()")
        if self._deserializer is None:
            raise ValueError("a KafkaSource needs set_value_only_deserializer() or set_deserializer()")
        for offsets in (self._starting, self._stopping):
            if offsets is not None and offsets.needs_group and not self._properties.get("group.id"):
                raise ValueError("committed offsets belong to a consumer group: call set_group_id()")
        return KafkaSource(
            dict(self._properties),
            self._deserializer,
            **self._what,
            starting=self._starting,
            stopping=self._stopping,
            boundedness=self._boundedness,
            retries=self._retries,
        )


@check_arguments
class KafkaRecordSerializationSchemaBuilder(Generic[IN]):
    """Builds a KafkaRecordSerializationSchema."""

    def __init__(self) -> None:
        self._topic: str | Callable[[Any], str] | None = None
        self._schemas: dict[str, Any] = {}

    def set_topic(self, topic: str) -> Self:
        """Write to one topic."""
        self._topic = _topic(topic)
        return self

    def set_topic_selector(self, topic_selector: Callable[[Any], str] | KafkaTopicSelector) -> Self:
        """Choose the topic of each value."""
        chosen = topic_selector.apply if isinstance(topic_selector, KafkaTopicSelector) else topic_selector
        if not callable(chosen):
            raise TypeError(f"a topic selector is a function or a KafkaTopicSelector, not {topic_selector!r}")
        self._topic = chosen
        return self

    def set_key_serialization_schema(self, key_serialization_schema: SerializationSchema) -> Self:
        """Make a key of each value; records with equal keys go to the same partition."""
        return self._set("key_schema", _serializes(key_serialization_schema))

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema[T]
    ) -> KafkaRecordSerializationSchemaBuilder[T]:
        """Set the schema that makes the record's value."""
        self._set("value_schema", _serializes(value_serialization_schema))
        return cast("KafkaRecordSerializationSchemaBuilder[T]", self)

    def set_partitioner(self, partitioner: Partitioner) -> Self:
        """Choose the partition: a function of key bytes, value, topic and the list of partitions."""
        return self._set("partitioner", _function(partitioner, "partitioner"))

    def set_header_provider(self, header_provider: Callable[[Any], Headers]) -> Self:
        """Give each record headers: a list of names and bytes, or a dict."""
        return self._set("header_provider", _function(header_provider, "header provider"))

    def set_timestamp(self, timestamp: Callable[[Any, int | None], int | None] | None) -> Self:
        """Give each record a timestamp: a function of the value and its event time.

        Unless set, the event time is written. None, as an argument or from the function, leaves the time to Kafka.
        """
        self._set("writes_timestamps", timestamp is not None)
        return self._set("timestamp", None if timestamp is None else _function(timestamp, "timestamp"))

    def _set(self, name: str, value: Any) -> Self:
        self._schemas[name] = value
        return self

    def build(self) -> KafkaRecordSerializationSchema[IN]:
        """Return the schema; raise ValueError if the topic or the schema for values is missing."""
        if self._topic is None:
            raise ValueError("records need a topic: call set_topic() or set_topic_selector()")
        if "value_schema" not in self._schemas:
            raise ValueError("records need a value: call set_value_serialization_schema()")
        return KafkaRecordSerializationSchema(self._topic, **self._schemas)


@check_arguments
class KafkaSinkBuilder(_ClientBuilder, Generic[IN]):
    """Builds a KafkaSink."""

    def __init__(self) -> None:
        super().__init__()
        self._guarantee = DeliveryGuarantee.AT_LEAST_ONCE
        self._prefix: str | None = None
        self._serializer: KafkaRecordSerializationSchema[Any] | None = None
        self._marker_topic = MARKER_TOPIC

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> Self:
        """Set the delivery guarantee: AT_LEAST_ONCE by default."""
        if not isinstance(delivery_guarantee, DeliveryGuarantee):
            raise TypeError(f"the guarantee must be a DeliveryGuarantee, but is {delivery_guarantee!r}")
        self._guarantee = delivery_guarantee
        return self

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> Self:
        """Set the first part of this sink's transactional ids, for EXACTLY_ONCE.

        No other job may use the same prefix.
        """
        if not isinstance(transactional_id_prefix, str) or not 0 < len(transactional_id_prefix) <= LONGEST_PREFIX:
            raise ValueError(
                f"the prefix of transactional ids has 1 to {LONGEST_PREFIX} characters, not {transactional_id_prefix!r}"
            )
        self._prefix = transactional_id_prefix
        return self

    def set_record_serializer(self, record_serializer: KafkaRecordSerializationSchema[T]) -> KafkaSinkBuilder[T]:
        """Set the conversion of values into records."""
        if not isinstance(record_serializer, KafkaRecordSerializationSchema):
            raise TypeError(f"the serializer must be a KafkaRecordSerializationSchema, but is {record_serializer!r}")
        self._serializer = record_serializer
        return cast("KafkaSinkBuilder[T]", self)

    def set_marker_topic(self, topic: str) -> Self:
        """Set the topic that records the commits, for EXACTLY_ONCE. It is created if it is missing."""
        self._marker_topic = _topic(topic)
        return self

    def build(self) -> KafkaSink[IN]:
        """Return the sink.

        Raises:
            ValueError: Servers or the serializer are missing, or EXACTLY_ONCE has no prefix of transactional ids.
        """
        if not self._properties.get("bootstrap.servers"):
            raise ValueError("a KafkaSink needs servers: call set_bootstrap_servers()")
        if self._serializer is None:
            raise ValueError("a KafkaSink needs set_record_serializer()")
        if self._guarantee is DeliveryGuarantee.EXACTLY_ONCE and self._prefix is None:
            raise ValueError("EXACTLY_ONCE needs set_transactional_id_prefix(), with a prefix that no other job uses")
        return KafkaSink(
            dict(self._properties), self._serializer, self._guarantee, self._prefix, self._marker_topic, self._retries
        )


# --- checks ---
def _topic(name: Any) -> str:
    if not isinstance(name, str) or not TOPIC_NAME.fullmatch(name) or name in (".", ".."):
        raise ValueError(f"{name!r} cannot be a topic: names have up to 249 letters, digits, dots, dashes, underscores")
    return name


def _name(key: Any) -> str:
    if not isinstance(key, str) or not key:
        raise TypeError(f"the name of a property is a string, not {key!r}")
    return key


def _offsets(given: Any) -> KafkaOffsetsInitializer:
    if not isinstance(given, KafkaOffsetsInitializer):
        raise TypeError(f"offsets are given as KafkaOffsetsInitializer, not as {given!r}")
    return given


def _retries(given: Any) -> Retries:
    if not isinstance(given, Retries):
        raise TypeError(f"retries are given as Retries, not as {given!r}")
    return given


def _serializes(schema: Any) -> SerializationSchema:
    if not callable(getattr(schema, "serialize", None)):
        raise TypeError(f"a schema for keys or values is a SerializationSchema, not {schema!r}")
    serializer: SerializationSchema = schema
    return serializer


def _function(given: Any, what: str) -> Any:
    if not callable(given):
        raise TypeError(f"a {what} is a function, not {given!r}")
    return given
