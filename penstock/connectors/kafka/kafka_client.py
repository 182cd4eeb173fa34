"""Clients of Kafka: their settings under the names of the Java client, and their errors as Penstock's."""

from __future__ import annotations

import logging
import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from penstock.base.libraries import optional_library
from penstock.connectors.retrying import Retries
from penstock.errors import AccessDenied, ConfigurationError, ConnectorError, NotFound

T = TypeVar("T")
log = logging.getLogger("penstock.connectors.kafka")

RETRIES = Retries(attempts=7, delay=0.5)
"""Default attempts of clients: they give up after about half a minute."""
ANSWER_SECONDS = 5.0
"""Longest time for one attempt, in seconds."""
LISTEN_SECONDS = 0.5
RECONNECT_MILLIS = 20
"""First pause of a client before it connects again, in milliseconds.

It halves the pause between its first connections.
"""
MOST_ANSWERS = 3
"""Number of answers that `meet` accepts from an address that the client was given, before a server has to answer."""

_OURS = {
    "client.id.prefix",
    "commit.offsets.on.checkpoint",
    "partition.discovery.interval.ms",
    "register.consumer.metrics",
}
_JAVA_ONLY = {
    "auto.commit.interval.ms",
    "buffer.memory",
    "client.dns.lookup",
    "default.api.timeout.ms",
    "enable.auto.commit",
    "exclude.internal.topics",
    "fetch.max.wait.ms",
    "group.protocol",
    "key.deserializer",
    "key.serializer",
    "max.block.ms",
    "max.poll.records",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "partition.assignment.strategy",
    "partitioner.class",
    "request.timeout.ms",
    "sasl.jaas.config",
    "value.deserializer",
    "value.serializer",
}
"""Settings of the Java client that this one does not need. `fetch.max.wait.ms` is translated."""
_CREDENTIALS = re.compile(r'\b(username|password|keyTab|principal|serviceName)\s*=\s*"((?:[^"\\]|\\.)*)"')
_KERBEROS = {"keyTab": "kerberos.keytab", "principal": "kerberos.principal", "serviceName": "kerberos.service.name"}
"""Names of settings in Java's login module for Kerberos, with their names in this library."""


def library() -> Any:
    """Import confluent_kafka together with its module for administration."""
    need = "the Kafka connector needs the package confluent-kafka"
    optional_library("confluent_kafka.admin", need, "kafka")
    return optional_library("confluent_kafka", need, "kafka")


def client_settings(properties: Mapping[str, Any], *leave_out: str) -> dict[str, Any]:
    """Translate properties for the Java client into settings of the library."""
    settings = {
        name: value
        for name, value in properties.items()
        if name not in _OURS and name not in _JAVA_ONLY and name not in leave_out
    }
    if "fetch.max.wait.ms" in properties:
        settings["fetch.wait.max.ms"] = properties["fetch.max.wait.ms"]
    for name, value in _CREDENTIALS.findall(str(properties.get("sasl.jaas.config", ""))):
        settings.setdefault(f"sasl.{_KERBEROS.get(name, name)}", re.sub(r"\\(.)", r"\1", value))
    return settings


def connection_settings(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return only the settings for servers and credentials, which are valid for every kind of client."""
    shared = ("bootstrap.", "security.", "sasl.", "ssl.", "socket.", "broker.", "reconnect.", "client.")
    return {name: value for name, value in client_settings(properties).items() if name.startswith(shared)}


class Client:
    """A client of the library that remembers the errors of its callbacks.

    The library reconnects by itself and reports most trouble only to a callback. The error of a failed call says
    little; the errors heard before explain it. To hear them, the client is polled. So a consumer that has partitions
    must not be asked anything: it would lose a record.
    """

    def __init__(self, kind: str, settings: dict[str, Any], retries: Retries) -> None:
        # The library logs lost connections ten times a second. Our own errors and warnings report them instead.
        self.settings = {"log_level": 2, "reconnect.backoff.ms": RECONNECT_MILLIS, **settings}
        self.servers = str(settings.get("bootstrap.servers", ""))
        self.retries = retries
        self.heard: deque[Any] = deque(maxlen=20)
        """Errors that the callback received."""
        confluent = library()
        made_by = confluent.admin.AdminClient if kind == "AdminClient" else getattr(confluent, kind)
        try:
            self.client: Any = made_by({"error_cb": self.heard.append, **self.settings}, logger=log)
        except confluent.KafkaException as error:
            raise ConfigurationError(
                f"Kafka's client does not accept its settings: {error.args[0].str()}; "
                "the settings of librdkafka are allowed; most of them have the same names as in the Java client"
            ) from error

    def call(self, action: Callable[[Any], T], what: str, retries: Retries | None = None) -> T:
        """Call the client until it succeeds, or fails in a way that another attempt would not change."""
        try:
            return (retries or self.retries).call(
                lambda: self._try(action, what), f"{what}, asked of Kafka at {self.servers},", is_transient
            )
        except library().KafkaException as error:
            raise ConnectorError(f"{what}, asked of Kafka at {self.servers}, failed: {error.args[0].str()}") from error

    def _try(self, action: Callable[[Any], T], what: str) -> T:
        try:
            return action(self.client)
        except library().KafkaException as error:
            self.client.poll(0)
            for heard in [error.args[0], *self.heard]:
                self.refuse(heard, what)
            raise

    def refuse(self, error: Any, what: str) -> None:
        """Raise the error if another attempt would not change it."""
        kind = lasting_kind(error)
        if kind is not None:
            raise kind(f"{what}: Kafka at {self.servers} rejected the request: {error.str()}")

    def topics(self, topic: str | None = None, retries: Retries | None = None) -> dict[str, Any]:
        """Return the servers' metadata of one topic, or of all topics, by name."""

        what = "the list of topics" if topic is None else f"topic {topic!r}"
        return self.call(lambda client: self._list_topics(client, topic, what), what, retries)

    def _list_topics(self, client: Any, topic: str | None, what: str) -> dict[str, Any]:
        """Ask for a short time, read the reason for a missing answer from the callback, and ask again."""
        name = {} if topic is None else {"topic": topic}
        confluent, until = library(), time.monotonic() + ANSWER_SECONDS
        while True:
            try:
                found: dict[str, Any] = client.list_topics(timeout=LISTEN_SECONDS, **name).topics
                self.heard.clear()
                return found
            except confluent.KafkaException:
                client.poll(0)
                for heard in self.heard:
                    self.refuse(heard, what)
                if self.heard:
                    raise confluent.KafkaException(self.heard.pop()) from None
                if time.monotonic() > until:
                    raise

    def meet(self, topic: str) -> None:
        """Wait for the answer of a known server, not just of an address that the client was given.

        The library drops such an address as soon as it knows the servers. If it was just asking there for the
        coordinator of a transaction, it asks again half a second later. If nobody answers, the next call reports the
        reason.
        """
        with suppress(library().KafkaException):
            for _ in range(MOST_ANSWERS):
                if self.client.list_topics(topic, LISTEN_SECONDS).orig_broker_id >= 0:
                    return

    def partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic. Raise NotFound if there is no such topic."""
        code = library().KafkaError

        def find_partitions() -> list[int]:
            known = self.topics(topic)[topic]
            if known.error is not None:
                self.refuse(known.error, f"topic {topic!r}")
                raise _NotYet(known.error)
            return sorted(known.partitions)

        try:
            return Retries(attempts=3, delay=0.2).call(
                find_partitions, f"topic {topic!r}", lambda e: isinstance(e, _NotYet)
            )
        except ConnectorError as error:
            missing = error.__cause__
            if not isinstance(missing, _NotYet):
                raise
            if missing.args[0].code() == code.UNKNOWN_TOPIC_OR_PART:
                raise NotFound(f"there is no topic {topic!r} in Kafka at {self.servers}") from None
            raise

    def close(self) -> None:
        """Release the client.

        A producer is only dropped, because its close() would wait for servers that do not answer.
        """
        client, self.client = self.client, None
        if hasattr(client, "consume"):
            client.close()
        elif hasattr(client, "purge"):
            client.purge()


class _NotYet(Exception):
    """Raised for an unknown topic. A topic that was just created becomes known a moment later."""


def lasting_kind(error: Any) -> type[ConnectorError] | None:
    """Return the class for an error that another attempt would not change; None for other errors."""
    code = library().KafkaError
    denied = {
        code._AUTHENTICATION,
        code.SASL_AUTHENTICATION_FAILED,
        code.TOPIC_AUTHORIZATION_FAILED,
        code.GROUP_AUTHORIZATION_FAILED,
        code.CLUSTER_AUTHORIZATION_FAILED,
        code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
    return AccessDenied if error.code() in denied else None


def is_transient(error: Exception) -> bool:
    """Return True if another attempt may succeed."""
    kafka_error = library().KafkaError
    if not isinstance(error, library().KafkaException):
        return False
    found = error.args[0]
    passing = {
        kafka_error._TRANSPORT,
        kafka_error._ALL_BROKERS_DOWN,
        kafka_error._RESOLVE,
        kafka_error._TIMED_OUT,
        kafka_error._WAIT_COORD,
        kafka_error._MSG_TIMED_OUT,
        kafka_error.REQUEST_TIMED_OUT,
        kafka_error.LEADER_NOT_AVAILABLE,
        kafka_error.NOT_LEADER_FOR_PARTITION,
        kafka_error.BROKER_NOT_AVAILABLE,
        kafka_error.REPLICA_NOT_AVAILABLE,
        kafka_error.NETWORK_EXCEPTION,
        kafka_error.COORDINATOR_LOAD_IN_PROGRESS,
        kafka_error.COORDINATOR_NOT_AVAILABLE,
        kafka_error.NOT_COORDINATOR,
        kafka_error.NOT_ENOUGH_REPLICAS,
        kafka_error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        kafka_error.NOT_CONTROLLER,
        kafka_error.FENCED_LEADER_EPOCH,
        kafka_error.UNKNOWN_LEADER_EPOCH,
        kafka_error.OFFSET_NOT_AVAILABLE,
        kafka_error.UNSTABLE_OFFSET_COMMIT,
        kafka_error.CONCURRENT_TRANSACTIONS,
    }
    return bool(found.retriable()) or found.code() in passing
