"""Sending documents to Elasticsearch in bulk requests, and handling those that it rejects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.api.functions.source_functions import SinkFunction
from penstock.base.libraries import optional_library
from penstock.connectors.retrying import Retries
from penstock.connectors.source_api import DeliveryGuarantee, SinkWriter
from penstock.errors import AccessDenied, ConnectorError, NotFound, SchemaMismatch, TypeMismatch

if TYPE_CHECKING:
    from penstock.connectors.elasticsearch.elasticsearch_sinks import ElasticsearchSink

BUSY = (429, 502, 503, 504)
"""Statuses of answers after which another attempt may succeed."""
HEADERS = {"accept": "application/json", "content-type": "application/x-ndjson"}
"""Headers that every version understands. The client's own would name one version."""
_ABOUT = {
    "_index": "_index",
    "_id": "_id",
    "_type": "_type",
    "_routing": "routing",
    "retry_on_conflict": "retry_on_conflict",
}
"""Fields of an action about its document, with their names in a request."""
_KINDS: dict[int, type[ConnectorError]] = {400: SchemaMismatch, 401: AccessDenied, 403: AccessDenied, 404: NotFound}


def client_package(module: str = "elasticsearch") -> Any:
    """Import a module of the client library."""
    return optional_library(module, "Elasticsearch needs the package elasticsearch", "elasticsearch")


@dataclass(frozen=True)
class Settings:
    """The settings that a builder collected; -1 means no limit."""

    hosts: tuple[str, ...]
    guarantee: DeliveryGuarantee
    most_actions: int
    most_bytes: int
    interval: int
    """Time, in milliseconds, after which a document is sent even if the request is not full."""
    retries: Retries
    credentials: tuple[str, str] | None = field(repr=False)
    timeout: float | None
    """Longest time, in seconds, for a request."""

    @property
    def address(self) -> str:
        return ", ".join(self.hosts)


@dataclass(frozen=True)
class Action:
    """One action of a bulk request: one or two lines."""

    kind: str
    index: str
    id: str | None
    lines: tuple[bytes, ...]

    @property
    def size(self) -> int:
        return sum(map(len, self.lines)) + len(self.lines)

    def __str__(self) -> str:
        name = f"document {self.id!r}" if self.id is not None else "a document"
        text = self.lines[-1].decode(errors="replace")
        return f"{name} for index {self.index!r} ({text if len(text) <= 200 else text[:197] + '...'})"


class Encoding:
    """Turns actions, in the form of the client's own helpers, into lines of JSON."""

    def __init__(self) -> None:
        self._json = client_package("elasticsearch.serializer").JsonSerializer()

    def action(self, said: dict[str, Any]) -> Action:
        """Check an action, and encode it."""
        fields = dict(said)
        kind = fields.pop("_op_type", "index")
        body = fields.pop("_source", None)
        about = {sent: fields.pop(name) for name, sent in _ABOUT.items() if fields.get(name) is not None}
        if kind not in ("index", "create", "update", "delete") or "_index" not in about:
            raise TypeMismatch(
                f"an action has an _index and an _op_type of index, create, update or delete, not {said!r}"
            )
        if kind == "update" and body is None:
            body, fields = fields, {}
        if fields or (body is None) != (kind == "delete"):
            raise TypeMismatch(f"an action has a document as its _source unless it is a delete, not {said!r}")
        if "_id" in about:
            about["_id"] = str(about["_id"])
        lines = [{kind: about}] if kind == "delete" else [{kind: about}, body]
        return Action(kind, about["_index"], about.get("_id"), tuple(map(self._encode, lines)))

    def _encode(self, value: Any) -> bytes:
        try:
            return bytes(self._json.dumps(value))
        except (client_package().SerializationError, TypeError, ValueError) as error:
            raise TypeMismatch(f"this record cannot be written as JSON: {error}") from error


class BulkWriter(SinkWriter):
    """Buffers actions and sends them together. Each request waits for the answer to the one before."""

    def __init__(self, sink: ElasticsearchSink) -> None:
        self._settings = sink.settings
        self._emitter = sink.emitter
        self._encoding = Encoding()
        self._actions: list[Action] = []
        self._bytes = 0
        self._due: int | None = None
        self._client = self._connect()

    def _connect(self) -> Any:
        settings = self._settings
        options: dict[str, Any] = {"max_retries": 0, "retry_on_timeout": False}
        if settings.credentials is not None:
            options["basic_auth"] = settings.credentials
        if settings.timeout is not None:
            options["request_timeout"] = settings.timeout
        return client_package().Elasticsearch(list(settings.hosts), **options)

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        for said in self._emitter.emit(value):
            action = self._encoding.action(said)
            self._actions.append(action)
            self._bytes += action.size
        if self._is_full():
            self._send()

    def _is_full(self) -> bool:
        most_actions, most_bytes = self._settings.most_actions, self._settings.most_bytes
        return 0 < most_actions <= len(self._actions) or 0 < most_bytes <= self._bytes

    def flush(self, end_of_input: bool) -> None:
        if end_of_input or self._settings.guarantee is DeliveryGuarantee.AT_LEAST_ONCE:
            self._send()

    def end_epoch(self, now: int) -> None:
        if self._settings.interval < 0 or not self._actions:
            self._due = None
        elif self._due is None:
            self._due = now + self._settings.interval
        elif now >= self._due:
            self._send()
            self._due = None

    def next_due(self) -> int | None:
        return self._due

    def close(self) -> None:
        self._client.close()

    # --- sending ---
    def _send(self) -> None:
        waiting, self._actions, self._bytes = self._actions, [], 0
        if waiting:
            what = f"sending {len(waiting)} documents to Elasticsearch at {self._settings.address}"
            self._settings.retries.call(lambda: self._bulk(waiting), what, is_transient)

    def _bulk(self, waiting: list[Action]) -> None:
        """Send the actions once. Afterwards `waiting` holds the actions that must be sent again."""
        lines = [line for action in waiting for line in action.lines]
        try:
            answer = self._client.perform_request("POST", "/_bulk", headers=HEADERS, body=lines)
        except client_package().ApiError as error:
            raise self._refusal(error) from error
        results = [next(iter(item.values())) for item in answer.body["items"]]
        refused = [
            result["status"] not in _good_statuses(action) for action, result in zip(waiting, results, strict=True)
        ]
        for action, result, was_refused in zip(waiting, results, refused, strict=True):
            if was_refused and result["status"] not in BUSY:
                raise _not_taken(action, result)
        waiting[:] = _again(waiting, refused)
        if waiting:
            first = results[refused.index(True)]
            raise _Busy(
                f"Elasticsearch temporarily rejected {sum(refused)} documents, the first with: {_reason(first)}"
            )

    def _refusal(self, error: Any) -> Exception:
        status = error.meta.status
        reason = _reason(error.body) if isinstance(error.body, dict) else error.message
        if status in BUSY:
            return _Busy(f"status {status}: {reason}")
        kind = _KINDS.get(status, ConnectorError) if status != 400 else ConnectorError
        return kind(f"Elasticsearch at {self._settings.address} rejected the request with status {status}: {reason}")


class _Busy(Exception):
    """Raised if the cluster is overloaded or only partly available."""


def is_transient(error: Exception) -> bool:
    """Return True if another attempt may succeed."""
    lost = client_package("elastic_transport")
    return isinstance(error, (_Busy, lost.ConnectionError, lost.ConnectionTimeout))


def _good_statuses(action: Action) -> tuple[int, ...]:
    """Return the statuses of success. A document that is to be deleted may be gone already."""
    return (200, 201, 404) if action.kind == "delete" else (200, 201)


def _again(actions: list[Action], failed: list[bool]) -> list[Action]:
    """Return the failed actions, and later ones for the same documents, so that the last one still wins."""
    again, documents = [], set()
    for action, has_failed in zip(actions, failed, strict=True):
        document = (action.index, action.id)
        if has_failed or (action.id is not None and document in documents):
            again.append(action)
            documents.add(document)
    return again


def _reason(result: dict[str, Any]) -> str:
    error = result.get("error") or {}
    if not isinstance(error, dict):
        return str(error)
    cause = (error.get("caused_by") or {}).get("reason")
    return f"{error.get('type')}: {error.get('reason')}{f' ({cause})' if cause else ''}"


def _not_taken(action: Action, result: dict[str, Any]) -> ConnectorError:
    kind = _KINDS.get(result["status"], ConnectorError)
    return kind(f"Elasticsearch rejected {action} with status {result['status']}: {_reason(result)}")
