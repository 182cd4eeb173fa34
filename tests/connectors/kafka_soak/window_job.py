"""The job of the long run: a topic is counted and summed by key and window, exactly once, into another topic.

    python -m tests.connectors.kafka_soak.window_job FOLDER SERVERS

Checkpoints go below FOLDER. When there is a file FOLDER/enough the job is drained and stopped with a savepoint.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from penstock.common import Configuration, Duration, Row, Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import OutputTag, StreamExecutionEnvironment
from penstock.datastream.connectors.base import DeliveryGuarantee
from penstock.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from penstock.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from penstock.datastream.functions import AggregateFunction, ProcessWindowFunction
from penstock.datastream.window import TumblingEventTimeWindows

INPUT, OUTPUT, LATE, MARKERS = "readings", "windows", "late", "soak-commits"
GROUP = "soak"
WINDOW_SECONDS = 2
OUT_OF_ORDER_SECONDS = 5
IDLE_SECONDS = 100
"""Longer than the servers are ever away: partitions that nobody can read must not count as idle."""
FLUSH = ""
"""The key of records that only move event time on."""
READING = Types.ROW_NAMED(["key", "at", "number"], [Types.STRING(), Types.LONG(), Types.LONG()])
RESULT = Types.ROW_NAMED(["key", "start", "count", "sum"], [Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG()])


class At(TimestampAssigner):
    def extract_timestamp(self, value: Row, record_timestamp: int) -> int:
        return int(value[1])


class CountAndSum(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: Row, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + 1, accumulator[1] + value[2]

    def get_result(self, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator

    def merge(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return a[0] + b[0], a[1] + b[1]


class WithWindow(ProcessWindowFunction[tuple[int, int], Row, str, Any]):
    def process(self, key: str, context: Any, elements: Iterable[tuple[int, int]]) -> Iterator[Row]:
        for count, total in elements:
            yield Row(key, context.window().start, count, total)


def source(servers: str) -> KafkaSource:
    return (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics(INPUT)
        .set_group_id(GROUP)
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_property("partition.discovery.interval.ms", "1000")
        .set_property("isolation.level", "read_committed")
        .set_value_only_deserializer(JsonRowDeserializationSchema.builder().type_info(READING).build())
        .build()
    )


def sink(servers: str, topic: str, row_type: Any, guarantee: DeliveryGuarantee) -> KafkaSink:
    schema = JsonRowSerializationSchema.builder().with_type_info(row_type).build()
    serializer = KafkaRecordSerializationSchema.builder().set_topic(topic).set_value_serialization_schema(schema)
    return (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(serializer.build())
        .set_delivery_guarantee(guarantee)
        .set_transactional_id_prefix(f"soak-{topic}")
        .set_marker_topic(MARKERS)
        .build()
    )


def environment(folder: str) -> StreamExecutionEnvironment:
    configuration = Configuration()
    for name, value in {
        "spark.master": "local[2]",
        "execution.checkpointing.interval": "1 s",
        "execution.checkpointing.dir": f"file://{folder}/checkpoints",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "100",
        "restart-strategy.fixed-delay.delay": "500 ms",
    }.items():
        configuration.set_string(name, value)
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)


def build(env: StreamExecutionEnvironment, servers: str) -> None:
    times = (
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(OUT_OF_ORDER_SECONDS))
        .with_timestamp_assigner(At())
        .with_idleness(Duration.of_seconds(IDLE_SECONDS))
    )
    late = OutputTag("late", READING)
    readings = env.from_source(source(servers), times, "readings").uid("readings")
    windows = (
        readings.filter(lambda reading: reading[0] != FLUSH)
        .key_by(lambda reading: reading[0], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(WINDOW_SECONDS)))
        .side_output_late_data(late)
        .aggregate(CountAndSum(), WithWindow(), output_type=RESULT)
        .uid("windows")
    )
    windows.sink_to(sink(servers, OUTPUT, RESULT, DeliveryGuarantee.EXACTLY_ONCE)).uid("results")
    windows.get_side_output(late).sink_to(sink(servers, LATE, READING, DeliveryGuarantee.EXACTLY_ONCE)).uid("late")


def main(folder: str, servers: str) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    env = environment(folder)
    build(env, servers)
    client = env.execute_async("windows")
    ended = client.get_job_execution_result()
    while not Path(folder, "enough").exists() and not ended.done():
        time.sleep(0.2)
    if not ended.done():
        client.stop_with_savepoint(True, f"file://{folder}/savepoints").result(120)
    ended.result(120)


if __name__ == "__main__":
    main(*sys.argv[1:])
