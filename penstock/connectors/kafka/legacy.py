"""The classes before KafkaSource and KafkaSink, for programs that still use them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Any

from penstock.base.arguments import check_arguments
from penstock.common.serialization import DeserializationSchema, SerializationSchema
from penstock.common.typeinfo import TypeInformation
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.connectors.kafka.builders import KafkaSinkBuilder, KafkaSourceBuilder
from penstock.connectors.kafka.kafka_sink import KafkaRecordSerializationSchema, KafkaSink
from penstock.connectors.kafka.kafka_source import KafkaSource
from penstock.connectors.kafka.legacy_schemas import (
    FlinkFixedPartitioner,
    FlinkKafkaPartitioner,
    KeyedDeserializationSchema,
    KeyedRecords,
    KeyedSerializationSchema,
    KeyOf,
    OpenPartitioner,
    SpecificOffsets,
    TopicOf,
    ValueOf,
)
from penstock.connectors.kafka.offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer, KafkaTopicPartition
from penstock.connectors.source_api import (
    Boundedness,
    Committer,
    DeliveryGuarantee,
    ReaderContext,
    Sink,
    SinkWriter,
    Source,
    SourceReader,
    SplitEnumerator,
    WriterContext,
)


@check_arguments
class FlinkKafkaConsumer(Source):
    """Reads topics, by default from the offsets of the group. New programs use KafkaSource."""

    def __init__(
        self,
        topics: str | list[str] | re.Pattern[str],
        deserialization_schema: DeserializationSchema | KeyedDeserializationSchema,
        properties: Mapping[str, str],
    ) -> None:
        """Read one topic, several topics, or all topics whose name matches a compiled regular expression."""
        warnings.warn("FlinkKafkaConsumer is deprecated; use KafkaSource", DeprecationWarning, stacklevel=3)
        builder = KafkaSourceBuilder().set_properties(properties)
        if isinstance(topics, re.Pattern):
            builder.set_topic_pattern(f"(?i){topics.pattern}" if topics.flags & re.IGNORECASE else topics.pattern)
        else:
            builder.set_topics(*([topics] if isinstance(topics, str) else topics))
        if isinstance(deserialization_schema, KeyedDeserializationSchema):
            builder.set_deserializer(KeyedRecords(deserialization_schema))
        else:
            builder.set_value_only_deserializer(deserialization_schema)
        self._source = builder.build()
        self.set_start_from_group_offsets()

    def set_start_from_group_offsets(self) -> FlinkKafkaConsumer:
        """Start at the offsets of the group.

        Without them, start where `auto.offset.reset` says, which is latest by default.
        """
        return self._start(self._group_offsets())

    def _group_offsets(self) -> KafkaOffsetsInitializer:
        reset = _reset(self._source.properties.get("auto.offset.reset", "latest"))
        if self._source.group is not None:
            return KafkaOffsetsInitializer.committed_offsets(reset)
        earliest = reset is KafkaOffsetResetStrategy.EARLIEST
        return KafkaOffsetsInitializer.earliest() if earliest else KafkaOffsetsInitializer.latest()

    def set_start_from_specific_offsets(
        self, specific_startup_offsets: Mapping[KafkaTopicPartition, int]
    ) -> FlinkKafkaConsumer:
        """Start at these offsets; in other partitions, at the offsets of the group."""
        checked = KafkaOffsetsInitializer.offsets(specific_startup_offsets)
        otherwise = self._group_offsets()
        return self._start(SpecificOffsets(checked.given, otherwise, otherwise.reset))  # type: ignore[attr-defined]

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> FlinkKafkaConsumer:
        """Give each partition its own event time, with a WatermarkStrategy or with an assigner of Flink 1.x."""
        self.watermark_strategy = watermark_strategy
        return self

    def set_start_from_earliest(self) -> FlinkKafkaConsumer:
        """Start at the first record that is still in each partition."""
        return self._start(KafkaOffsetsInitializer.earliest())

    def set_start_from_latest(self) -> FlinkKafkaConsumer:
        """Start at the end of each partition, as it is when the job starts."""
        return self._start(KafkaOffsetsInitializer.latest())

    def set_start_from_timestamp(self, startup_offsets_timestamp: int) -> FlinkKafkaConsumer:
        """Start at the first record with at least this timestamp, in epoch milliseconds; without one, at the end."""
        return self._start(KafkaOffsetsInitializer.timestamp(startup_offsets_timestamp))

    def _start(self, starting: KafkaOffsetsInitializer) -> FlinkKafkaConsumer:
        self._source = replace(self._source, starting=starting)
        return self

    def set_commit_offsets_on_checkpoints(self, commit_on_checkpoints: bool) -> FlinkKafkaConsumer:
        """Choose whether offsets are committed to the group after each checkpoint: True by default."""
        changed = {"commit.offsets.on.checkpoint": str(bool(commit_on_checkpoints)).lower()}
        self._source = replace(self._source, properties={**self._source.properties, **changed})
        return self

    def disable_filter_restored_partitions_with_subscribed_topics(self) -> FlinkKafkaConsumer:
        """Do nothing: restored partitions are always read on."""
        return self

    # --- a Source ---
    def get_boundedness(self) -> Boundedness:
        return self._source.get_boundedness()

    def create_enumerator(self) -> SplitEnumerator:
        return self._source.create_enumerator()

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return self._source.create_reader(context)

    def owner(self, split: Any, turn: int, parallelism: int) -> int:
        return self._source.owner(split, turn, parallelism)

    def get_produced_type(self) -> TypeInformation | None:
        return self._source.get_produced_type()

    @property
    def source(self) -> KafkaSource:
        """The KafkaSource that does the same."""
        return self._source


def _reset(name: str) -> KafkaOffsetResetStrategy:
    known = {"earliest": "EARLIEST", "smallest": "EARLIEST", "latest": "LATEST", "largest": "LATEST", "none": "NONE"}
    if name not in known:
        raise ValueError(f"auto.offset.reset must be earliest, latest or none, but is {name!r}")
    return KafkaOffsetResetStrategy[known[name]]


class Semantic(Enum):
    """The delivery guarantee of a FlinkKafkaProducer."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


@check_arguments
class FlinkKafkaProducer(Sink):
    """Writes to one topic. New programs use KafkaSink."""

    def __init__(
        self,
        topic: str,
        serialization_schema: SerializationSchema | KeyedSerializationSchema | str,
        producer_config: Mapping[str, str] | SerializationSchema | KeyedSerializationSchema,
        kafka_producer_pool_size: int | FlinkKafkaPartitioner | Semantic | None = 5,
        semantic: Semantic = Semantic.AT_LEAST_ONCE,
    ) -> None:
        """Take (topic, schema, properties) or, as in Java, (brokers, topic, schema).

        In the latter form each subtask writes to one partition. A partitioner or a semantic can be the fourth argument.
        `kafka_producer_pool_size` has no effect here, because a transaction is open only while it is committed.
        """
        warnings.warn("FlinkKafkaProducer is deprecated; use KafkaSink", DeprecationWarning, stacklevel=3)
        self._partitioner: FlinkKafkaPartitioner | None = None
        if isinstance(serialization_schema, str):
            brokers, topic, serialization_schema = topic, serialization_schema, producer_config  # type: ignore[assignment]
            producer_config, self._partitioner = {"bootstrap.servers": brokers}, FlinkFixedPartitioner()
        if not isinstance(producer_config, Mapping):
            raise TypeError(
                "the arguments of FlinkKafkaProducer are (topic, schema, properties); the properties "
                f"cannot be {producer_config!r}"
            )
        if isinstance(kafka_producer_pool_size, FlinkKafkaPartitioner):
            self._partitioner = kafka_producer_pool_size
        elif isinstance(kafka_producer_pool_size, Semantic):
            semantic = kafka_producer_pool_size
        if not isinstance(semantic, Semantic):
            raise TypeError(f"the semantic must be a Semantic, but is {semantic!r}")
        schema = KafkaRecordSerializationSchema.builder()
        if isinstance(serialization_schema, KeyedSerializationSchema):
            schema.set_topic_selector(TopicOf(serialization_schema, topic))
            schema.set_key_serialization_schema(KeyOf(serialization_schema))
            schema.set_value_serialization_schema(ValueOf(serialization_schema))
        else:
            schema.set_topic(topic).set_value_serialization_schema(serialization_schema)  # type: ignore[arg-type]
        schema.set_timestamp(None)
        builder = KafkaSinkBuilder().set_record_serializer(schema.build())
        for name, value in producer_config.items():
            builder.set_property(name, value)
        prefix = producer_config.get("transactional.id")
        self._sink = replace(builder.build(), guarantee=DeliveryGuarantee[semantic.name], prefix=prefix)

    def set_log_failures_only(self, log_failures_only: bool) -> FlinkKafkaProducer:
        """Log records that were not delivered instead of failing the job."""
        self._sink = replace(self._sink, logs_failures_only=bool(log_failures_only))
        return self

    def set_flush_on_checkpoint(self, flush_on_checkpoint: bool) -> FlinkKafkaProducer:
        """Choose whether checkpoints wait for the deliveries. If not, records may be lost."""
        if self._sink.guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
            kept = DeliveryGuarantee.AT_LEAST_ONCE if flush_on_checkpoint else DeliveryGuarantee.NONE
            self._sink = replace(self._sink, guarantee=kept)
        return self

    def set_write_timestamp_to_kafka(self, write_timestamp_to_kafka: bool) -> FlinkKafkaProducer:
        """Choose whether event times become the timestamps of records. By default Kafka sets the timestamps."""
        serializer = replace(self._sink.serializer, writes_timestamps=bool(write_timestamp_to_kafka))
        self._sink = replace(self._sink, serializer=serializer)
        return self

    def ignore_failures_after_transaction_timeout(self) -> FlinkKafkaProducer:
        """Do nothing: no transaction stays open between checkpoints, so none can time out."""
        return self

    # --- a Sink ---
    def create_writer(self, context: WriterContext, restored: list[Any]) -> SinkWriter:
        sink = self._sink
        if self._partitioner is not None:
            subtask, runtime = context.runtime.get_index_of_this_subtask(), context.runtime
            self._partitioner.open(subtask, runtime.get_number_of_parallel_subtasks())
            serializer = replace(sink.serializer, partitioner=OpenPartitioner(self._partitioner))
            sink = replace(sink, serializer=serializer)
        return sink.create_writer(context, restored)

    def create_committer(self) -> Committer | None:
        return self._sink.create_committer()

    @property
    def sink(self) -> KafkaSink:
        """The KafkaSink that does the same."""
        return self._sink
