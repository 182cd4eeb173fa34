"""Descriptors of tables from before Flink 1.14: a schema and its event time, as properties.

No statement takes them any more: programs that still build them read `to_properties()`. New programs describe a table
with `penstock.table.TableDescriptor`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from penstock.base.arguments import check_arguments
from penstock.errors import UnsupportedOperation, ValidationException
from penstock.table.table_schema import TableSchema
from penstock.table.types import data_types as t

__all__ = ["Descriptor", "Rowtime", "Schema"]

_OLD_NAMES = {"SQL_TIMESTAMP": "TIMESTAMP(3)", "SQL_TIME": "TIME(0)", "SQL_DATE": "DATE"}


class Descriptor:
    """A description of a part of a table, as properties."""

    def __init__(self) -> None:
        self._properties: dict[str, str] = {}

    def to_properties(self) -> dict[str, str]:
        """Return the properties by their names."""
        return dict(self._properties)


@check_arguments
class Rowtime(Descriptor):
    """The origin of event time and of its watermarks.

    >>> Rowtime().timestamps_from_source().to_properties()
    {'rowtime.timestamps.type': 'from-source'}
    """

    def timestamps_from_field(self, field_name: str) -> Rowtime:
        """Take the timestamps from a field."""
        return self._set("timestamps", type="from-field", **{"from": field_name})

    def timestamps_from_source(self) -> Rowtime:
        """Keep the timestamps that the records have."""
        return self._set("timestamps", type="from-source")

    def timestamps_from_extractor(self, extractor: str) -> NoReturn:
        """Refuse a class of Java."""
        raise UnsupportedOperation(f"{extractor} is a Java class; take the timestamps from a field or from the source")

    def watermarks_periodic_ascending(self) -> Rowtime:
        """Make watermarks for timestamps that only ascend."""
        return self._set("watermarks", type="periodic-ascending")

    def watermarks_periodic_bounded(self, delay: int) -> Rowtime:
        """Make watermarks that are `delay` milliseconds behind the greatest timestamp."""
        return self._set("watermarks", type="periodic-bounded", delay=str(delay))

    def watermarks_from_source(self) -> Rowtime:
        """Keep the watermarks of the source."""
        return self._set("watermarks", type="from-source")

    def watermarks_from_strategy(self, strategy: str) -> NoReturn:
        """Refuse a class of Java."""
        raise UnsupportedOperation(f"{strategy} is a Java class; make the watermarks periodic or take the source's")

    def _set(self, part: str, **values: str) -> Rowtime:
        """Replace all properties of a part."""
        others = {name: value for name, value in self._properties.items() if not name.startswith(f"rowtime.{part}.")}
        self._properties = others | {f"rowtime.{part}.{name}": value for name, value in values.items()}
        return self


@check_arguments
class Schema(Descriptor):
    """The fields of a table, in their order.

    >>> Schema().field("n", "INT").proctime().to_properties()
    {'schema.0.name': 'n', 'schema.0.data-type': 'INT', 'schema.0.proctime': 'true'}
    """

    def __init__(
        self,
        schema: TableSchema | None = None,
        fields: Mapping[str, t.DataType | str] | None = None,
        rowtime: Rowtime | None = None,
    ) -> None:
        super().__init__()
        self._count = 0
        if schema is not None:
            self.schema(schema)
        if fields is not None:
            self.fields(fields)
        if rowtime is not None:
            self.rowtime(rowtime)

    def schema(self, table_schema: TableSchema) -> Schema:
        """Replace the fields by those of a TableSchema."""
        self._properties, self._count = {}, 0
        kinds = table_schema.get_field_data_types()
        return self.fields(dict(zip(table_schema.get_field_names(), kinds, strict=True)))

    def field(self, field_name: str, field_type: t.DataType | str) -> Schema:
        """Add a field."""
        kind = _OLD_NAMES.get(field_type, field_type) if isinstance(field_type, str) else _type_text(field_type)
        self._count += 1
        self._set("name", field_name)
        return self._set("data-type", kind)

    def fields(self, fields: Mapping[str, t.DataType | str]) -> Schema:
        """Add fields in their order."""
        for name, kind in fields.items():
            self.field(name, kind)
        return self

    def from_origin_field(self, origin_field_name: str) -> Schema:
        """Name the field of the source that the last field comes from."""
        return self._set("from", origin_field_name)

    def proctime(self) -> Schema:
        """Make the last field the time of processing."""
        return self._set("proctime", "true")

    def rowtime(self, rowtime: Rowtime) -> Schema:
        """Make the last field the event time."""
        for name, value in rowtime.to_properties().items():
            self._set(name, value)
        return self

    def _set(self, name: str, value: str) -> Schema:
        if not self._count:
            raise ValidationException(
                f"Schema: '{name}' applies to the last field, and there is no field yet: add a field first"
            )
        self._properties[f"schema.{self._count - 1}.{name}"] = value
        return self


def _type_text(kind: t.DataType) -> str:
    """Return the SQL text of a type. STRING and BYTES are written with their lengths."""
    text = kind.as_sql()
    for short, long in (("STRING", "VARCHAR"), ("BYTES", "VARBINARY")):
        if text.removesuffix(" NOT NULL") == short:
            return text.replace(short, f"{long}({t.LONGEST})")
    return text
