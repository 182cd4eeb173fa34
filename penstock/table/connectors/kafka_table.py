"""The connectors 'kafka' and 'upsert-kafka'."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.common.serialization import SerializationSchema
from penstock.common.types import Row, RowKind
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.connectors.kafka.kafka_sink import KafkaRecordSerializationSchema, KafkaSink
from penstock.connectors.kafka.kafka_source import KafkaRecordDeserializationSchema, KafkaSource
from penstock.connectors.kafka.offsets import KafkaOffsetsInitializer, KafkaTopicPartition
from penstock.connectors.source_api import DeliveryGuarantee
from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.errors import ValidationException
from penstock.table.connectors.contract import Connector, Declared, Options
from penstock.table.connectors.kafka_records import (
    EachRow,
    Part,
    Reading,
    Written,
    metadata_writers,
    rows_of_record,
)
from penstock.table.connectors.message_formats import Prefixed, decoder, encoder, is_changelog
from penstock.table.logical.nodes import Columns

GUARANTEES = ("at-least-once", "exactly-once", "none")
STARTS = ("earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets")
ENDS = ("unbounded", "latest-offset", "group-offsets", "timestamp", "specific-offsets")


class Kafka(Connector):
    """Topics as streams of inserts, or of changes if the format describes changes."""

    name = "kafka"
    upserts = False
    writes_metadata = True

    def changes(self, options: Mapping[str, str]) -> tuple[bool, bool]:
        return is_changelog(options.get("value.format") or options.get("format")), False

    def source(self, env: StreamExecutionEnvironment, table: Declared) -> DataStream:
        options = table.options
        builder = KafkaSource.builder().set_bootstrap_servers(options.require("properties.bootstrap.servers"))
        builder = self._topics(builder, options)
        builder.set_properties(_properties(options))
        group = options.text("properties.group.id")
        if group:
            builder.set_group_id(group)
        self._offsets(builder, options)
        builder.set_deserializer(self._reading(table))
        _allow_options(options)
        options.refuse_unknown()
        stream = env.from_source(builder.build(), WatermarkStrategy.no_watermarks(), f"kafka {table.name}")
        return stream.apply_operator("Flat Map", EachRow(rows_of_record), None)

    @staticmethod
    def _topics(builder: Any, options: Options) -> Any:
        topic, pattern = options.text("topic"), options.text("topic-pattern")
        if (topic is None) is (pattern is None):
            raise ValidationException(f"table {options.table}: give either 'topic' or 'topic-pattern'")
        return builder.set_topic_pattern(pattern) if topic is None else builder.set_topics(*topic.split(";"))

    def _offsets(self, builder: Any, options: Options) -> None:
        start = options.choice("scan.startup.mode", STARTS, "group-offsets")
        end = options.choice("scan.bounded.mode", ENDS, "unbounded")
        builder.set_starting_offsets(_offset(options, "scan.startup", start))
        if end != "unbounded":
            builder.set_bounded(_offset(options, "scan.bounded", end))

    def _reading(self, table: Declared) -> KafkaRecordDeserializationSchema:
        options, key_columns, value_columns = table.options, key_of(table), values_of(table)
        key_format, value_format = formats(options)
        key = (
            decoder(Prefixed(options, "key."), key_format, in_key(table))
            if key_format is not None and key_columns
            else None
        )
        own = Prefixed(options, "value.") if options.text("value.format") else options
        return Reading(
            table, Part(key, key_columns), Part(decoder(own, value_format, value_columns), value_columns), self.upserts
        )

    def takes_changes(self, table: Declared) -> bool:
        return is_changelog(formats(table.options)[1])

    def sink(self, stream: DataStream, table: Declared, changelog: bool) -> None:
        options = table.options
        topic = options.require("topic")
        if ";" in topic:
            raise ValidationException(f"table {table.name}: rows can be written to one topic only, not to {topic}")
        schema = KafkaRecordSerializationSchema(topic, *self._writing(table), **metadata_writers(table))
        builder = KafkaSink.builder().set_bootstrap_servers(options.require("properties.bootstrap.servers"))
        for name, value in _properties(options).items():
            builder.set_property(name, value)
        guarantee = options.choice(
            "sink.delivery-guarantee", ("at-least-once", "exactly-once", "none"), "at-least-once"
        )
        builder.set_delivery_guarantee(DeliveryGuarantee[guarantee.replace("-", "_").upper()])
        prefix = options.text("sink.transactional-id-prefix")
        if prefix:
            builder.set_transactional_id_prefix(prefix)
        elif guarantee == "exactly-once":
            raise ValidationException(f"table {table.name}: exactly-once needs 'sink.transactional-id-prefix'")
        builder.set_record_serializer(schema)
        _allow_options(options)
        options.refuse_unknown()
        stream.sink_to(builder.build()).name(f"kafka {table.name}")

    def _writing(self, table: Declared) -> tuple[SerializationSchema, SerializationSchema | None]:
        """Return the schemas that write values and keys."""
        options, key_columns, value_columns = table.options, key_of(table), values_of(table)
        key_format, value_format = formats(options)
        own = Prefixed(options, "value.") if options.text("value.format") else options
        value = Written(encoder(own, value_format, value_columns), value_columns, value_columns, self.upserts)
        if key_format is None or not key_columns:
            return value, None
        named = in_key(table)
        write = encoder(Prefixed(options, "key."), key_format, named)
        return value, Written(write, key_columns, named, False)


class UpsertKafka(Kafka):
    """A compacted topic. The last record of a key is its row; a record without a value deletes it."""

    name = "upsert-kafka"
    upserts = True

    def changes(self, options: Mapping[str, str]) -> tuple[bool, bool]:
        return True, True

    def takes_changes(self, table: Declared) -> bool:
        return True

    def _offsets(self, builder: Any, options: Options) -> None:
        builder.set_starting_offsets(KafkaOffsetsInitializer.earliest())
        end = options.choice("scan.bounded.mode", ENDS, "unbounded")
        if end != "unbounded":
            builder.set_bounded(_offset(options, "scan.bounded", end))

    def source(self, env: StreamExecutionEnvironment, table: Declared) -> DataStream:
        self._check(table)
        return super().source(env, table)

    def is_upsert_sink(self, table: Declared, changelog: bool) -> bool:
        return bool(table.key)

    def sink(self, stream: DataStream, table: Declared, changelog: bool) -> None:
        self._check(table)
        # A savepoint finds the sink behind a filter.
        super().sink(stream.filter(_is_kept) if changelog else stream, table, changelog)

    @staticmethod
    def _check(table: Declared) -> None:
        if not table.key:
            raise ValidationException(f"table {table.name}: upsert-kafka needs a PRIMARY KEY ... NOT ENFORCED")
        table.options.require("key.format")
        table.options.require("value.format")


def _is_kept(row: Row) -> bool:
    return row.get_row_kind() is not RowKind.UPDATE_BEFORE


# --- columns of key and value ---
def formats(options: Options) -> tuple[str | None, str]:
    """Return the formats of the key and the value."""
    value = options.text("value.format") or options.text("format")
    if value is None:
        raise ValidationException(f"table {options.table}: the option 'format' is missing")
    return options.text("key.format"), value


def key_of(table: Declared) -> Columns:
    """Return the columns in the key of a record."""
    named = table.options.text("key.fields")
    if named:
        names = named.split(";")
        known = {column.name: column for column in table.physical()}
        missing = [name for name in names if name not in known]
        if missing:
            raise ValidationException(
                f"table {table.name}: 'key.fields' names {', '.join(missing)}, which is not a column"
            )
        return tuple(known[name] for name in names)
    if table.options.text("key.format"):
        return tuple(table.columns[index] for index in table.key)
    return ()


def in_key(table: Declared) -> Columns:
    """Return the columns of the key under their names in it, without the prefix that distinguishes them."""
    prefix, columns = table.options.text("key.fields-prefix"), key_of(table)
    if not prefix:
        return columns
    if _includes(table) != "except_key":
        raise ValidationException(
            f"table {table.name}: 'key.fields-prefix' needs 'value.fields-include' = 'EXCEPT_KEY', since fields of the "
            "value have no prefix"
        )
    bare = [column.name for column in columns if not column.name.startswith(prefix)]
    if bare:
        raise ValidationException(
            f"table {table.name}: all columns of the key must begin with the prefix '{prefix}'; these do not: "
            f"{', '.join(bare)}"
        )
    return tuple(replace(column, name=column.name.removeprefix(prefix)) for column in columns)


def _includes(table: Declared) -> str:
    return table.options.choice("value.fields-include", ("all", "except_key"), "all")


def values_of(table: Declared) -> Columns:
    """Return the columns in the value of a record."""
    include = _includes(table)
    hidden = {column.name for column in key_of(table)} if include == "except_key" else set()
    return tuple(column for column in table.physical() if column.name not in hidden)


def _properties(options: Options) -> dict[str, str]:
    own = {"bootstrap.servers", "group.id"}
    return {name: value for name, value in options.below("properties.").items() if name not in own}


def _allow_options(options: Options) -> None:
    for name in (
        "sink.parallelism",
        "sink.partitioner",
        "sink.buffer-flush.max-rows",
        "sink.buffer-flush.interval",
        "scan.topic-partition-discovery.interval",
        "scan.startup.mode",
        "scan.bounded.mode",
        "properties.group.id",
        "sink.delivery-guarantee",
        "sink.transactional-id-prefix",
    ):
        options.text(name)
    options.text("key.fields-prefix")
    for kind in ("scan.startup", "scan.bounded"):
        options.text(f"{kind}.timestamp-millis")
        options.text(f"{kind}.specific-offsets")


def _offset(options: Options, prefix: str, mode: str) -> KafkaOffsetsInitializer:
    if mode == "earliest-offset":
        return KafkaOffsetsInitializer.earliest()
    if mode == "latest-offset":
        return KafkaOffsetsInitializer.latest()
    if mode == "group-offsets":
        return KafkaOffsetsInitializer.committed_offsets()
    if mode == "timestamp":
        millis = options.whole(f"{prefix}.timestamp-millis")
        if millis is None:
            raise ValidationException(f"table {options.table}: the option '{prefix}.timestamp-millis' is missing")
        return KafkaOffsetsInitializer.timestamp(millis)
    text, topic = options.require(f"{prefix}.specific-offsets"), options.require("topic")
    found = {}
    for part in text.split(";"):
        pairs = dict(pair.split(":") for pair in part.split(","))
        found[KafkaTopicPartition(topic, int(pairs["partition"]))] = int(pairs["offset"])
    return KafkaOffsetsInitializer.offsets(found)
