"""What the tests of the Kafka connector have in common."""

from __future__ import annotations

from typing import Any

from penstock.common import Configuration, SimpleStringSchema, WatermarkStrategy
from penstock.connectors.retrying import Retries
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.base import Fetched, ReaderContext, WriterContext
from penstock.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from penstock.errors import UndecodableRecord
from penstock.metrics import MetricGroup
from penstock.testing import in_process
from tests.services.kafka import Kafka
from tests.waiting import Patience

IMPATIENT = Retries(attempts=2, delay=0.1)


def environment(parallelism: int = 1, **options: Any) -> StreamExecutionEnvironment:
    """Options have "__" for each dash and "_" for each dot."""
    made = Configuration()
    for option, value in options.items():
        made.set_string(option.replace("__", "-").replace("_", "."), str(value))
    return StreamExecutionEnvironment(made).set_parallelism(parallelism)


def strings(kafka: Kafka, *topics: str) -> Any:
    """The builder of a bounded source of strings, up to the end as it is now."""
    builder = KafkaSource.builder().set_bootstrap_servers(kafka.bootstrap)
    builder.set_value_only_deserializer(SimpleStringSchema()).set_bounded(KafkaOffsetsInitializer.latest())
    return builder.set_topics(*topics) if topics else builder


def collect(source: Any, parallelism: int = 1, **more: Any) -> list[Any]:
    """All that a job finds in a bounded source."""
    with in_process():
        stream = environment(parallelism).from_source(source, WatermarkStrategy.no_watermarks(), "Kafka", **more)
        with stream.execute_and_collect() as results:
            return list(results)


def text_sink(kafka: Kafka, topic: str) -> Any:
    """The builder of a sink for strings."""
    serializer = KafkaRecordSerializationSchema.builder().set_topic(topic)
    serializer.set_value_serialization_schema(SimpleStringSchema())
    return KafkaSink.builder().set_bootstrap_servers(kafka.bootstrap).set_record_serializer(serializer.build())


class Runtime:
    """Who a subtask is, as far as connectors ask."""

    def __init__(self, index: int = 0) -> None:
        self.index = index

    def get_index_of_this_subtask(self) -> int:
        return self.index

    def get_job_id(self) -> str:
        return "job"

    def get_metrics_group(self) -> MetricGroup:
        return MetricGroup()


class Reading(ReaderContext):
    """The context of a reader outside of a job."""

    runtime = Runtime()  # type: ignore[assignment]
    takes_checkpoints = True

    def decode(self, decode, messages, position):  # type: ignore[no-untyped-def]
        return [decode(message) for message in messages], None

    def reject(self, message: Any, error: Exception, position: str) -> None:
        raise UndecodableRecord(position)


class Writing(WriterContext):
    """The context of a writer outside of a job."""

    uid = "sink"
    input_type = None
    now = 0
    is_restored = False
    all_restored: list[Any] = []
    all_committables: list[Any] = []

    def __init__(self, index: int = 0) -> None:
        self.index = index

    @property
    def runtime(self) -> Any:
        return Runtime(self.index)


def read_until(reader: Any, enough: int) -> list[Fetched]:
    """Fetch until there are enough records, or every split has ended."""
    found: list[Fetched] = []
    patience = Patience()
    while sum(len(part.values) for part in found) < enough:
        assert not patience.spent(len(found)), f"only {found}"
        found.extend(reader.fetch(1000, 0.1))
    return found


def values_of(fetched: list[Fetched]) -> list[Any]:
    return [value for part in fetched for value in part.values]
