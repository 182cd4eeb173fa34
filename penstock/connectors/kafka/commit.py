"""Exactly-once commits: one transaction holds the records of a checkpoint and a marker of the commit.

The marker is a record in a compacted topic of its own. Its key is the origin, which is the writer that prepared the
records. Its value is a list of the last ids that were committed for that origin. A subtask that commits for an origin
first takes over its transactional id, so that an open transaction is either committed or aborted. Then it checks which
of the two happened.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from typing import Any

from penstock.connectors.committing.prepared_records import MARKERS_KEPT, Prepared
from penstock.connectors.kafka.kafka_client import (
    ANSWER_SECONDS,
    Client,
    connection_settings,
    is_transient,
    library,
)
from penstock.connectors.kafka.kafka_sink import KafkaSink, Sending
from penstock.connectors.source_api import Committer
from penstock.errors import AccessDenied, ConnectorError, SchemaMismatch

log = logging.getLogger("penstock.connectors.kafka")
MARKER_CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": str(8 << 20),
    "segment.ms": str(3_600_000),
    "min.cleanable.dirty.ratio": "0.1",
}
TRANSACTION_MILLIS = 60_000
ABORT_SECONDS = 5.0
LOOK_SECONDS = 0.1
"""Time, in seconds, that a producer has for finding out whether its predecessor left a transaction open."""
READ_SECONDS = 60.0
"""Longest time, in seconds, for reading all markers."""


class KafkaCommitter(Committer):
    """Commits for the origins assigned to one subtask, each with its own transactional id."""

    def __init__(self, sink: KafkaSink) -> None:
        self._sink = sink
        self._markers: Markers | None = None
        self._origins: dict[str, OriginCommitter] = {}

    def commit(self, committables: list[Prepared]) -> None:
        by_origin: dict[str, list[Prepared]] = {}
        for prepared in committables:
            by_origin.setdefault(prepared.origin, []).append(prepared)
        if self._markers is None:
            self._markers = Markers(self._sink)
        for origin in [origin for origin in self._origins if origin not in by_origin]:
            # The origin comes from a job with more subtasks, and has nothing more to commit.
            self._origins.pop(origin).close()
        new = [origin for origin in by_origin if origin not in self._origins]
        for origin in new:
            self._origins[origin] = OriginCommitter(self._sink, origin, self._markers, self.check_owner)
        # Take over all origins first: a hanging transaction of one would hide the markers of the others.
        for origin in new:
            self._origins[origin].take_over()
        for origin, prepared_ones in by_origin.items():
            self._origins[origin].commit(prepared_ones)

    def close(self) -> None:
        for origin in self._origins.values():
            origin.close()
        if self._markers is not None:
            self._markers.close()


class OriginCommitter:
    """Commits the records that one writer prepared."""

    def __init__(
        self, sink: KafkaSink, origin: str, markers: Markers, check_owner: Callable[[], None] = lambda: None
    ) -> None:
        self.origin = origin
        self._check_owner = check_owner
        self._sink = sink
        self._markers = markers
        self._sending: Sending | None = None
        self._committed: list[str] | None = None
        """The last committed ids, the newest last; None if only the marker knows them."""
        self._timeout = int(sink.properties.get("transaction.timeout.ms", TRANSACTION_MILLIS)) / 1000

    def commit(self, prepared: list[Prepared]) -> None:
        self._sink.retries.call(
            lambda: self._try(prepared),
            f"a transaction of {self.origin!r} in Kafka at {self._markers.servers}",
            lambda error: isinstance(error, _NotCommitted),
            self._start_anew,
        )

    def take_over(self) -> None:
        """Make sure that no transaction is open for this origin, and that nobody else commits for it from now on.

        Raise JobDisplaced if the job has a new owner, because then the transactional id was taken from that owner.
        """
        if self._sending is not None:
            return
        self._committed = None
        self._fence()
        self._check_owner()

    def _fence(self) -> None:
        self._sending = self._new_sending()
        problem = self._first_look(self._sending.producer)
        if problem is None:
            return
        if problem.code() == library().KafkaError.CONCURRENT_TRANSACTIONS:
            # The predecessor's open transaction is being aborted, which takes milliseconds. This producer would look
            # again after half a second; a new one looks at once.
            self._sending.close()
            self._sending = self._new_sending()
        self._sending.client.call(
            lambda producer: producer.init_transactions(self._timeout), f"the transactions of {self.origin!r}"
        )

    def _new_sending(self) -> Sending:
        settings = {"transactional.id": self.origin, "transaction.timeout.ms": int(self._timeout * 1000)}
        sending = Sending(self._sink, **settings)
        sending.client.meet(self._sink.marker_topic)
        return sending

    def _first_look(self, producer: Any) -> Any | None:
        """Return the error that prevents a new producer from taking over, or None if a short wait shows no error."""
        try:
            producer.init_transactions(min(LOOK_SECONDS, self._timeout))
        except library().KafkaException as error:
            return error.args[0]
        return None

    def _try(self, prepared: list[Prepared]) -> None:
        self.take_over()
        if self._committed is None:
            self._committed = self._markers.read(self.origin, self._timeout + 10)
        open_ones = [one for one in prepared if one.id not in self._committed]
        if not open_ones:
            return
        ids = [*self._committed, *(one.id for one in open_ones)][-MARKERS_KEPT:]
        began = time.monotonic()
        try:
            self._write(open_ones, ids)
        except library().KafkaException as error:
            self._handle_failure(error, time.monotonic() - began)
        except ConnectorError:
            self._start_anew()
            raise
        self._committed = ids

    def _write(self, prepared: list[Prepared], ids: list[str]) -> None:
        assert self._sending is not None
        sending, producer = self._sending, self._sending.producer
        producer.begin_transaction()
        for one in prepared:
            sending.send(one.records)
        marker = json.dumps(ids).encode()
        sending.send([(self._sink.marker_topic, marker, self.origin.encode(), 0, 0, None)])
        self._again_while_told(lambda: producer.commit_transaction(self._timeout))

    def _again_while_told(self, action: Callable[[], None]) -> None:
        """Repeat a call while its error says that it may be repeated."""
        until = time.monotonic() + self._timeout
        while True:
            try:
                return action()
            except library().KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > until:
                    raise

    def _handle_failure(self, exception: Exception, seconds: float) -> None:
        """Determine the outcome of a failed commit, and raise an error.

        It is unknown whether the transaction was committed. A new producer ensures that it has ended, and the marker
        then shows the outcome.
        """
        error, code = exception.args[0], library().KafkaError
        assert self._sending is not None
        sending = self._sending
        sending.producer.poll(0)
        undelivered = [why for why in sending.errors if not is_transient(library().KafkaException(why[0]))]
        self._start_anew()
        fenced = error.code() in (code._FENCED, code.PRODUCER_FENCED, code.INVALID_PRODUCER_EPOCH)
        # Kafka also fences a producer whose transaction took too long.
        if fenced and seconds < self._timeout:
            raise ConnectorError(
                f"the transactional id {self.origin!r} was taken over by another producer: the same job runs a "
                "second time, or another job uses the same prefix (set_transactional_id_prefix). The prepared "
                "records are in the checkpoint"
            ) from exception
        sending.errors = undelivered
        sending.check()
        sending.client.refuse(error, f"a transaction of {self.origin!r}")
        raise _NotCommitted(error.str()) from exception

    def _start_anew(self) -> None:
        """Give up the producer and its open transaction, which its successor ends, or Kafka after a while."""
        sending, self._sending, self._committed = self._sending, None, None
        if sending is None:
            return
        try:
            sending.producer.abort_transaction(ABORT_SECONDS)
        except library().KafkaException as error:
            log.debug("no transaction was aborted for %r: %s", self.origin, error)
        sending.close()

    def close(self) -> None:
        sending, self._sending = self._sending, None
        if sending is not None:
            sending.close()


class _NotCommitted(Exception):
    """Raised if a transaction failed, or may have failed."""


class Markers:
    """The topic with the markers of all origins."""

    def __init__(self, sink: KafkaSink) -> None:
        self._topic = sink.marker_topic
        self._retries = sink.retries
        self._settings = connection_settings(sink.properties)
        self.servers = str(self._settings.get("bootstrap.servers", ""))
        self._reading = {
            **self._settings,
            "group.id": "penstock",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 10,
            "fetch.queue.backoff.ms": 5,
        }
        self._create()

    def _create(self) -> None:
        confluent = library()
        admin = Client("AdminClient", self._settings, self._retries)
        topic = confluent.admin.NewTopic(self._topic, num_partitions=1, config=MARKER_CONFIG)
        if self._topic in admin.topics():
            self._check_policy(admin)
            return

        def create(client: Any) -> None:
            try:
                client.create_topics([topic])[self._topic].result(ANSWER_SECONDS)
            except confluent.KafkaException as error:
                if error.args[0].code() != confluent.KafkaError.TOPIC_ALREADY_EXISTS:
                    raise

        admin.call(create, f"making topic {self._topic!r}")
        admin.partitions(self._topic)

    def _check_policy(self, admin: Client) -> None:
        """Refuse a topic that deletes its markers, because records would then be committed twice."""
        kind = library().admin.ConfigResource
        resource = kind(kind.Type.TOPIC, self._topic)
        try:
            found = admin.call(
                lambda client: client.describe_configs([resource])[resource].result(ANSWER_SECONDS),
                f"the settings of topic {self._topic!r}",
            )
        except AccessDenied as error:
            log.info("cannot find out whether topic %r is compacted: %s", self._topic, error)
            return
        policy = found["cleanup.policy"].value
        if policy != "compact":
            raise SchemaMismatch(
                f"topic {self._topic!r} in Kafka at {self.servers} has cleanup.policy={policy}, but must have "
                "cleanup.policy=compact only: it records which transactions were committed, and Kafka must not "
                "delete these records"
            )

    def read(self, origin: str, patience: float) -> list[str]:
        """Return the ids that were committed for an origin."""
        until = time.monotonic() + patience
        while True:
            committed, stable = self._scan(origin, "read_committed", 0)
            # Other transactions may be open after that offset. Our markers there cannot be judged before they end.
            unsettled, _ = self._scan(origin, "read_uncommitted", stable)
            if unsettled is None:
                return committed or []
            if time.monotonic() > until:
                raise ConnectorError(
                    f"topic {self._topic!r} in Kafka at {self.servers} has a transaction that does not end. It "
                    f"hides the marker of {origin!r}"
                )
            time.sleep(0.1)

    def _scan(self, origin: str, isolation: str, start: int) -> tuple[list[str] | None, int]:
        """Return the last marker of an origin from an offset on, and the offset after the last readable record."""
        consumer = Client("Consumer", {**self._reading, "isolation.level": isolation}, self._retries)
        try:
            consumer.client.assign([library().TopicPartition(self._topic, 0, start)])
            return self._scan_to_end(consumer.client, origin.encode(), start)
        finally:
            consumer.close()

    def _scan_to_end(self, consumer: Any, key: bytes, start: int) -> tuple[list[str] | None, int]:
        confluent = library()
        found: list[str] | None = None
        until = time.monotonic() + READ_SECONDS
        while time.monotonic() < until:
            first = consumer.poll(0.1)
            for message in [] if first is None else [first, *consumer.consume(1000, 0)]:
                error = message.error()
                if error is None:
                    found = json.loads(message.value()) if message.key() == key else found
                elif error.code() == confluent.KafkaError._PARTITION_EOF:
                    return found, max(start, message.offset())
                elif not is_transient(confluent.KafkaException(error)):
                    raise ConnectorError(f"topic {self._topic!r} in Kafka at {self.servers}: {error.str()}")
        raise ConnectorError(
            f"topic {self._topic!r} in Kafka at {self.servers} could not be read within {READ_SECONDS:.0f} s"
        )

    def close(self) -> None:
        """Do nothing: no connection stays open between two reads."""
