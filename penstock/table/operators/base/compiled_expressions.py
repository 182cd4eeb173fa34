"""Expressions at run time: compiled once in a slot, then evaluated over whole batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from penstock.engine.operators.operator import Operator
from penstock.engine.records.elements import MIN_TIMESTAMP
from penstock.table.functions import compile_rex
from penstock.table.functions.moment import Moment
from penstock.table.logical.rex import InputRef, Rex

Evaluate = Callable[[pa.RecordBatch, Moment], pa.Array]


def evaluator(rex: Rex) -> Evaluate:
    """Return a function that computes an expression. A column reference returns the column itself."""
    if isinstance(rex, InputRef):
        index = rex.index
        return lambda batch, moment: batch.column(index)
    made: Evaluate = compile_rex(rex)
    return made


def evaluators(rexes: Sequence[Rex]) -> list[Evaluate]:
    """Return a function for each expression."""
    return [evaluator(rex) for rex in rexes]


def moment_of(operator: Operator, zone: str) -> Moment:
    """Return the time that an operator sees while it evaluates a batch."""
    watermark = operator.current_watermark
    return Moment(operator.context.clock.now, None if watermark == MIN_TIMESTAMP else watermark, zone)


def truth(array: pa.Array) -> pa.Array:
    """Return the result of a condition as a mask without NULL."""
    return array.fill_null(False) if array.null_count else array


Arrays = list[Any]
