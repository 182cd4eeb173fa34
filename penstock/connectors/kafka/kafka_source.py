"""Reading topics: the partitions, with the beginning and end of each."""

from __future__ import annotations

import logging
import re
import threading
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from penstock.base.arguments import check_arguments
from penstock.base.type_variables import OUT
from penstock.common.serialization import DeserializationSchema
from penstock.common.typeinfo import TypeInformation
from penstock.connectors.kafka.kafka_client import RETRIES, Client, client_settings
from penstock.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
    OffsetFinder,
)
from penstock.connectors.retrying import Retries
from penstock.connectors.source_api import Boundedness, ReaderContext, Source, SourceReader, SplitEnumerator
from penstock.errors import ConnectorError, NotFound
from penstock.persisted import persisted, persisted_in

if TYPE_CHECKING:
    from penstock.connectors.kafka.builders import KafkaSourceBuilder

log = logging.getLogger("penstock.connectors.kafka")
NO_GROUP = "penstock"
"""Group of consumers that never commit; the library requires one."""
DISCOVERY_MILLIS = 300_000
ONE_TRY = Retries(attempts=1)


@persisted_in("penstock.datastream.connectors.kafka")
class KafkaRecord(NamedTuple):
    """A record of Kafka."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp: int


class KafkaRecordDeserializationSchema(ABC, Generic[OUT]):
    """Turns a whole record into a value, or into None for no value."""

    @abstractmethod
    def deserialize(self, record: KafkaRecord, /) -> OUT | None:
        """Return the value of a record, or None to skip the record."""

    def is_end_of_stream(self, next_element: Any) -> bool:
        """Return True if this value ends its partition. The value itself is dropped."""
        return False

    def get_produced_type(self) -> TypeInformation[OUT] | None:
        """Return the type of the values, if it is known."""
        return None


@dataclass(frozen=True)
class FunctionDeserializer(KafkaRecordDeserializationSchema):
    """A deserializer that calls a function with the whole record."""

    function: Callable[[KafkaRecord], Any]

    def deserialize(self, record: KafkaRecord) -> Any:
        return self.function(record)


@persisted
@dataclass(frozen=True)
class KafkaSplit:
    """A partition, from the next offset to read up to the offset before which to stop."""

    topic: str
    partition: int
    offset: int
    stop: int | None = None
    reset: int | None = None
    """Replacement for an offset that does not exist: EARLIEST or LATEST.

    It applies until the first record, and never after a restore.
    """

    @property
    def split_id(self) -> str:
        return f"{self.topic}-{self.partition}"


@check_arguments
@dataclass(frozen=True)
class KafkaSource(Source[OUT]):
    """The records of Kafka topics.

    The position in each partition is part of every checkpoint, so each record counts once.
    """

    properties: dict[str, str]
    deserializer: DeserializationSchema[OUT] | KafkaRecordDeserializationSchema[OUT]
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[KafkaTopicPartition, ...] = ()
    starting: KafkaOffsetsInitializer = field(default_factory=KafkaOffsetsInitializer.earliest)
    stopping: KafkaOffsetsInitializer | None = None
    boundedness: Boundedness = Boundedness.CONTINUOUS_UNBOUNDED
    retries: Retries = RETRIES

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        """Return a builder without settings."""
        from penstock.connectors.kafka.builders import KafkaSourceBuilder

        return KafkaSourceBuilder()

    def get_boundedness(self) -> Boundedness:
        return self.boundedness

    @property
    def group(self) -> str | None:
        """Id of the consumer group; None if none is set."""
        return self.properties.get("group.id")

    @property
    def discovery_interval(self) -> float | None:
        """Seconds between two searches for partitions; None for a bounded source or a negative setting."""
        millis = int(self.properties.get("partition.discovery.interval.ms", DISCOVERY_MILLIS))
        return None if millis < 0 or self.boundedness is Boundedness.BOUNDED else millis / 1000

    @property
    def commits_offsets(self) -> bool:
        """True if offsets are committed to the group after each checkpoint."""
        asked = str(self.properties.get("commit.offsets.on.checkpoint", "true")).lower()
        return self.group is not None and asked == "true"

    def create_enumerator(self) -> SplitEnumerator:
        return KafkaEnumerator(self)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        from penstock.connectors.kafka.kafka_reader import KafkaReader

        return KafkaReader(self, context)

    def owner(self, split: KafkaSplit, turn: int, parallelism: int) -> int:
        """Spread the partitions of a topic over the subtasks, from a subtask on that depends on the topic's name."""
        return (zlib.crc32(split.topic.encode()) + split.partition) % parallelism

    def get_produced_type(self) -> TypeInformation[OUT] | None:
        return self.deserializer.get_produced_type()

    def connect(self, role: str, on_commit: Callable[[Any, list[Any]], None] | None = None) -> Client:
        """Make a consumer.

        `role` becomes part of its client id; `on_commit` gets the outcome of each commit of offsets.
        """
        given = client_settings(self.properties)
        prefix = self.properties.get("client.id.prefix") or given.get("client.id") or self.group or NO_GROUP
        settings = {
            "group.id": NO_GROUP,
            "isolation.level": "read_committed",
            "fetch.queue.backoff.ms": 5,
            "fetch.wait.max.ms": 100,
            "topic.metadata.propagation.max.ms": 5000,
            **given,
            "client.id": f"{prefix}-{role}",
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "allow.auto.create.topics": False,
            **({} if on_commit is None else {"on_commit": on_commit}),
        }
        return Client("Consumer", settings, self.retries)


class KafkaEnumerator(SplitEnumerator):
    """Finds partitions. The first partitions start at the configured offsets, later ones at their beginning."""

    def __init__(self, source: KafkaSource) -> None:
        self._source = source
        self.discovery_interval = source.discovery_interval
        self._known: set[KafkaTopicPartition] | None = None
        self._client: Client | None = None
        self._busy = threading.Lock()
        self._closed = False

    def discover(self) -> Sequence[KafkaSplit]:
        """Find new partitions. The lock keeps `close`, in another thread, from closing the client meanwhile."""
        with self._busy:
            try:
                return self._discover()
            finally:
                if self._closed:
                    self._disconnect()

    def _discover(self) -> Sequence[KafkaSplit]:
        if self._known is None:
            found, self._known = self._look(), set()
            return self._splits(found, self._source.starting)
        try:
            new = [where for where in self._look() if where not in self._known]
            return self._splits(new, KafkaOffsetsInitializer.earliest())
        except ConnectorError as error:
            log.warning("looking for new partitions failed; trying again later: %s", error)
            return ()

    def _look(self) -> list[KafkaTopicPartition]:
        if self._client is None:
            self._client = self._source.connect("enumerator")
        if self._known is not None:
            self._client.retries = ONE_TRY
        if self._source.pattern is not None:
            return self._matching(self._client, re.compile(self._source.pattern))
        topics = self._source.topics or {where.topic for where in self._source.partitions}
        found = [KafkaTopicPartition(topic, n) for topic in sorted(topics) for n in self._client.partitions(topic)]
        if not self._source.partitions:
            return found
        missing = sorted(set(self._source.partitions) - set(found))
        if missing:
            raise NotFound(f"there is no partition {missing[0]} in Kafka at {self._client.servers}")
        return list(self._source.partitions)

    def _matching(self, client: Client, pattern: re.Pattern[str]) -> list[KafkaTopicPartition]:
        topics = {name: topic for name, topic in client.topics().items() if pattern.fullmatch(name)}
        if not topics:
            log.info("no topic matches %r yet", pattern.pattern)
        return [KafkaTopicPartition(name, n) for name in sorted(topics) for n in sorted(topics[name].partitions)]

    def _splits(self, found: list[KafkaTopicPartition], starting: KafkaOffsetsInitializer) -> list[KafkaSplit]:
        if not found:
            return []
        assert self._known is not None
        assert self._client is not None
        finder = OffsetFinder(self._client, self._source.group)
        starts = starting.find(found, finder)
        stopping = self._source.stopping
        stops: dict[KafkaTopicPartition, int] = stopping.find(found, finder) if stopping is not None else {}
        self._known.update(found)
        reset = starting.reset.timestamp if starting.reset is not KafkaOffsetResetStrategy.NONE else None
        return [KafkaSplit(it.topic, it.partition, starts[it], stops.get(it), reset) for it in found]

    def snapshot_state(self) -> list[tuple[str, int]] | None:
        if self._known is None:
            return None
        return sorted((where.topic, where.partition) for where in self._known)

    def restore_state(self, state: list[tuple[str, int]] | None) -> None:
        if state is not None:
            self._known = {KafkaTopicPartition(topic, partition) for topic, partition in state}

    def close(self) -> None:
        self._closed = True
        if self._busy.acquire(blocking=False):
            try:
                self._disconnect()
            finally:
                self._busy.release()

    def _disconnect(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
