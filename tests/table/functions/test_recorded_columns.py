"""Random expressions over columns with NULLs, against what Flink 2.3 made of the same rows."""

from __future__ import annotations

import datetime
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.table import types as t
from penstock.table.arrow import array_of, values_of
from penstock.table.functions import compiled
from penstock.table.plan.nodes import Column
from penstock.table.sql import Binder
from penstock.table.sql.type_parser import parse_type

sys.path.insert(0, str(Path(__file__).parent))
from plain_values import NOW, NoTables, plain, same

RECORDED = json.loads((Path(__file__).parent / "recorded_columns.json").read_text())
COLUMNS = tuple(Column(name, parse_type(text)) for name, text in RECORDED["columns"].items())


def python_value(value: Any, kind: t.DataType) -> Any:
    """A value of the recorded rows."""
    make: dict[type[t.DataType], Any] = {
        t.DoubleType: float,
        t.FloatType: float,
        t.DecimalType: Decimal,
        t.TimestampType: datetime.datetime.fromisoformat,
        t.DateType: datetime.date.fromisoformat,
        t.TimeType: datetime.time.fromisoformat,
    }
    return None if value is None else make.get(type(kind), lambda one: one)(value)


def batch() -> pa.RecordBatch:
    arrays = [
        array_of([python_value(row[index], column.type) for row in RECORDED["rows"]], column.type)
        for index, column in enumerate(COLUMNS)
    ]
    return pa.RecordBatch.from_arrays(arrays, [column.name for column in COLUMNS])


def without_nullability(text: str) -> str:
    """Columns of the recording that had no NULL were NOT NULL there."""
    return text.replace(" NOT NULL", "")


def test_expressions_over_columns() -> None:
    rows, binder, problems = batch(), Binder(NoTables()), []
    for text, wanted in RECORDED["expressions"].items():
        rex = binder.expression(text, COLUMNS)
        found = [plain(value, rex.type) for value in values_of(compiled(rex)(rows, NOW), rex.type)]
        if without_nullability(wanted["type"]) != without_nullability(rex.type.summary()):
            problems.append(f"{text}: {rex.type.summary()}, but Flink's type is {wanted['type']}")
        problems += [
            f"{text}, row {row}: {ours}, but Flink gives {theirs}"
            for row, (ours, theirs) in enumerate(zip(found, wanted["values"], strict=True))
            if not same(theirs, ours)
        ]
    assert not problems, "\n".join(problems)
