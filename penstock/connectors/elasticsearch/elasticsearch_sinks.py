"""Elasticsearch indices as sinks, for servers from version 7.14.

Delivery: at least once with checkpoints, because every request is sent and answered before a checkpoint is taken.
Documents with an id (`key_field`) that are written again are the same documents, so that each exists once.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterable
from enum import Enum
from typing import Any, TypeVar
from urllib.parse import urlsplit

from penstock.api.settings.values import check_kind
from penstock.base.arguments import check_arguments
from penstock.common.types import Row
from penstock.connectors.elasticsearch.elasticsearch_writer import BulkWriter, Settings
from penstock.connectors.retrying import Retries
from penstock.connectors.source_api import DeliveryGuarantee, Sink, SinkWriter, WriterContext
from penstock.errors import TypeMismatch

__all__ = [
    "Elasticsearch7SinkBuilder",
    "ElasticsearchEmitter",
    "ElasticsearchSink",
    "ElasticsearchSinkBuilderBase",
    "FlushBackoffType",
]

DEFAULT_PORT = 9200
LONGEST_DELAY = 60.0
Self = TypeVar("Self", bound="ElasticsearchSinkBuilderBase")


class FlushBackoffType(Enum):
    """The wait before a bulk request is repeated because the cluster was too busy for it."""

    CONSTANT = 0
    """The given delay, each time."""
    EXPONENTIAL = 1
    """The given delay, then twice as long each time."""
    NONE = 2
    """No repetition: the job fails, and its restart strategy decides."""


@check_arguments
class ElasticsearchEmitter(ABC):
    """Turns a record into requests. Override `emit` for more than one document per record, or for deletes."""

    @abstractmethod
    def emit(self, element: Any) -> Iterable[dict[str, Any]]:
        """Return actions in the form of elasticsearch.helpers.

        An action is a dict with `_index` and `_source`, and optionally `_op_type` (index, create, update or delete),
        `_id` and `_routing`.
        """

    @staticmethod
    def static_index(index: str, key_field: str | None = None, doc_type: str | None = None) -> ElasticsearchEmitter:
        """Return an emitter that writes every record to one index.

        Records are dicts, rows with names, or dataclasses. With a `key_field`, its value is the document's id, and an
        existing document is updated.
        """
        return _Documents(_check_name(index, "index"), False, key_field, doc_type)

    @staticmethod
    def dynamic_index(
        index_field: str, key_field: str | None = None, doc_type: str | None = None
    ) -> ElasticsearchEmitter:
        """Return an emitter that writes every record to the index that one of its fields names."""
        return _Documents(_check_name(index_field, "index field"), True, key_field, doc_type)


@dataclasses.dataclass(frozen=True)
class _Documents(ElasticsearchEmitter):
    index: str
    is_field: bool
    key_field: str | None
    doc_type: str | None

    def emit(self, element: Any) -> Iterable[dict[str, Any]]:
        document = _as_dict(element)
        action: dict[str, Any] = {"_index": str(_field(document, self.index)) if self.is_field else self.index}
        if self.doc_type is not None:
            action["_type"] = self.doc_type
        if self.key_field is None:
            return [{**action, "_source": document}]
        update = {"doc": document, "doc_as_upsert": True}
        key = _field(document, self.key_field)
        return [{**action, "_op_type": "update", "_id": key, "_source": update, "retry_on_conflict": 5}]


def _as_dict(element: Any) -> dict[str, Any]:
    if isinstance(element, dict):
        return element
    if isinstance(element, Row) and element.get_field_names() is not None:
        return element.as_dict(recursive=True)
    if dataclasses.is_dataclass(element) and not isinstance(element, type):
        return dataclasses.asdict(element)
    raise TypeMismatch(f"a document must be a dict, a Row with field names or a dataclass, not {element!r}")


def _field(document: dict[str, Any], name: str) -> Any:
    if document.get(name) is None:
        raise TypeMismatch(f"the record has no field {name!r}, only {sorted(map(str, document))}: {document!r}")
    return document[name]


def _check_name(name: str, what: str) -> str:
    if not isinstance(name, str) or not name:
        raise ValueError(f"the {what} is a name, not {name!r}")
    return name


@check_arguments
@dataclasses.dataclass(frozen=True)
class ElasticsearchSink(Sink):
    """Writes documents. A builder makes it."""

    emitter: ElasticsearchEmitter
    settings: Settings

    def create_writer(self, context: WriterContext, restored: list[Any]) -> SinkWriter:
        return BulkWriter(self)


@check_arguments
class ElasticsearchSinkBuilderBase:
    """Describes the target of documents and the size of requests."""

    def __init__(self) -> None:
        self._emitter: ElasticsearchEmitter | None = None
        self._hosts: list[str] = []
        self._guarantee = DeliveryGuarantee.AT_LEAST_ONCE
        self._most_actions = 1000
        self._most_megabytes = 5
        self._interval = -1
        self._retries = Retries()
        self._user: str | None = None
        self._password: str | None = None
        self._prefix = ""
        self._timeouts: dict[str, int] = {}

    def set_emitter(self: Self, emitter: ElasticsearchEmitter) -> Self:
        """Set the conversion of records into requests."""
        self._emitter = check_kind(ElasticsearchEmitter, emitter)
        return self

    def set_hosts(self: Self, hosts: str | list[str]) -> Self:
        """Set nodes of the cluster, such as localhost:9200 or https://search.example.org."""
        given = [hosts] if isinstance(hosts, str) else list(hosts)
        if not given:
            raise ValueError("at least one host is needed")
        self._hosts = [_address(host) for host in given]
        return self

    def set_delivery_guarantee(self: Self, delivery_guarantee: DeliveryGuarantee) -> Self:
        """Set AT_LEAST_ONCE, the default, or NONE. With NONE, checkpoints do not wait for buffered documents."""
        if delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            raise ValueError(
                "Elasticsearch has no transactions, so EXACTLY_ONCE is not possible; with "
                "AT_LEAST_ONCE and a key field, each document exists once"
            )
        self._guarantee = check_kind(DeliveryGuarantee, delivery_guarantee)
        return self

    def set_bulk_flush_max_actions(self: Self, num_max_actions: int) -> Self:
        """Set the largest number of documents in a request: 1000 by default, -1 for no limit."""
        self._most_actions = _limit(num_max_actions, "number of actions")
        return self

    def set_bulk_flush_max_size_mb(self: Self, max_size_mb: int) -> Self:
        """Set the largest size of a request, in megabytes: 5 by default, -1 for no limit."""
        self._most_megabytes = _limit(max_size_mb, "size")
        return self

    def set_bulk_flush_interval(self: Self, interval_millis: int) -> Self:
        """Set the time, in milliseconds, after which buffered documents are sent.

        With -1, the default, they wait for a full request or a checkpoint.
        """
        self._interval = _limit(interval_millis, "interval")
        return self

    def set_bulk_flush_backoff_strategy(
        self: Self, flush_backoff_type: FlushBackoffType, max_retries: int, delay_millis: int
    ) -> Self:
        """Set the retries of a request that was lost, or for which the cluster was too busy.

        By default there are five, the first after 0.2 seconds, and each later one after twice the time.
        """
        check_kind(FlushBackoffType, flush_backoff_type)
        if flush_backoff_type is FlushBackoffType.NONE:
            self._retries = Retries(attempts=1)
            return self
        if max_retries < 1 or delay_millis < 0:
            raise ValueError(
                "the number of retries must be at least 1 and the delay must not be negative, not "
                f"{max_retries!r} and {delay_millis!r}"
            )
        delay = delay_millis / 1000
        longest = delay if flush_backoff_type is FlushBackoffType.CONSTANT else max(delay, LONGEST_DELAY)
        self._retries = Retries(max_retries + 1, delay, longest)
        return self

    def set_connection_username(self: Self, username: str) -> Self:
        """Set the name of the user to connect as. It needs a password."""
        self._user = username
        return self

    def set_connection_password(self: Self, password: str) -> Self:
        """Set the password of the user."""
        self._password = password
        return self

    def set_connection_path_prefix(self: Self, prefix: str) -> Self:
        """Set a path that precedes that of every request, for a cluster behind a proxy."""
        self._prefix = prefix.strip("/")
        return self

    def set_connection_request_timeout(self: Self, timeout: int) -> Self:
        """Set the timeout of requests, in milliseconds. The client has only one: the longest of the three set here."""
        return self._set_timeout("request", timeout)

    def set_connection_timeout(self: Self, timeout: int) -> Self:
        """Set the timeout for opening a connection, in milliseconds. The longest of the three timeouts counts."""
        return self._set_timeout("connection", timeout)

    def set_socket_timeout(self: Self, timeout: int) -> Self:
        """Set the timeout for data on an open connection, in milliseconds. The longest of the three timeouts counts."""
        return self._set_timeout("socket", timeout)

    def _set_timeout(self: Self, name: str, timeout: int) -> Self:
        if timeout < 1:
            raise ValueError(f"a timeout is at least 1 ms, not {timeout!r}")
        self._timeouts[name] = timeout
        return self

    def build(self) -> ElasticsearchSink:
        """Return the sink.

        Raises:
            ValueError: The emitter or the hosts are missing, or only one of user name and password is set.
        """
        if self._emitter is None:
            raise ValueError("an Elasticsearch sink needs set_emitter")
        if not self._hosts:
            raise ValueError("an Elasticsearch sink needs set_hosts")
        if (self._user is None) != (self._password is None):
            raise ValueError("a user name and a password must be given together")
        settings = Settings(
            tuple(f"{host}/{self._prefix}" if self._prefix else host for host in self._hosts),
            self._guarantee,
            self._most_actions,
            self._most_megabytes << 20 if self._most_megabytes > 0 else -1,
            self._interval,
            self._retries,
            None if self._user is None or self._password is None else (self._user, self._password),
            max(self._timeouts.values()) / 1000 if self._timeouts else None,
        )
        return ElasticsearchSink(self._emitter, settings)


class Elasticsearch7SinkBuilder(ElasticsearchSinkBuilderBase):
    """Builds a sink for Elasticsearch 7.14 and later.

    >>> sink = (
    ...     Elasticsearch7SinkBuilder()
    ...     .set_hosts("localhost:9200")
    ...     .set_emitter(ElasticsearchEmitter.static_index("users", key_field="id"))
    ...     .build()
    ... )
    """


def _address(host: str) -> str:
    parts = urlsplit(host if "://" in str(host) else f"http://{host}")
    try:
        port = parts.port
    except ValueError:
        port = -1
    if not parts.hostname or parts.scheme not in ("http", "https") or port == -1 or parts.path.strip("/"):
        raise ValueError(f"a host is written as host:port or http(s)://host:port, not {host!r}")
    if parts.username is not None:
        raise ValueError("user and password are set with set_connection_username and set_connection_password")
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{name}:{port or (443 if parts.scheme == 'https' else DEFAULT_PORT)}"


def _limit(value: int, what: str) -> int:
    if not isinstance(value, int) or (value < 1 and value != -1):
        raise ValueError(f"the {what} is at least 1, or -1 for none, not {value!r}")
    return value
