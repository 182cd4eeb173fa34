"""The connector 'elasticsearch-7': rows as documents. With a primary key, a row replaces the former one."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from typing import Any

from penstock.common.types import Row, RowKind
from penstock.connectors.elasticsearch.elasticsearch_sinks import Elasticsearch7SinkBuilder, ElasticsearchEmitter
from penstock.connectors.source_api import DeliveryGuarantee
from penstock.datastream.data_stream import DataStream
from penstock.errors import ValidationException
from penstock.table.connectors.contract import Connector, Declared
from penstock.table.connectors.table_formats import moment_text

_FIELD = re.compile(r"\{([^{}|]+)(?:\|([^{}]*))?\}")


class Elasticsearch(Connector):
    """Writes documents. As in Flink, it cannot be read."""

    name = "elasticsearch-7"

    def takes_changes(self, table: Declared) -> bool:
        return bool(table.key)

    def is_upsert_sink(self, table: Declared, changelog: bool) -> bool:
        return bool(table.key) and changelog

    def sink(self, stream: DataStream, table: Declared, changelog: bool) -> None:
        options = table.options
        builder = Elasticsearch7SinkBuilder().set_hosts(options.require("hosts").split(";"))
        keys = [table.columns[index].name for index in table.key]
        separator = options.text("document-id.key-delimiter", "_") or "_"
        builder.set_emitter(_Rows(options.require("index"), keys, separator))
        guarantee = options.choice("sink.delivery-guarantee", ("at-least-once", "none"), "at-least-once")
        builder.set_delivery_guarantee(DeliveryGuarantee[guarantee.replace("-", "_").upper()])
        actions = options.whole("sink.bulk-flush.max-actions")
        if actions:
            builder.set_bulk_flush_max_actions(actions)
        interval = options.millis("sink.bulk-flush.interval")
        if interval:
            builder.set_bulk_flush_interval(interval)
        user, password = options.text("username"), options.text("password")
        if user and password:
            builder.set_connection_username(user).set_connection_password(password)
        prefix = options.text("connection.path-prefix")
        if prefix:
            builder.set_connection_path_prefix(prefix)
        if options.text("format", "json") != "json":
            raise ValidationException(
                f"table {table.name}: documents of Elasticsearch are JSON, and 'format' must be 'json'"
            )
        for name in ("sink.bulk-flush.max-size", "sink.flush-on-checkpoint", "failure-handler", "sink.parallelism"):
            options.text(name)
        options.below("sink.bulk-flush.backoff.")
        options.refuse_unknown()
        stream.sink_to(builder.build()).name(f"elasticsearch {table.name}")


class _Rows(ElasticsearchEmitter):
    """Actions for rows with kinds."""

    def __init__(self, index: str, keys: list[str], separator: str) -> None:
        self._index, self._keys, self._separator = index, keys, separator

    def emit(self, element: Any) -> Iterable[dict[str, Any]]:
        row: Row = element
        kind = row.get_row_kind()
        if kind is RowKind.UPDATE_BEFORE:
            return []
        document = {name: _plain(value) for name, value in row.as_dict(recursive=True).items()}
        action: dict[str, Any] = {"_index": self._index_of(document)}
        if not self._keys:
            return [{**action, "_source": document}]
        action["_id"] = self._separator.join(str(document[key]) for key in self._keys)
        if kind is RowKind.DELETE:
            return [{**action, "_op_type": "delete"}]
        return [{**action, "_op_type": "index", "_source": document}]

    def _index_of(self, document: dict[str, Any]) -> str:
        """Return the index of a document. Its name may contain fields, such as `orders-{day}`."""
        return _FIELD.sub(lambda found: str(document.get(found[1])), self._index)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return moment_text(value, "iso-8601", 6)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value if isinstance(value, (int, float, str, bool, type(None))) else str(value)
