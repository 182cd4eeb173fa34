"""Rows and columns of tables as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.base.display.html_parts import Heading, grid
from penstock.common.types import Row
from penstock.table.catalogs.resolved_schema import ResolvedSchema
from penstock.table.display.row_printing import texts_of
from penstock.table.logical.nodes import PROCTIME, ROWTIME
from penstock.table.types.data_types import DataType, DecimalType, DoubleType, FloatType, IntegralType
from penstock.table.types.data_types import LocalZonedTimestampType as Moment

_NUMBERS = (IntegralType, DecimalType, DoubleType, FloatType)
_TIMES = {ROWTIME: "event time", PROCTIME: "processing time"}


def headings(names: Sequence[str], types: Sequence[DataType], zone: str) -> list[Heading]:
    """Return the headings of columns. A column of moments names the zone in which they are shown."""
    return [
        Heading(name, kind.as_sql() + (f" in {zone}" if isinstance(kind, Moment) else ""), isinstance(kind, _NUMBERS))
        for name, kind in zip(names, types, strict=True)
    ]


def rows_as_html(schema: ResolvedSchema, rows: Iterable[Row], zone: str) -> str:
    """Return rows under the names and types of their columns."""
    names, types = schema.get_column_names(), schema.types()
    return grid(headings(names, types, zone), [texts_of(row, types, zone) for row in rows])


def schema_as_html(schema: ResolvedSchema) -> str:
    """Return the columns of a table, one in each line, with their declared constraints."""
    marks = {mark.rowtime_attribute: f"watermark {mark.watermark_expression}" for mark in schema.get_watermark_specs()}
    key = schema.get_primary_key()
    keys = set(key.columns) if key is not None else set()
    lines = []
    for column in schema.get_columns():
        is_key = "primary key" if column.name in keys else None
        time = _TIMES[column.time] if column.time else None
        about = (is_key, time, marks.get(column.name), column.explain_extras(), column.comment)
        lines.append([column.name, column.data_type.as_sql(), ", ".join(part for part in about if part)])
    return grid([Heading("column"), Heading("type"), Heading("")], lines)
