"""The first rows of a table, for people."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.base.display.html_parts import note
from penstock.base.display.short_texts import count, one_line, printable
from penstock.common.types import Row
from penstock.table.catalogs.resolved_schema import ResolvedSchema
from penstock.table.display.row_grids import rows_as_html
from penstock.table.display.row_printing import cut, frame, show_vertically, texts_of
from penstock.table.logical.nodes import Project, Relation, Values
from penstock.table.logical.rex import InputRef, Literal
from penstock.table.types.arrow_forms import array_of, values_of
from penstock.table.types.data_types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    TimestampType,
    TimeType,
)
from penstock.table.types.data_types import LocalZonedTimestampType as Moment

_NEVER_CUT = (IntegralType, DecimalType, FloatType, DoubleType, DateType, TimeType, TimestampType, Moment)
UNLIMITED = 1_000_000
"""Width of a column that is not cut."""


@dataclass(frozen=True)
class FirstRows:
    """The first rows of a table with its schema."""

    schema: ResolvedSchema
    rows: Sequence[Row]
    has_more: bool
    """True if the table has more rows than these."""
    zone: str = "UTC"
    """Time zone in which values of TIMESTAMP_LTZ are shown."""

    def as_html(self) -> str:
        """Return the rows as HTML."""
        return rows_as_html(self.schema, self.rows, self.zone) + note(self._closing())

    def as_text(self, widest: int = 20, vertical: bool = False) -> str:
        """Return the rows in a frame, or each value in a line of its own.

        Texts, bytes and nested values are cut to `widest` columns of the terminal; numbers and times are not.
        """
        names, types, out = self.schema.get_column_names(), self.schema.types(), io.StringIO()
        widths = [UNLIMITED if isinstance(kind, _NEVER_CUT) else widest for kind in types]
        texts = [
            [text and cut(one_line(printable(text)), wide) for text, wide in zip(row, widths, strict=True)]
            for row in (texts_of(row, types, self.zone) for row in self.rows)
        ]
        (show_vertically if vertical else frame)(names, texts, out, self._closing())
        return out.getvalue()

    def _closing(self) -> str:
        shown = count(len(self.rows), "row")
        return f"the first {shown}; there are more" if self.has_more else shown


def rows_without_job(relation: Relation, schema: ResolvedSchema, most: int, zone: str) -> FirstRows | None:
    """Return the first rows of a table that was made of values, which need no job; None for any other table."""
    columns = _columns(relation, most + 1)
    if columns is None:
        return None
    rows = [Row(*values) for values in zip(*columns, strict=True)]
    return FirstRows(schema, rows[:most], len(rows) > most, zone)


def _columns(relation: Relation, most: int) -> list[list[Any]] | None:
    """Return the values of each column, in the form in which results have them."""
    match relation:
        case Values():
            rows = [[one.value if isinstance(one, Literal) else one for one in row] for row in relation.rows[:most]]
            parts = [[row[index] for row in rows] for index in range(len(relation.columns))]
            return [values_of(array_of(part, kind), kind) for part, kind in zip(parts, relation.types(), strict=True)]
        case Project():
            indexes = [expr.index for expr in relation.exprs if isinstance(expr, InputRef)]
            inner = _columns(relation.input, most) if len(indexes) == len(relation.exprs) else None
            return None if inner is None else [inner[index] for index in indexes]
    return None
