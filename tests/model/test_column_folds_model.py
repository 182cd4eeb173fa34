"""sum, min, max, min_by and max_by: the same operator gets the same records as rows, as columns, and as both in turn.

Results, their order, their timestamps, and what is left of state and timers must be the same, whatever the chunks are.
"""

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Time, Types
from penstock.datastream import OutputTag
from penstock.datastream.window import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.engine.operators.functions.rolling import ReduceOperator
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from penstock.engine.state.tables import Layout
from penstock.engine.windows.window_operator import WindowOperator
from penstock.errors import JobFailed
from penstock.testing import OperatorHarness

LATE = OutputTag("late")
LONG = st.integers(-9, 9) | st.sampled_from([2**62, -(2**62), 2**63 - 1, -(2**63)])
DOUBLE = st.sampled_from([0.1, 0.2, -0.3, 1e16, 1.0, 0.0, 3.5, -0.0, math.nan, math.inf]) | st.floats(-5, 5)
FIELDS = {
    "long": (Types.LONG(), pa.int64(), LONG),
    "int": (Types.INT(), pa.int32(), st.integers(-9, 9) | st.sampled_from([2**31 - 1, -(2**31)])),
    "byte": (Types.BYTE(), pa.int8(), st.integers(-128, 127)),
    "double": (Types.DOUBLE(), pa.float64(), DOUBLE),
    "float": (Types.FLOAT(), pa.float32(), st.sampled_from([0.5, -1.25, 3.0, 0.0])),
    "text": (Types.STRING(), pa.string(), st.sampled_from(["", "a", "b"])),
}
FOLDS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda stream: stream.sum("n"),
    "min": lambda stream: stream.min(1),
    "max": lambda stream: stream.max("n"),
    "min_by": lambda stream: stream.min_by("n"),
    "last min_by": lambda stream: stream.min_by("n", first=False),
    "max_by": lambda stream: stream.max_by("n"),
    "last max_by": lambda stream: stream.max_by("n", first=False),
}
WINDOWS = {
    "tumbling": TumblingEventTimeWindows.of(Time.milliseconds(10)),
    "tumbling with offset": TumblingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(3)),
    "sliding": SlidingEventTimeWindows.of(Time.milliseconds(12), Time.milliseconds(5)),
    "with gaps": SlidingEventTimeWindows.of(Time.milliseconds(4), Time.milliseconds(9)),
    "count": CountTumblingWindowAssigner.of(3),
    "sliding count": CountSlidingWindowAssigner.of(3, 2),
}
KEYS = {"name": "k", "position": 0, "two": ("k", "id")}


@st.composite
def streams(draw, kinds=tuple(FIELDS)):
    """Chunks of rows, each beside the form in which it is sent when it is not sent as rows; and watermarks."""
    kind = draw(st.sampled_from(kinds))
    declared, arrow, numbers = FIELDS[kind]
    whole = draw(st.booleans())
    numbers = numbers if whole else numbers | st.none()
    row_type = Types.ROW_NAMED(["k", "n", "id"], [Types.STRING(), declared, Types.INT()])
    schema = pa.schema([("k", pa.string()), ("n", arrow), ("id", pa.int32())])
    elements, number, drift = [], 0, 0
    for _ in range(draw(st.integers(1, 5))):
        records = draw(st.lists(st.tuples(st.sampled_from(["a", "b", None]), numbers), min_size=1, max_size=9))
        ids = [draw(st.sampled_from([number, 0])) for number in range(number, number + len(records))]
        number += len(records)
        times = [drift + draw(st.integers(-15, 15)) for _ in records]
        rows = [{"k": k, "n": n, "id": i} for (k, n), i in zip(records, ids, strict=True)]
        batch = pa.RecordBatch.from_pylist(rows, schema=schema)
        typed = row_type if draw(st.booleans()) else None
        elements.append(("chunk", Columns(batch, pa.array(times, pa.int64()), typed), draw(st.booleans())))
        drift += draw(st.integers(0, 12))
        if draw(st.booleans()):
            elements.append(("watermark", drift - draw(st.integers(0, 10)), None))
    return elements


def behaviour(build: Callable[[Any], Any], elements: list[Any], as_columns: Callable[[bool], bool]) -> Any:
    """Everything that can be seen of an operator; an error ends it."""
    with OperatorHarness(build, side_outputs=(LATE,)) as harness:
        try:
            for kind, what, mixed in elements:
                if kind == "watermark":
                    harness.watermark(what)
                elif as_columns(mixed):
                    harness._send(1, lambda builder, columns=what: builder.add_columns(columns))
                else:
                    rows, stamps = what.rows(), what.timestamps()
                    harness._send(1, lambda builder, rows=rows, stamps=stamps: builder.extend(rows, stamps))
        except JobFailed as error:
            return "failed", str(error)
        return repr(harness.output()), repr(harness.side_output(LATE)), left(harness)


def left(harness: OperatorHarness) -> dict[str, list[str]]:
    """What is in state; of timers, in which order they would fire."""
    tables = [table for table in harness._tables() if table.entries]
    return {
        table.name: list(map(repr, sorted(table.entries, key=table.entries.get)))
        if table.layout is Layout.TIMER
        else sorted(map(repr, table.entries.items()))
        for table in tables
    }


def check(build: Callable[[Any], Any], elements: list[Any]) -> None:
    rows = behaviour(build, elements, lambda mixed: False)
    assert behaviour(build, elements, lambda mixed: True) == rows
    assert behaviour(build, elements, lambda mixed: mixed) == rows


@settings(max_examples=40)
@given(streams(), st.sampled_from(list(FOLDS)), st.sampled_from(list(KEYS)))
def test_rolling(elements, fold, key):
    check(lambda stream: FOLDS[fold](stream.key_by(KEYS[key])), elements)


@settings(max_examples=60)
@given(streams(), st.sampled_from(list(FOLDS)), st.sampled_from(list(WINDOWS)), st.sampled_from([0, 0, 4]))
def test_windows(elements, fold, window, lateness):
    def build(stream):
        windowed = stream.key_by("k").window(WINDOWS[window])
        if WINDOWS[window].is_event_time():
            windowed = windowed.allowed_lateness(lateness)
        return FOLDS[fold](windowed.side_output_late_data(LATE))

    check(build, [*elements, ("watermark", 10_000, None)])


@pytest.mark.parametrize("fold", list(FOLDS))
@pytest.mark.parametrize("windows", [None, "tumbling", "sliding", "count"])
def test_ordinary_columns_are_not_looked_at_row_by_row(fold, windows, monkeypatch):
    def build(stream):
        keyed = stream.key_by("k")
        return FOLDS[fold](keyed if windows is None else keyed.window(WINDOWS[windows]))

    for operator in (ReduceOperator, WindowOperator):
        monkeypatch.setattr(operator, "records", lambda *_: pytest.fail("rows were looked at"))
    schema = pa.schema([("k", pa.string()), ("n", pa.float64()), ("id", pa.int32())])
    batch = pa.RecordBatch.from_pylist([{"k": "ab"[n % 2], "n": n / 3, "id": n} for n in range(50)], schema=schema)
    with OperatorHarness(build) as harness:
        for first in (0, 20):
            part = Columns(batch, pa.array(range(50), pa.int64())).slice(first, 30 - first // 2)
            harness._send(1, lambda builder, part=part: builder.add_columns(part))
            assert bool(harness.output()) is (windows in (None, "count")), "what is complete leaves at once"
        harness.watermark(10_000)
        assert bool(harness.output()) is (windows not in (None, "count"))


@pytest.mark.parametrize("windows", ["tumbling", "sliding", "with gaps"])
@pytest.mark.parametrize("times", [None, [5, None, 7]], ids=["no timestamps", "a gap"])
def test_columns_without_timestamps_fail_as_rows_do(windows, times):
    schema = pa.schema([("k", pa.string()), ("n", pa.int64()), ("id", pa.int32())])
    batch = pa.RecordBatch.from_pylist([{"k": "a", "n": n, "id": n} for n in range(3)], schema=schema)
    columns = Columns(batch, None if times is None else pa.array(times, pa.int64()))
    elements = [("chunk", columns, True), ("watermark", 10_000, None)]

    def build(stream):
        return stream.key_by("k").window(WINDOWS[windows]).sum("n")

    ending, said = behaviour(build, elements, lambda mixed: True)[:2]
    assert (ending, said) == behaviour(build, elements, lambda mixed: False)[:2]
    assert ending == "failed" and "timestamp" in said


@pytest.mark.parametrize("windows", ["tumbling", "tumbling with offset", "sliding", "with gaps"])
@pytest.mark.parametrize("edge", [MIN_TIMESTAMP, MIN_TIMESTAMP + 30, MAX_TIMESTAMP - 30])
def test_columns_near_the_ends_of_time_are_folded_as_rows_are(windows, edge):
    schema = pa.schema([("k", pa.string()), ("n", pa.int64()), ("id", pa.int32())])
    batch = pa.RecordBatch.from_pylist([{"k": "a", "n": 1, "id": 0}], schema=schema)

    def build(stream):
        return stream.key_by("k").window(WINDOWS[windows]).sum("n")

    for time in range(edge, edge + 30):
        check(build, [("chunk", Columns(batch, pa.array([time], pa.int64())), True), ("watermark", 10_000, None)])
