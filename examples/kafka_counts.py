"""Counts page views a minute from one Kafka topic into another, exactly once."""

import sys
from collections.abc import Iterable, Iterator

from penstock.common import Duration, SimpleStringSchema, Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from penstock.datastream.functions import ProcessWindowFunction
from penstock.datastream.window import TimeWindow, TumblingEventTimeWindows

VIEWS = [("home", 5), ("shop", 10), ("home", 42), ("home", 61), ("shop", 65), ("shop", 99), ("home", 130)]


class SecondsAsMillis(TimestampAssigner):
    def extract_timestamp(self, value: tuple[str, int], record_timestamp: int) -> int:
        return value[1] * 1000


class Count(ProcessWindowFunction[str, str, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[str]
    ) -> Iterator[str]:
        yield f"minute {context.window().start // 60_000}: {key} {len(list(elements))}"


def source(servers: str, topic: str) -> KafkaSource:
    """What is in a topic now."""
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics(topic)
        .set_group_id("page-views")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )


def sink(servers: str, topic: str) -> KafkaSink:
    """Each record once, for those who read committed ones."""
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic)
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    return (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(serializer)
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(f"to-{topic}")
        .build()
    )


def write_views(servers: str) -> None:
    """Page views, with the time of each as the time of its record."""
    env = StreamExecutionEnvironment.get_execution_environment()
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondsAsMillis())
    views = env.from_collection(VIEWS).assign_timestamps_and_watermarks(times)
    views.map(lambda view: view[0], Types.STRING()).sink_to(sink(servers, "page-views"))
    env.execute("write page views")


def count_views(servers: str) -> None:
    """The times of the records are event times; each partition has a watermark of its own."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.enable_checkpointing(1000)
    times = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(60))
    views = env.from_source(source(servers, "page-views"), times, "page views")
    counts = (
        views.key_by(lambda page: page, Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.minutes(1)))
        .process(Count(), Types.STRING())
    )
    counts.sink_to(sink(servers, "views-per-minute"))
    env.execute("count page views")


def print_counts(servers: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    counts = env.from_source(source(servers, "views-per-minute"), WatermarkStrategy.no_watermarks(), "counts")
    with counts.execute_and_collect("print counts") as results:
        for line in sorted(results):
            print(line)


def main(servers: str) -> None:
    write_views(servers)
    count_views(servers)
    print_counts(servers)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: kafka_counts.py SERVERS, where there are the topics page-views and views-per-minute")
    main(sys.argv[1])
