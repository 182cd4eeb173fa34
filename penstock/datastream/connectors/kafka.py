"""Kafka as source and sink.

Guarantee: with checkpoints each record counts once in the job's state. The sink delivers at least once, or exactly once
to readers with `isolation.level=read_committed`, or makes no promise.
"""

from __future__ import annotations

from penstock.connectors.kafka.builders import (
    KafkaRecordSerializationSchemaBuilder,
    KafkaSinkBuilder,
    KafkaSourceBuilder,
)
from penstock.connectors.kafka.kafka_sink import KafkaRecordSerializationSchema, KafkaSink, KafkaTopicSelector
from penstock.connectors.kafka.kafka_source import KafkaRecord, KafkaRecordDeserializationSchema, KafkaSource
from penstock.connectors.kafka.legacy import FlinkKafkaConsumer, FlinkKafkaProducer, Semantic
from penstock.connectors.kafka.legacy_schemas import (
    FlinkFixedPartitioner,
    FlinkKafkaPartitioner,
    KeyedDeserializationSchema,
    KeyedSerializationSchema,
)
from penstock.connectors.kafka.offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer, KafkaTopicPartition
from penstock.connectors.source_api import DeliveryGuarantee

__all__ = [
    "DeliveryGuarantee",
    "FlinkFixedPartitioner",
    "FlinkKafkaConsumer",
    "FlinkKafkaPartitioner",
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
    "KeyedDeserializationSchema",
    "KeyedSerializationSchema",
    "Semantic",
]
