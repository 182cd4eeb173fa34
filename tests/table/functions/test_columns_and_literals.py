"""A function gives the same for columns as for literals, and for a mixture of both, whatever kernel is chosen."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import PenstockError
from penstock.table.functions import compile_rex
from penstock.table.functions.evaluation import is_word
from penstock.table.logical.rex import Call, InputRef, Literal, Rex, rewritten
from penstock.table.types.arrow_forms import array_of, values_of

sys.path.insert(0, str(Path(__file__).parent))
from plain_values import NOW, bound

EXPRESSIONS = list(json.loads((Path(__file__).parent / "recorded.json").read_text()))
KEPT = {"IN", "FIELD", "ITEM", "RAND", "RAND_INTEGER", "UUID"}
"""Functions whose arguments stay literals: they are part of the call, or chance."""


def with_columns(rex: Rex, wanted: int | None) -> tuple[Rex, list[Literal]]:
    """The expression with its literals, or one of them, as columns; and what the columns hold."""
    columns: list[Literal] = []
    seen = 0

    def change(one: Rex) -> Rex | None:
        nonlocal seen
        if isinstance(one, Call) and one.function in KEPT:
            return one
        if not isinstance(one, Literal) or is_word(one):
            return None
        seen += 1
        if wanted is not None and seen - 1 != wanted:
            return one
        columns.append(one)
        return InputRef(one.type, len(columns) - 1)

    return rewritten(rex, change), columns


def batch_of(columns: list[Literal], nulls: bool = True) -> pa.RecordBatch:
    """Three rows, of which the middle one is NULL."""
    arrays = [array_of([one.value, None if nulls else one.value, one.value], one.type) for one in columns]
    return pa.RecordBatch.from_arrays([*arrays, pa.array([0, 0, 0])], [str(index) for index in range(len(arrays) + 1)])


def outcome(rex: Rex, batch: pa.RecordBatch) -> Any:
    try:
        return [repr(value) for value in values_of(compile_rex(rex)(batch, NOW), rex.type)]
    except PenstockError as error:
        return type(error).__name__


def problem(text: str, wanted: int | None) -> str | None:
    try:
        rex = bound(text)
    except PenstockError:
        return None
    changed, columns = with_columns(rex, wanted)
    if not columns:
        return None
    literal, column = outcome(rex, batch_of([])), outcome(changed, batch_of(columns))
    if isinstance(column, str):  # a NULL may be what is refused
        column = outcome(changed, batch_of(columns, nulls=False))
    alike = literal == column if isinstance(literal, str) else literal[::2] == column[::2]
    return None if alike else f"{text}: {literal}, but for columns {column}"


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("wanted", [None, 0])
def test_columns_give_what_literals_give(part: int, wanted: int | None) -> None:
    problems = [found for text in EXPRESSIONS[part::4] if (found := problem(text, wanted))]
    assert not problems, "\n".join(problems)
