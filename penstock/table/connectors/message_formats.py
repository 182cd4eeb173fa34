"""Formats of messages: the conversion of bytes into rows with kinds, and of rows into bytes."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Sequence
from typing import Any

from penstock.common.types import Row, RowKind
from penstock.errors import UndecodableRecord, ValidationException
from penstock.formats.avro.avro_format import AvroRowDeserializationSchema, AvroRowSerializationSchema
from penstock.formats.csv.csv_format import CsvRowDeserializationSchema, CsvRowSerializationSchema
from penstock.formats.json.json_format import JsonRowDeserializationSchema, JsonRowSerializationSchema
from penstock.formats.message_batches import WritesTogether
from penstock.table.connectors.contract import Options
from penstock.table.connectors.message_columns import MessageColumns, RawColumn, SchemaColumns, TextColumns
from penstock.table.connectors.table_formats import CHANGELOGS, json_texts, row_texts, row_type
from penstock.table.logical.nodes import Columns
from penstock.table.types import data_types as t

Decode = Callable[[bytes], "list[Row]"]
Encode = Callable[[Row], "bytes | None"]
MESSAGES = ("json", "csv", "avro", "raw", *CHANGELOGS)


class Prefixed(Options):
    """The options of a format whose names begin with a prefix, such as `value.`."""

    def __init__(self, options: Options, prefix: str) -> None:
        given = {name.removeprefix(prefix): value for name, value in options.given.items() if name.startswith(prefix)}
        super().__init__(options.table, given if prefix else options.given)
        self._outer, self._prefix = options, prefix

    def text(self, name: str, default: str | None = None) -> str | None:
        self._outer.asked.add(self._prefix + name)
        return super().text(name, default)


def is_changelog(name: str | None) -> bool:
    """Return True for a format whose messages describe changes, such as `debezium-json`."""
    return name in CHANGELOGS


def decoder(options: Options, name: str, columns: Columns) -> Decode:
    """Return the reader of a format's messages."""
    if name in CHANGELOGS:
        return _changelog_decoder(options, name, columns)
    if name == "raw":
        return _raw_decoder(options, columns)
    ignores = options.flag(f"{name}.ignore-parse-errors")
    schema = _row_schema(options, name, columns)
    return _Plain(schema.deserialize, ignores, SchemaColumns(schema, columns) if columns else None)


class _Plain:
    """Makes one row from each message. It can skip bad messages."""

    def __init__(
        self, read: Callable[[bytes], Row | None], ignores: bool, columns: MessageColumns | None = None
    ) -> None:
        self._read = read
        self._ignores = ignores
        self.columns = columns
        """Reads many messages at once, if the format allows it."""

    def __call__(self, message: bytes) -> list[Row]:
        try:
            row = self._read(message)
        except UndecodableRecord:
            if self._ignores:
                return []
            raise
        return [] if row is None else [row]


def _row_schema(options: Options, name: str, columns: Columns) -> Any:
    kinds = row_type(columns)
    if name == "json":
        builder = JsonRowDeserializationSchema.builder().type_info(kinds)
        json_texts(options, columns)
        if options.flag("json.fail-on-missing-field"):
            builder = builder.fail_on_missing_field()
        return builder.build()
    if name == "csv":
        made = CsvRowDeserializationSchema.Builder(kinds).set_field_delimiter(
            options.text("csv.field-delimiter", ",") or ","
        )
        null = options.text("csv.null-literal")
        return (made if null is None else made.set_null_literal(null)).build()
    if name == "avro":
        return AvroRowDeserializationSchema(avro_schema_string=avro_schema(columns))
    raise ValidationException(
        f"table {options.table}: messages have no format '{name}'; allowed are {_names_of_formats()}"
    )


def _names_of_formats() -> str:
    return ", ".join(MESSAGES)


# --- change data capture ---
def _changelog_decoder(options: Options, name: str, columns: Columns) -> Decode:
    read = JsonRowDeserializationSchema.builder().type_info(row_type(columns)).build().deserialize
    ignores = options.flag(f"{name}.ignore-parse-errors")
    options.text(f"{name}.timestamp-format.standard")
    wrapped = options.flag(f"{name}.schema-include") if name == "debezium-json" else False
    wanted = {key: options.text(f"{name}.{key}.include") for key in ("database", "table")}
    how = {"debezium-json": _debezium, "canal-json": _canal, "maxwell-json": _maxwell, "ogg-json": _ogg}[name]
    return _Changes(read, how, ignores, wrapped, {key: value for key, value in wanted.items() if value})


class _Changes:
    """Makes rows from a message that describes changes."""

    def __init__(self, read: Any, how: Any, ignores: bool, wrapped: bool, wanted: dict[str, str]) -> None:
        self._read, self._how, self._ignores, self._wrapped, self._wanted = read, how, ignores, wrapped, wanted

    def __call__(self, message: bytes) -> list[Row]:
        if not message:
            return []
        try:
            document = json.loads(message)
            if self._wrapped:
                document = document["payload"]
            if any(document.get(key) != value for key, value in self._wanted.items()):
                return []
            return [self._row(kind, values) for kind, values in self._how(document)]
        except (UndecodableRecord, ValueError, KeyError, TypeError, AttributeError) as error:
            if self._ignores:
                return []
            raise UndecodableRecord(f"{message[:80]!r} is not a change that the format can read: {error}") from error

    def _row(self, kind: RowKind, values: Any) -> Row:
        row: Row = self._read(json.dumps(values).encode())
        row.set_row_kind(kind)
        return row


Changed = Sequence[tuple[RowKind, Any]]


def _debezium(document: dict[str, Any]) -> Changed:
    operation, before, after = document["op"], document.get("before"), document.get("after")
    if operation in ("c", "r"):
        return [(RowKind.INSERT, after)]
    if operation == "d":
        return [(RowKind.DELETE, _require_before(before))]
    if operation == "u":
        return [(RowKind.UPDATE_BEFORE, _require_before(before)), (RowKind.UPDATE_AFTER, after)]
    raise ValueError(f"the operation {operation!r} is unknown")


def _require_before(before: Any) -> Any:
    if before is None:
        raise ValueError("the row before the change is missing: set the table's REPLICA IDENTITY to FULL")
    return before


def _canal(document: dict[str, Any]) -> Changed:
    kind, rows = document["type"], document.get("data") or []
    if kind == "INSERT":
        return [(RowKind.INSERT, row) for row in rows]
    if kind == "DELETE":
        return [(RowKind.DELETE, row) for row in rows]
    if kind == "UPDATE":
        pairs = zip(rows, document.get("old") or [{}] * len(rows), strict=True)
        return [change for row, old in pairs for change in _update({**row, **(old or {})}, row)]
    return []


def _maxwell(document: dict[str, Any]) -> Changed:
    kind, row = document["type"], document["data"]
    if kind == "insert":
        return [(RowKind.INSERT, row)]
    if kind == "delete":
        return [(RowKind.DELETE, row)]
    return _update({**row, **(document.get("old") or {})}, row) if kind == "update" else []


def _ogg(document: dict[str, Any]) -> Changed:
    operation, before, after = document["op_type"], document.get("before"), document.get("after")
    if operation == "I":
        return [(RowKind.INSERT, after)]
    if operation == "D":
        return [(RowKind.DELETE, before)]
    return _update(before, after) if operation == "U" else []


def _update(before: Any, after: Any) -> Changed:
    return [(RowKind.UPDATE_BEFORE, before), (RowKind.UPDATE_AFTER, after)]


# --- raw ---
def _raw_decoder(options: Options, columns: Columns) -> Decode:
    charset = options.text("raw.charset", "UTF-8") or "UTF-8"
    options.text("raw.endianness")
    name, kind = _only(options, columns)
    make = Row(name)
    if not isinstance(kind, (t.VarCharType, t.CharType)):
        return _Plain(make, False, RawColumn(kind))
    whole = RawColumn(kind) if codecs.lookup(charset).name == "utf-8" else None
    return _Plain(lambda message: make(message.decode(charset)), False, whole)


def _only(options: Options, columns: Columns) -> tuple[str, t.DataType]:
    texts = (t.VarCharType, t.CharType, t.VarBinaryType, t.BinaryType)
    if len(columns) != 1 or not isinstance(columns[0].type, texts):
        raise ValidationException(
            f"table {options.table}: the format 'raw' needs a table with one column, a STRING or BYTES"
        )
    return columns[0].name, columns[0].type


# --- writing ---
def encoder(options: Options, name: str, columns: Columns) -> Encode:
    """Return the writer of a format's messages. For change data capture, a message holds the row's kind."""
    if name == "raw":
        charset = options.text("raw.charset", "UTF-8") or "UTF-8"
        _only(options, columns)
        return lambda row: row[0].encode(charset) if isinstance(row[0], str) else row[0]
    if name == "avro":
        schema = AvroRowSerializationSchema(avro_schema_string=avro_schema(columns))
        return _Written(None, schema.serialize, schema)
    if name == "csv":
        texts = row_texts(columns, "sql")
        builder = CsvRowSerializationSchema.Builder(texts.row_type).set_field_delimiter(
            options.text("csv.field-delimiter", ",") or ","
        )
        null = options.text("csv.null-literal")
        csv = (builder if null is None else builder.set_null_literal(null)).build()
        return _Line(texts.of_row, csv.serialize, TextColumns(csv.write_columns, texts))
    if name == "json" or name in CHANGELOGS:
        texts = json_texts(options, columns)
        written = JsonRowSerializationSchema.builder().with_type_info(texts.row_type).build()
        plain = _Line(texts.of_row, written.serialize, TextColumns(written.write_columns, texts))
        return plain if name == "json" else _Captured(name, plain)
    raise ValidationException(
        f"table {options.table}: messages have no format '{name}'; allowed are {_names_of_formats()}"
    )


class _Written:
    """Prepares a row and writes it."""

    def __init__(
        self, prepare: Callable[[Row], Row] | None, write: Callable[[Row], bytes], columns: WritesTogether
    ) -> None:
        self._prepare = prepare
        self._write = write
        self.columns = columns
        """Writes many rows at once."""

    def __call__(self, row: Row) -> bytes:
        return self._write(row if self._prepare is None else self._prepare(row))


class _Line(_Written):
    """Writes a row without a line end."""

    def __call__(self, row: Row) -> bytes:
        return super().__call__(row).rstrip(b"\n")


class _Captured:
    """Writes a change in the form of change data capture. An update is a delete and an insert."""

    def __init__(self, name: str, write: _Written) -> None:
        self._name = name
        self._write = write

    def __call__(self, row: Row) -> bytes:
        values = json.loads(self._write(row))
        added = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
        if self._name == "debezium-json":
            document = {"before": None if added else values, "after": values if added else None, "op": "cd"[not added]}
        elif self._name == "canal-json":
            document = {"data": [values], "type": "INSERT" if added else "DELETE"}
        elif self._name == "maxwell-json":
            document = {"data": values, "type": "insert" if added else "delete"}
        else:
            key = "after" if added else "before"
            document = {key: values, "op_type": "I" if added else "D"}
        return json.dumps(document).encode()


# --- avro ---
_AVRO: dict[type[t.DataType], Any] = {
    t.BooleanType: "boolean",
    t.TinyIntType: "int",
    t.SmallIntType: "int",
    t.IntType: "int",
    t.BigIntType: "long",
    t.FloatType: "float",
    t.DoubleType: "double",
    t.CharType: "string",
    t.VarCharType: "string",
    t.BinaryType: "bytes",
    t.VarBinaryType: "bytes",
    t.DateType: {"type": "int", "logicalType": "date"},
    t.TimeType: {"type": "int", "logicalType": "time-millis"},
    t.TimestampType: {"type": "long", "logicalType": "timestamp-millis"},
    t.LocalZonedTimestampType: {"type": "long", "logicalType": "timestamp-millis"},
}


def avro_schema(columns: Columns) -> str:
    """Return the Avro schema of a table's columns."""
    kind = t.RowType([(column.name, column.type) for column in columns], nullable=False)
    return json.dumps(_avro(kind, "record"))


def _avro(kind: t.DataType, name: str) -> Any:
    made = _AVRO.get(type(kind))
    match kind:
        case t.TimestampType() | t.LocalZonedTimestampType() if kind.precision > 3:
            made = {"type": "long", "logicalType": "timestamp-micros"}
        case t.DecimalType():
            made = {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
        case t.ArrayType():
            made = {"type": "array", "items": _avro(kind.element_type, f"{name}_item")}
        case t.MapType():
            made = {"type": "map", "values": _avro(kind.value_type, f"{name}_value")}
        case t.RowType():
            fields = [{"name": f.name, "type": _avro(f.data_type, f"{name}_{f.name}")} for f in kind.fields]
            made = {"type": "record", "name": name, "fields": fields}
    if made is None:
        raise ValidationException(f"{kind.as_sql()} has no type in Avro")
    return ["null", made] if kind.is_nullable else made
