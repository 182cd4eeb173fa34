"""Hand-made plans over small inputs, run in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.common import Row, RowKind
from penstock.datastream import StreamExecutionEnvironment
from penstock.table.builders import Planner
from penstock.table.functions import resolve
from penstock.table.logical.nodes import Column, Relation, StreamScan, Values
from penstock.table.logical.rex import InputRef, Literal, Rex
from penstock.table.types.data_types import BigIntType, DataType, DataTypes, DoubleType, IntType, TimestampType
from penstock.testing import in_process

INT, BIGINT, STRING, DOUBLE, TS = IntType(), BigIntType(), DataTypes.STRING(), DoubleType(), TimestampType(3)
KINDS = {"+I": RowKind.INSERT, "-U": RowKind.UPDATE_BEFORE, "+U": RowKind.UPDATE_AFTER, "-D": RowKind.DELETE}


class Options(dict[str, str]):
    """Options of a query."""

    def get(self, key: str, default_value: str) -> str:  # type: ignore[override]
        return super().get(key, default_value)


def columns(**types: DataType) -> tuple[Column, ...]:
    return tuple(Column(name, kind) for name, kind in types.items())


def values(rows: Sequence[Sequence[Any]], **types: DataType) -> Values:
    return Values(columns(**types), tuple(tuple(row) for row in rows))


def ref(relation: Relation, name: str) -> InputRef:
    return relation.ref(relation.names().index(name))


def lit(value: Any, kind: DataType) -> Literal:
    return Literal(kind.not_null(), value)


def call(name: str, *args: Rex) -> Rex:
    return resolve(name, args)


def environment(parallelism: int = 1) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment()
    env.set_parallelism(parallelism)
    return env


def changes(env: StreamExecutionEnvironment, rows: Sequence[tuple[Any, ...]], **types: DataType) -> StreamScan:
    """A changelog: rows begin with their kind, such as "+I"."""
    stream = env.from_collection([Row.of_kind(KINDS[row[0]], *row[1:]) for row in rows])
    return StreamScan(columns(**types), stream, "changes", changelog=True)


def run(
    relation: Relation,
    env: StreamExecutionEnvironment | None = None,
    batch: bool = False,
    epoch_records: int | None = None,
    **options: str,
) -> list[tuple[Any, ...]]:
    """The changelog of a plan, kinds first."""
    env = env or environment()
    settings = Options(options)
    planner = Planner(env, settings, batch)
    if batch:
        from penstock.datastream import RuntimeExecutionMode

        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    if epoch_records is not None:
        env.settings.max_records = epoch_records
    with in_process(), planner.rows(relation).execute_and_collect() as results:
        return [(str(row.get_row_kind()), *row) for row in results]


def final(log: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows that are left, sorted by their text; every row that is taken away must be there."""
    left: list[tuple[Any, ...]] = []
    for kind, *row in log:
        if kind[0] == "+":
            left.append(tuple(row))
        else:
            left.remove(tuple(row))
    return sorted(left, key=repr)
