"""Reads the partitions assigned to one subtask with one consumer, in chunks."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import groupby
from typing import Any

from penstock.connectors.kafka.decoding import Decoding, Messages
from penstock.connectors.kafka.kafka_client import Client, is_transient, library
from penstock.connectors.kafka.kafka_source import ONE_TRY, KafkaSource, KafkaSplit
from penstock.connectors.kafka.offsets import EARLIEST, LATEST, KafkaTopicPartition, OffsetFinder
from penstock.connectors.kafka.reader_metrics import ReaderMetrics
from penstock.connectors.retrying import Retries
from penstock.connectors.source_api import Fetched, ReaderContext, SourceReader
from penstock.errors import ConnectorError, OffsetOutOfRange

log = logging.getLogger("penstock.connectors.kafka")
MOST = 2000
"""Most records to take from the library at once. More would be slower."""
Key = tuple[str, int]


class KafkaReader(SourceReader):
    """One consumer with assigned partitions, never subscribed: Penstock decides which subtask reads which partition."""

    waits_in_a_thread = True

    def __init__(self, source: KafkaSource, context: ReaderContext) -> None:
        self._source = source
        self._decoding = Decoding(source.deserializer, context)
        self._index = context.runtime.get_index_of_this_subtask()
        self._client: Client | None = None
        self._splits: dict[Key, KafkaSplit] = {}
        self._finished: dict[Key, int] = {}
        self._only_topic: str | None = None
        self._ended: list[Fetched] = []
        self._snapshots: dict[int | None, dict[Key, int]] = {}
        self._outage = _Outage(source.retries)
        self._measured = ReaderMetrics(context.runtime.get_metrics_group(), self._next_offsets)
        self._measured.ends_of = self._ends_of

    # --- splits ---
    def add_splits(self, splits: Sequence[KafkaSplit]) -> None:
        if self._client is None:
            self._client = self._source.connect(str(self._index), self._measured.note_commit)
        self._measured.add((split.topic, split.partition) for split in splits)
        topics = {split.topic for split in splits} | {topic for topic, _ in self._splits}
        self._only_topic = topics.pop() if len(topics) == 1 else None
        for split in splits:
            key = split.topic, split.partition
            self._splits[key] = split
            if split.stop is not None and split.offset >= split.stop:
                self._end(key)
            else:
                self._start(self._client, split)

    def _next_offsets(self) -> dict[Key, int]:
        return {**self._finished, **{key: split.offset for key, split in list(self._splits.items())}}

    def _ends_of(self, keys: Iterable[Key]) -> dict[Key, int]:
        """Return the ends of partitions as far as the client knows them; none if it has been closed."""
        client, found = self._client, {}
        for key in keys:
            if client is None or key not in self._splits:
                continue
            try:
                _, end = client.client.get_watermark_offsets(library().TopicPartition(*key), cached=True)
            except (library().KafkaException, RuntimeError):
                continue
            if end >= 0:
                found[key] = end
        return found

    def _start(self, client: Client, split: KafkaSplit) -> None:
        where = library().TopicPartition(split.topic, split.partition, split.offset)
        client.client.incremental_assign([where])

    def _end(self, key: Key) -> None:
        split = self._splits.pop(key)
        self._finished[key] = split.offset
        self._ended.append(Fetched(split.split_id, [], last=True))

    def _unassign(self, key: Key) -> None:
        assert self._client is not None
        self._client.client.incremental_unassign([library().TopicPartition(*key)])

    def snapshot_state(self) -> Sequence[KafkaSplit]:
        read = {key: split.offset for key, split in self._splits.items()}
        self._snapshots[self.checkpoint_id] = self._finished | read
        return [replace(split, reset=None) for split in self._splits.values()]

    # --- reading ---
    def fetch(self, most: int, wait: float) -> Sequence[Fetched]:
        if self._ended or self._client is None or not self._splits:
            return self._take_ended()
        messages = self._consume(self._client.client, min(most, MOST), wait)
        if self._client.heard:
            self._listen(self._client)
        if not messages:
            if self._outage.is_due():
                with self._asking() as client:
                    self._outage.check(client)
            return ()
        self._outage.over()
        message_type = library().Message
        events = []
        if any(map(message_type.error, messages)):
            events = [message for message in messages if message.error() is not None]
            messages = [message for message in messages if message.error() is None]
        runs = self._by_partition(messages, message_type).items()
        fetched = [self._take(key, run, message_type) for key, run in runs if key in self._splits]
        for event in events:
            self._handle_event(event)
        return [*fetched, *self._take_ended()]

    def _by_partition(self, messages: list[Any], message_type: Any) -> dict[Key, list[Any]]:
        runs: dict[Key, list[Any]] = {}
        if self._only_topic is not None:
            for partition, run in groupby(messages, message_type.partition):
                runs.setdefault((self._only_topic, partition), []).extend(run)
        else:
            for key, run in groupby(messages, lambda message: (message.topic(), message.partition())):
                runs.setdefault(key, []).extend(run)
        return runs

    def _consume(self, consumer: Any, most: int, wait: float) -> list[Any]:
        """Take the messages that have arrived. If there are none, wait for the first one."""
        messages: list[Any] = consumer.consume(most, 0)
        if messages or not wait:
            return messages
        first = consumer.poll(wait)
        return [] if first is None else [first, *(consumer.consume(most - 1, 0) if most > 1 else ())]

    def _take(self, key: Key, messages: list[Any], message_type: Any) -> Fetched:
        split = self._splits[key]
        behind = messages[-1].offset() + 1
        if split.stop is not None and behind > split.stop:
            messages = [message for message in messages if message.offset() < split.stop]
        self._measured.consumed.inc(len(messages))
        values, timestamps, ended = self._decoding.decode(Messages(messages, message_type), split.split_id)
        fetched = Fetched(split.split_id, values, timestamps)
        if ended or (split.stop is not None and behind >= split.stop):
            fetched.last = True
            self._finished[key] = behind if split.stop is None else min(behind, split.stop)
            del self._splits[key]
            self._unassign(key)
        else:
            self._splits[key] = KafkaSplit(split.topic, split.partition, behind, split.stop)
        return fetched

    def _take_ended(self) -> list[Fetched]:
        ended, self._ended = self._ended, []
        return ended

    def waits(self) -> bool:
        return bool(self._splits)

    def _asking(self) -> closing[Client]:
        """Return a client for questions. The client that reads would lose a record."""
        return closing(self._source.connect(f"{self._index}-asking"))

    # --- what is not a record ---
    def _handle_event(self, event: Any) -> None:
        code = library().KafkaError
        error, key = event.error(), (event.topic(), event.partition())
        assert self._client is not None
        if error.code() == code._PARTITION_EOF:
            self._reach_end(key, event.offset())
        elif error.code() == code._AUTO_OFFSET_RESET:
            if key in self._splits:
                self._out_of_range(self._client, self._splits[key])
        else:
            self._trouble(self._client, error, f"reading {event.topic() or 'topics'}")

    def _reach_end(self, key: Key, offset: int) -> None:
        """Move a partition to its current end.

        An offset before the end that was not read belongs to the marker of a transaction, not to a record.
        """
        split = self._splits.get(key)
        if split is None or offset < split.offset:
            return
        self._splits[key] = replace(split, offset=offset)
        if split.stop is not None and offset >= split.stop:
            self._end(key)
            self._unassign(key)

    def _out_of_range(self, client: Client, split: KafkaSplit) -> None:
        where = KafkaTopicPartition(split.topic, split.partition)
        with self._asking() as asking:
            finder = OffsetFinder(asking, None)
            first, end = finder.at([where], EARLIEST)[where], finder.at([where], LATEST)[where]
        if split.reset is None:
            raise OffsetOutOfRange(
                f"topic {split.topic!r}, partition {split.partition}: the next offset to read is {split.offset}, "
                f"but Kafka at {client.servers} has only the offsets from {first} to {end}. Either retention "
                "deleted records before they were read (raise retention.ms or retention.bytes, and start again "
                "from an earlier savepoint or "
                "from earliest()), or the topic was deleted and created again (start without the old state)"
            )
        start = first if split.reset == EARLIEST else end
        log.warning("%s has no offset %d; reading continues from offset %d", split.split_id, split.offset, start)
        key = split.topic, split.partition
        self._splits[key] = replace(split, offset=start)
        self._unassign(key)
        self._start(client, self._splits[key])

    def _listen(self, client: Client) -> None:
        while client.heard:
            self._trouble(client, client.heard.popleft(), "reading")

    def _trouble(self, client: Client, error: Any, what: str) -> None:
        client.refuse(error, what)
        code = library().KafkaError
        if error.code() in (code.UNKNOWN_TOPIC_OR_PART, code._UNKNOWN_TOPIC, code._UNKNOWN_PARTITION):
            self._look_for_topics(error)
        elif error.fatal():
            raise ConnectorError(f"{what} from Kafka at {client.servers} failed: {error.str()}")
        elif is_transient(library().KafkaException(error)):
            self._outage.begin(error)
        else:
            log.warning("Kafka at %s: %s", client.servers, error.str())

    def _look_for_topics(self, error: Any) -> None:
        """Raise if a topic is gone; it may only have been unknown for a moment."""
        with self._asking() as client:
            for topic in sorted({topic for topic, _ in self._splits}):
                client.partitions(topic)
        log.warning("Kafka temporarily reported a topic as unknown: %s", error.str())

    # --- committing, for tools that show the group's lag ---
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        read = self._snapshots.get(checkpoint_id, self._snapshots.get(None))
        for number in [number for number in self._snapshots if number is not None and number <= checkpoint_id]:
            del self._snapshots[number]
        if not read or self._client is None or not self._source.commits_offsets:
            return
        made = library().TopicPartition
        offsets = [made(topic, partition, offset) for (topic, partition), offset in read.items()]
        try:
            self._client.client.commit(offsets=offsets, asynchronous=True)
        except library().KafkaException as error:
            self._measured.not_committed()
            log.warning("offsets were not committed to group %r: %s", self._source.group, error)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


class _Outage:
    """The duration of an outage of the servers.

    The library reconnects by itself. This class only decides when to give up.
    """

    def __init__(self, retries: Retries) -> None:
        self._retries = retries
        self._error: Any = None
        self._tries = 0
        self._next = 0.0

    def begin(self, error: Any) -> None:
        if self._error is None:
            self._tries, self._next = 0, time.monotonic() + self._retries.delay
        self._error = error

    def over(self) -> None:
        self._error = None

    def is_due(self) -> bool:
        return self._error is not None and time.monotonic() >= self._next

    def check(self, client: Client) -> None:
        """Raise an error if the servers do not answer for too long. Call this when nothing was read."""
        try:
            client.topics(retries=ONE_TRY)
        except ConnectorError as error:
            if not isinstance(error.__cause__, library().KafkaException):
                raise
            self._tries += 1
            if self._tries >= self._retries.attempts:
                raise ConnectorError(
                    f"Kafka at {client.servers} did not answer {self._tries} times in a row: {self._error.str()}"
                ) from error
            wait = min(self._retries.delay * 2**self._tries, self._retries.longest)
            log.warning("Kafka at %s does not answer; trying again in %.1f s", client.servers, wait)
            self._next = time.monotonic() + wait
        else:
            self.over()
