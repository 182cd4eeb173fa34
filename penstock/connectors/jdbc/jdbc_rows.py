"""The rows of a query as records of a stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from penstock.common.time import Instant
from penstock.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from penstock.common.types import make_row
from penstock.errors import SchemaMismatch, TypeMismatch

_READ: dict[TypeInformation, Callable[[Any], Any]] = {
    Types.SQL_DATE(): lambda value: date.fromisoformat(value) if isinstance(value, str) else value,
    Types.SQL_TIME(): lambda value: time.fromisoformat(value) if isinstance(value, str) else value,
    Types.SQL_TIMESTAMP(): lambda value: datetime.fromisoformat(value) if isinstance(value, str) else value,
    Types.INSTANT(): lambda value: _instant(datetime.fromisoformat(value) if isinstance(value, str) else value),
    Types.BIG_DEC(): lambda value: value if isinstance(value, Decimal) or value is None else Decimal(str(value)),
    Types.BOOLEAN(): lambda value: bool(value) if type(value) is int and value in (0, 1) else value,
}
"""Converters for databases that lack these types. SQLite, for example, has only text and numbers."""


def _instant(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    since = (value if value.tzinfo is not None else value.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return Instant(since.days * 86_400 + since.seconds, since.microseconds * 1000)


@dataclass(frozen=True)
class RowMaker:
    """Gives the rows of a query the declared type. Without one they become rows with the names of the columns.

    Raises SchemaMismatch for a wrong number of columns, and TypeMismatch for a value of another type.
    """

    type_info: TypeInformation | None

    def of(self, rows: Sequence[tuple[Any, ...]], columns: Sequence[str]) -> list[Any]:
        declared = self.type_info
        if declared is None:
            names = tuple(columns)
            return [make_row(names, row) for row in rows]
        composite = isinstance(declared, (RowTypeInfo, TupleTypeInfo))
        types = declared.get_field_types() if isinstance(declared, (RowTypeInfo, TupleTypeInfo)) else [declared]
        if len(types) != len(columns):
            raise SchemaMismatch(f"the query has the columns {list(columns)}, which do not fit {declared.notation}")
        try:
            read = _read(rows, types)
        except (ValueError, ArithmeticError) as error:
            raise TypeMismatch(f"a row does not fit {declared.notation}: {error}") from error
        return declared.fit(read if composite else [value for (value,) in read])


def _read(rows: Sequence[tuple[Any, ...]], types: Sequence[TypeInformation]) -> list[tuple[Any, ...]]:
    readers = [_READ.get(declared) for declared in types]
    if not any(readers) or not rows:
        return list(rows)
    columns = [
        list(map(reader, column)) if reader is not None else column
        for reader, column in zip(readers, zip(*rows, strict=True), strict=True)
    ]
    return list(zip(*columns, strict=True))
