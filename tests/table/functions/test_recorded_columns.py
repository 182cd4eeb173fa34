"""Random expressions over columns with NULLs, against what Flink 2.3 made of the same rows."""

from __future__ import annotations

import datetime
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.table.functions import compile_rex
from penstock.table.logical.nodes import Column, Columns
from penstock.table.sql import Binder
from penstock.table.sql.parse.type_parser import parse_type
from penstock.table.types import data_types as t
from penstock.table.types.arrow_forms import array_of, values_of

sys.path.insert(0, str(Path(__file__).parent))
from plain_values import NOW, NoTables, plain, same

RECORDED = json.loads((Path(__file__).parent / "recorded_columns.json").read_text())


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


def batch_of(columns: Columns, rows: list[list[Any]]) -> pa.RecordBatch:
    arrays = [
        array_of([python_value(row[index], column.type) for row in rows], column.type)
        for index, column in enumerate(columns)
    ]
    return pa.RecordBatch.from_arrays(arrays, [column.name for column in columns])


def without_nullability(text: str) -> str:
    """Columns of the recording that had no NULL were NOT NULL there."""
    return text.replace(" NOT NULL", "")


@pytest.mark.parametrize("part", range(len(RECORDED)))
def test_expressions_over_columns(part: int) -> None:
    recorded = RECORDED[part]
    columns = tuple(Column(name, parse_type(text)) for name, text in recorded["columns"].items())
    rows, binder, problems = batch_of(columns, recorded["rows"]), Binder(NoTables()), []
    for text, wanted in recorded["expressions"].items():
        rex = binder.expression(text, columns)
        found = [plain(value, rex.type) for value in values_of(compile_rex(rex)(rows, NOW), rex.type)]
        if without_nullability(wanted["type"]) != without_nullability(rex.type.summary()):
            problems.append(f"{text}: {rex.type.summary()}, but Flink's type is {wanted['type']}")
        problems += [
            f"{text}, row {row}: {ours}, but Flink gives {theirs}"
            for row, (ours, theirs) in enumerate(zip(found, wanted["values"], strict=True))
            if not same(theirs, ours)
        ]
    assert not problems, "\n".join(problems)
