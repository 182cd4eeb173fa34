"""What a plan means, row by row and without any cleverness: an oracle for rewritten plans."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import Any

import pyarrow as pa

from penstock.table.functions import Moment, compile_rex
from penstock.table.logical import nodes as n
from penstock.table.logical.rex import AggregateCall, Rex, SortKey
from penstock.table.types.arrow_forms import array_of, values_of

Row = tuple[Any, ...]
Tables = dict[str, list[Row]]


def rows_of(plan: n.Relation, tables: Tables) -> list[Row]:
    return _INTERPRETERS[type(plan)](plan, tables)


def _values(rex: Rex, rows: Sequence[Row], columns: n.Columns) -> list[Any]:
    arrays = [array_of([row[index] for row in rows], column.type) for index, column in enumerate(columns)]
    batch = pa.RecordBatch.from_arrays(arrays, [f"c{index}" for index in range(len(columns))])
    return list(values_of(compile_rex(rex)(batch, Moment()), rex.type)) if rows else []


def _scan(plan: n.Scan, tables: Tables) -> list[Row]:
    return list(tables[plan.path[-1]])


def _project(plan: n.Project, tables: Tables) -> list[Row]:
    rows = rows_of(plan.input, tables)
    made = [_values(rex, rows, plan.input.columns) for rex in plan.exprs]
    return list(zip(*made, strict=True)) if rows else []


def _filter(plan: n.Filter, tables: Tables) -> list[Row]:
    rows = rows_of(plan.input, tables)
    return [row for row, kept in zip(rows, _values(plan.condition, rows, plan.input.columns), strict=True) if kept]


def _aggregate(plan: n.Aggregate, tables: Tables) -> list[Row]:
    groups: dict[Row, list[Row]] = {} if plan.keys else {(): []}
    for row in rows_of(plan.input, tables):
        groups.setdefault(tuple(row[key] for key in plan.keys), []).append(row)
    return [(*key, *(_aggregated(call, rows) for call in plan.calls)) for key, rows in groups.items()]


def _aggregated(call: AggregateCall, rows: Sequence[Row]) -> Any:
    rows = [row for row in rows if call.filter is None or row[call.filter]]
    if call.function == "COUNT":
        values: list[Any] = [row for row in rows if all(row[index] is not None for index in call.args)]
        return len({tuple(row[i] for i in call.args) for row in values}) if call.distinct else len(values)
    values = [row[call.args[0]] for row in rows]
    if call.function == "SINGLE_VALUE":
        assert len(values) <= 1, "more than one row"
        return values[0] if values else None
    values = [value for value in values if value is not None]
    if call.distinct:
        values = list(dict.fromkeys(values))
    return {"SUM": sum, "MIN": min, "MAX": max}[call.function](values) if values else None


def _join(plan: n.Join, tables: Tables) -> list[Row]:
    left, right = rows_of(plan.left, tables), rows_of(plan.right, tables)
    pairs = [(one, other) for one in range(len(left)) for other in range(len(right))]
    both = plan.left.columns + plan.right.columns
    rows = [left[one] + right[other] for one, other in pairs]
    verdicts = [True] * len(rows) if plan.condition is None else _values(plan.condition, rows, both)
    matches = [pair for pair, verdict in zip(pairs, verdicts, strict=True) if verdict]
    found, used = {one for one, _ in matches}, {other for _, other in matches}
    if plan.null_aware:
        found |= {one for (one, _), verdict in zip(pairs, verdicts, strict=True) if verdict is None}
    if plan.kind in {"SEMI", "ANTI"}:
        return [row for index, row in enumerate(left) if (index in found) is (plan.kind == "SEMI")]
    made = [left[one] + right[other] for one, other in matches]
    if plan.kind in {"LEFT", "FULL"}:
        made += [row + (None,) * len(plan.right.columns) for index, row in enumerate(left) if index not in found]
    if plan.kind in {"RIGHT", "FULL"}:
        made += [(None,) * len(plan.left.columns) + row for index, row in enumerate(right) if index not in used]
    return made


def _set_operation(plan: n.SetOperation, tables: Tables) -> list[Row]:
    first, *others = [Counter(rows_of(part, tables)) for part in plan.parts]
    for other in others:
        if plan.kind == "UNION":
            first = first + other
        elif plan.kind == "INTERSECT":
            first = first & other
        else:
            first = first - other if plan.all else Counter(row for row in first if row not in other)
    return list(first.elements()) if plan.all else list(first)


def _compare(keys: Sequence[SortKey]) -> Callable[[Row, Row], int]:
    def compare(one: Row, other: Row) -> int:
        for key in keys:
            a, b = one[key.index], other[key.index]
            if a == b:
                continue
            if a is None or b is None:
                return -1 if (a is None) is key.nulls_first else 1
            return -1 if (a < b) is not key.descending else 1
        return 0

    return compare


def _sort(plan: n.Sort, tables: Tables) -> list[Row]:
    rows = sorted(rows_of(plan.input, tables), key=cmp_to_key(_compare(plan.keys)))
    return rows[plan.offset :][: plan.limit]


def _over(plan: n.Over, tables: Tables) -> list[Row]:
    """ROW_NUMBER, and aggregates over everything up to the row and its peers."""
    rows = rows_of(plan.input, tables)
    added: list[list[Any]] = [[] for _ in rows]
    for window in plan.windows:
        compare = _compare(window.order)
        partitions: dict[Row, list[int]] = {}
        for index, row in enumerate(rows):
            partitions.setdefault(tuple(row[key] for key in window.partition), []).append(index)
        for members in partitions.values():
            ordered = sorted(members, key=cmp_to_key(lambda a, b: compare(rows[a], rows[b])))
            for place, index in enumerate(ordered):
                seen = [rows[other] for other in ordered if compare(rows[other], rows[index]) <= 0]
                for call in window.calls:
                    added[index].append(place + 1 if call.function == "ROW_NUMBER" else _aggregated(call, seen))
    return [row + tuple(extra) for row, extra in zip(rows, added, strict=True)]


def _expand(plan: n.Expand, tables: Tables) -> list[Row]:
    made = []
    for row, kept in itertools.product(rows_of(plan.input, tables), plan.sets):
        missing = [key for key in plan.keys if key not in kept]
        bits = sum(2 ** (len(plan.keys) - 1 - plan.keys.index(key)) for key in missing)
        made.append((*(None if index in missing else value for index, value in enumerate(row)), bits))
    return made


_INTERPRETERS: dict[type[n.Relation], Callable[[Any, Tables], list[Row]]] = {
    n.Scan: _scan,
    n.Values: lambda plan, tables: list(plan.rows),
    n.Project: _project,
    n.Filter: _filter,
    n.Aggregate: _aggregate,
    n.Join: _join,
    n.SetOperation: _set_operation,
    n.Sort: _sort,
    n.Over: _over,
    n.Expand: _expand,
}
