"""What Spark's Python workers do, without Spark: batches in, batches out."""

from __future__ import annotations

import datetime
import time
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.messages.commands_and_reports import Deployment
from penstock.graph.plan import Node, Plan
from penstock.spark.sql.batch_transport import declare_columns, pack_batch, spark_type, transport_type, unpack_batch
from penstock.spark.sql.query_tasks import NOBODY, OperatorTask, Surroundings, failure_in, inputs_of
from penstock.spark.sql.refusal import Untranslatable
from penstock.table.functions import resolve
from penstock.table.logical.nodes import Column
from penstock.table.logical.rex import AggregateCall, Call, InputRef, Literal
from penstock.table.operators.aggregate.functions import folds_for
from penstock.table.operators.aggregate.group_aggregate import GroupAggregate
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.io.calc import Calc
from penstock.table.types import data_types as t

TIMES = st.none() | st.times()
SPANS = st.none() | st.integers(-(10**9), 10**9).map(lambda ms: datetime.timedelta(milliseconds=ms))


def surroundings() -> Surroundings:
    plan = Plan([Node(0, "q", "q", "source", None, 1, 1)], [], True)
    return Surroundings(cloudpickle.dumps(Deployment("", plan, {}, {})), int(time.time() * 1000), {"p": "1"})


def task(operator: Any, *schemas: pa.Schema, tagged: bool = False, width: int = 1) -> OperatorTask:
    names = tuple(f"c{index}" for index in range(width))
    return OperatorTask(cloudpickle.dumps(operator), "Calc", "uid", inputs_of(schemas), tagged, names, surroundings())


@given(st.lists(st.tuples(TIMES, SPANS)))
def test_batches_come_back_as_they_were(rows: list[tuple[Any, Any]]) -> None:
    schema = pa.schema([("at", pa.time64("us")), ("span", pa.duration("ms")), ("nothing", pa.null())])
    arrays = [pa.array([row[0] for row in rows], schema.types[0]), pa.array([row[1] for row in rows], schema.types[1])]
    batch = pa.RecordBatch.from_arrays([*arrays, pa.nulls(len(rows))], schema=schema)
    travelling = pack_batch(batch, ["a", "b", "c"])
    assert travelling.schema.types == [pa.int64(), pa.int64(), pa.bool_()] == list(map(transport_type, schema.types))
    assert unpack_batch(travelling.columns, schema, batch.num_rows).equals(batch)


def test_rows_without_columns_keep_their_number() -> None:
    schema = pa.schema([])
    empty = unpack_batch([], schema, 3)
    travelling = pack_batch(empty, ["nothing"])
    assert (travelling.num_rows, declare_columns(["nothing"], schema)) == (3, "nothing BOOLEAN")


def test_what_cannot_travel_is_refused() -> None:
    assert spark_type(pa.map_(pa.string(), pa.list_(pa.int32()))) == "MAP<STRING,ARRAY<INT>>"
    assert spark_type(pa.struct([("a b", pa.int8())])) == "STRUCT<`a b`:TINYINT>"
    for kind in (pa.list_(pa.time64("us")), pa.struct([("a", pa.int8()), ("a", pa.int8())]), pa.struct([])):
        with pytest.raises(Untranslatable):
            spark_type(kind)


def test_an_operator_runs_over_a_partition() -> None:
    schema = pa.schema([("x", pa.int32())])
    condition = resolve(">", [InputRef(t.IntType(), 0), Literal(t.IntType(False), 1)])
    upper = resolve("ABS", [InputRef(t.IntType(), 0)])
    batches = [pa.record_batch([pa.array(part, pa.int32())], names=["c9_0"]) for part in ([1, 2], [None, 3], [])]
    found = list(task(Calc([upper], condition, OutputForm(schema), False), schema)(iter(batches)))
    assert [batch.to_pylist() for batch in found] == [[{"c0": 2}], [{"c0": 3}]]


def test_an_operator_has_something_to_say_about_no_rows() -> None:
    schema = pa.schema([("x", pa.int32())])
    calls = [AggregateCall("COUNT", (), t.BigIntType(False)), AggregateCall("SUM", (0,), t.IntType())]
    out = pa.schema([("n", pa.int64()), ("s", pa.int32())])
    operator = GroupAggregate((), folds_for(calls, (Column("x", t.IntType()),), False), False, OutputForm(out))
    nobody = pa.record_batch([pa.nulls(1, pa.int32()), pa.array([NOBODY], pa.int32())], names=["c1_0", "of_input"])
    found = list(task(operator, schema, tagged=True, width=2)(iter([nobody])))
    assert [batch.to_pylist() for batch in found] == [[{"c0": 0, "c1": None}]]


def test_a_failure_is_found_again_in_what_spark_says() -> None:
    class Wrapper:
        name, vectorised, asynchronous = "bad", None, False

        def callable(self) -> Any:
            return lambda value: 1 // 0

        def open(self, context: Any) -> None: ...

        def close(self) -> None: ...

    schema = pa.schema([("x", pa.int32())])
    call = Call(t.IntType(), "bad", (InputRef(t.IntType(), 0),), Wrapper())
    batch = pa.record_batch([pa.array([7], pa.int32())], names=["c9_0"])
    with pytest.raises(RuntimeError) as raised:
        list(task(Calc([call], None, OutputForm(schema), False), schema)(iter([batch])))
    failure = failure_in(f"org.apache.spark.SparkException: Job aborted\n{raised.value}\nDriver stacktrace:")
    assert failure is not None
    assert (failure.operator, failure.known_as) == ("Calc", "TableException")
    assert "the function bad failed for (7): ZeroDivisionError" in failure.message
    assert failure_in("java.lang.OutOfMemoryError") is None
