"""PyFlink: Kafka to keyed count to Kafka with the Java connector, whose jar is in the setting `jar`.

The mode is `thread` or `process`, the latter with real worker processes (see pyflink_peer.py). Their cache of state has
room for all keys: with PyFlink's default of 1000 this mode is several times slower.
"""

import os
import sys

os.environ["_python_worker_execution_mode"] = "process"  # noqa: SIM112 (PyFlink's spelling)

import kafka_jobs as k
from pyflink.common import Configuration, SimpleStringSchema, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.base import DeliveryGuarantee
from pyflink.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from pyflink.datastream.functions import KeyedProcessFunction
from pyflink.datastream.state import ValueStateDescriptor
from workloads import PARALLELISM


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield k.result(ctx.get_current_key(), count)


def environment(settings):
    options = {
        "python.execution-mode": settings["mode"],
        "python.executable": sys.executable,
        "python.client.executable": sys.executable,
        "pipeline.jars": f"file://{settings['jar']}",
        "execution.checkpointing.interval": f"{settings['interval_millis']} ms",
        "execution.checkpointing.dir": f"file://{os.getcwd()}",
        "state.backend.type": "hashmap",
        "python.state.cache-size": str(2 * k.KEYS),
    }
    if settings.get("latency"):
        options["python.fn-execution.bundle.time"] = str(settings["bundle_millis"])
    configuration = Configuration()
    for name, value in options.items():
        configuration.set_string(name, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(PARALLELISM)
    return env


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
        builder.set_property("transaction.timeout.ms", str(k.FLINK_TRANSACTION_MILLIS))
    else:
        builder.set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
    return builder.build()


def main():
    settings = k.settings()
    env = environment(settings)
    numbers = env.from_source(source(settings), WatermarkStrategy.no_watermarks(), "numbers")
    count = CountAndPassOn() if settings.get("latency") else Count()
    if settings.get("latency"):
        env.set_buffer_timeout(0)
    counts = numbers.key_by(k.key_of, key_type=Types.STRING()).process(count, output_type=Types.STRING())
    counts.sink_to(sink(settings))
    env.execute("Kafka to Kafka")


if __name__ == "__main__":
    main()
