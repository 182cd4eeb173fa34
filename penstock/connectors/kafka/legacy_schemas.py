"""Arguments of FlinkKafkaConsumer and FlinkKafkaProducer: partitioners, keyed schemas, specific offsets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.common.serialization import SerializationSchema
from penstock.connectors.kafka.kafka_source import KafkaRecord, KafkaRecordDeserializationSchema
from penstock.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
    OffsetFinder,
)


class FlinkKafkaPartitioner(ABC):
    """Chooses the partition of each record that a FlinkKafkaProducer writes."""

    def open(self, parallel_instance_id: int, parallel_instances: int) -> None:  # noqa: B027 - most need nothing
        """Learn the index of this subtask and the number of subtasks. Called once, before the first record."""

    @abstractmethod
    def partition(
        self, record: Any, key: bytes | None, value: bytes | None, target_topic: str, partitions: list[int]
    ) -> int:
        """Return one of the partitions. `value` is None, because the partition is chosen before serialisation."""


class FlinkFixedPartitioner(FlinkKafkaPartitioner):
    """Gives each subtask one partition. If there are more partitions than subtasks, some partitions stay empty."""

    _subtask = 0

    def open(self, parallel_instance_id: int, parallel_instances: int) -> None:
        self._subtask = parallel_instance_id

    def partition(
        self, record: Any, key: bytes | None, value: bytes | None, target_topic: str, partitions: list[int]
    ) -> int:
        return partitions[self._subtask % len(partitions)]


@dataclass(frozen=True)
class OpenPartitioner:
    """A partitioner of one subtask, in the form that a record serializer needs."""

    partitioner: FlinkKafkaPartitioner

    def __call__(self, key: bytes | None, value: Any, topic: str, partitions: list[int]) -> int:
        return self.partitioner.partition(value, key, None, topic, partitions)


class KeyedSerializationSchema(ABC):
    """Makes the key and the value of a record, and may choose its topic."""

    @abstractmethod
    def serialize_key(self, element: Any) -> bytes | None:
        """Return the key; None for a record without a key."""

    @abstractmethod
    def serialize_value(self, element: Any) -> bytes | None:
        """Return the value."""

    def get_target_topic(self, element: Any) -> str | None:
        """Return the topic of this record; None for the producer's topic."""
        return None


@dataclass(frozen=True)
class KeyOf(SerializationSchema):
    """The keys of a keyed schema."""

    schema: KeyedSerializationSchema

    def serialize(self, element: Any) -> bytes | None:  # type: ignore[override]
        return self.schema.serialize_key(element)


@dataclass(frozen=True)
class ValueOf(SerializationSchema):
    """A schema for the values of a keyed schema."""

    schema: KeyedSerializationSchema

    def serialize(self, element: Any) -> bytes | None:  # type: ignore[override]
        return self.schema.serialize_value(element)


@dataclass(frozen=True)
class TopicOf:
    """The topic that a keyed schema chooses, or the producer's."""

    schema: KeyedSerializationSchema
    default: str

    def __call__(self, element: Any) -> str:
        return self.schema.get_target_topic(element) or self.default


class KeyedDeserializationSchema(ABC):
    """Turns the key, value and position of a record into an element, or into None for no element."""

    @abstractmethod
    def deserialize(
        self, message_key: bytes | None, message: bytes | None, topic: str, partition: int, offset: int
    ) -> Any:
        """Return the element."""


@dataclass(frozen=True)
class KeyedRecords(KafkaRecordDeserializationSchema):
    """A keyed schema in the form that a KafkaSource takes."""

    schema: KeyedDeserializationSchema

    def deserialize(self, record: KafkaRecord) -> Any:
        return self.schema.deserialize(record.key, record.value, record.topic, record.partition, record.offset)


@dataclass(frozen=True)
class SpecificOffsets(KafkaOffsetsInitializer):
    """Given offsets. Other partitions start at the offsets of the group."""

    given: Mapping[KafkaTopicPartition, int]
    otherwise: KafkaOffsetsInitializer
    reset: KafkaOffsetResetStrategy

    @property
    def needs_group(self) -> bool:  # type: ignore[override]
        return self.otherwise.needs_group

    def find(self, partitions: Sequence[KafkaTopicPartition], finder: OffsetFinder) -> dict[KafkaTopicPartition, int]:
        known = {where: self.given[where] for where in partitions if where in self.given}
        missing = [where for where in partitions if where not in known]
        return known | self.otherwise.find(missing, finder) if missing else known
