"""Penstock: Kafka to keyed count to Kafka, in PyFlink's words, on a local Spark of two slots."""

import os

import kafka_jobs as k
from workloads import PARALLELISM

from penstock.common import SimpleStringSchema, Types, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from penstock.datastream.functions import KeyedProcessFunction
from penstock.datastream.state import ValueStateDescriptor


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield k.result(ctx.get_current_key(), count)


class CountAndPassOn(Count):
    """For latencies: what comes out is what came in."""

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield value


def source(settings):
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(settings["servers"])
        .set_topics(settings["source"])
        .set_group_id(settings["target"])
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_property("isolation.level", "read_committed")
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )


def sink(settings):
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(settings["target"])
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    builder = KafkaSink.builder().set_bootstrap_servers(settings["servers"]).set_record_serializer(serializer)
    if settings.get("latency"):
        builder.set_property("linger.ms", "1")
    if settings["guarantee"] == k.EXACTLY_ONCE:
        builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix(settings["target"])
    else:
        builder.set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
    return builder.build()


def main():
    settings = k.settings()
    env = StreamExecutionEnvironment.create_local_environment(PARALLELISM)
    env.enable_checkpointing(settings["interval_millis"])
    env.get_checkpoint_config().set_checkpoint_storage_dir(os.getcwd())
    numbers = env.from_source(source(settings), WatermarkStrategy.no_watermarks(), "numbers")
    count = CountAndPassOn() if settings.get("latency") else Count()
    if settings.get("latency"):
        env.set_buffer_timeout(0)
    counts = numbers.key_by(k.key_of, key_type=Types.STRING()).process(count, output_type=Types.STRING())
    counts.sink_to(sink(settings))
    env.execute("Kafka to Kafka")


if __name__ == "__main__":
    main()
