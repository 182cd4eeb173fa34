"""Kafka as source and sink.

Guarantee: with checkpoints each record counts once in the job's state. The sink delivers at least once, or exactly once
to readers with `isolation.level=read_committed`, or makes no promise.
"""

from __future__ import annotations

from penstock.datastream.connectors._kafka_builders import (
    KafkaRecordSerializationSchemaBuilder,
    KafkaSinkBuilder,
    KafkaSourceBuilder,
)
from penstock.datastream.connectors._kafka_legacy import FlinkKafkaConsumer, FlinkKafkaProducer, Semantic
from penstock.datastream.connectors._kafka_offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
)
from penstock.datastream.connectors._kafka_sink import (
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaTopicSelector,
)
from penstock.datastream.connectors._kafka_source import (
    KafkaRecord,
    KafkaRecordDeserializationSchema,
    KafkaSource,
)
from penstock.datastream.connectors.base import DeliveryGuarantee

__all__ = [
    "DeliveryGuarantee",
    "FlinkKafkaConsumer",
    "FlinkKafkaProducer",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaRecord",
    "KafkaRecordDeserializationSchema",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
    "KafkaTopicSelector",
    "Semantic",
]
