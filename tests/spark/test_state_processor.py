"""The state processor on real Spark: state as DataFrames, and DataFrames as state."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as sql

from penstock.common import Configuration, Row, Time, Types
from penstock.datastream import (
    KeyedProcessFunction,
    ListStateDescriptor,
    MapStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    StreamExecutionEnvironment,
    TimeWindow,
    ValueStateDescriptor,
)
from penstock.errors import ProgramError, SnapshotError, TypeMismatch, UnsupportedKey
from penstock.spark.sessions.session import session
from penstock.state import SavepointReader, SavepointWriter
from penstock.testing import scripted
from tests.waiting import without_waits

COUNT = ValueStateDescriptor("count", Types.LONG())
WORDS = MapStateDescriptor("words", Types.STRING(), Types.LONG())
SEEN = ListStateDescriptor("seen", Types.STRING())


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return session("local[2]", "state processor", {})


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., SavepointReader]:
    """Writes a keyed state and opens it."""

    def write(descriptor: StateDescriptor, rows: Any, **how: Any) -> SavepointReader:
        writer = SavepointWriter.new(parallelism=2).with_keyed_state("op", descriptor, rows, **how)
        return SavepointReader.read(writer.write(str(tmp_path / descriptor.get_name())))

    return write


def types_of(frame: Any) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in frame.schema}


def rows_of(frame: Any) -> list[Any]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


# --- programs ---
def remembering(stream: Any) -> Any:
    """Counts and remembers words by user."""

    class Remember(KeyedProcessFunction):
        def open(self, context: Any) -> None:
            self.count = context.get_state(ValueStateDescriptor("count", Types.LONG()))
            self.words = context.get_map_state(MapStateDescriptor("words", Types.STRING(), Types.LONG()))
            self.seen = context.get_list_state(ListStateDescriptor("seen", Types.STRING()))

        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            key, word = value
            self.count.update((self.count.value() or 0) + 1)
            self.words.put(word, (self.words.get(word) or 0) + 1)
            self.seen.add(word)
            ctx.timer_service().register_event_time_timer(1000)
            yield key, self.count.value(), dict(self.words.items()), list(self.seen.get())

    return stream.key_by(lambda value: value[0]).process(Remember()).uid("remember").name("Remember")


def environment(start: str | None = None) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.create_local_environment(2)
    if start is not None:
        configuration = Configuration()
        configuration.set_string("execution.state-recovery.path", start)
        env.configure(configuration)
    return env


def test_a_savepoint_of_a_job_on_spark_is_read_changed_and_continued(spark: SparkSession, tmp_path: Path) -> None:
    visits = [("ann", "home"), ("bo", "home"), ("ann", "shop"), ("cy", "shop")]
    stream = scripted(environment(), *visits, stay=True).uid("script")
    results = remembering(stream).execute_and_collect()
    for _ in visits:
        next(results)
    path = results._job.trigger_savepoint(str(tmp_path), True, False)
    reader = SavepointReader.read(path)

    counts = reader.read_state("remember", "count", spark)
    assert types_of(counts) == {"key": "string", "namespace": "string", "value": "bigint"}
    assert rows_of(counts) == [("ann", None, 2), ("bo", None, 1), ("cy", None, 1)]
    assert counts.rdd.getNumPartitions() == 2
    words = reader.read_state("remember", "words")
    assert types_of(words) == {"key": "string", "namespace": "string", "map_key": "string", "value": "bigint"}
    assert rows_of(words)[:2] == [("ann", None, "home", 1), ("ann", None, "shop", 1)]
    seen = reader.read_state("remember", "seen")
    assert types_of(seen)["value"] == "array<string>" and rows_of(seen)[0] == ("ann", None, ["home", "shop"])
    timers = reader.read_state("remember", "_event_timers")
    assert types_of(timers) == {"time": "bigint", "key": "string", "namespace": "string"}
    assert rows_of(timers) == [(1000, "ann", None), (1000, "bo", None), (1000, "cy", None)]

    more = counts.selectExpr("key", "value + 100 as value")
    copy = SavepointWriter.from_existing(path).remove_operator("script").with_keyed_state("remember", COUNT, more)
    copy.with_keyed_state("remember", WORDS, words.where("map_key = 'shop'"))
    copy.transform_state("remember", "seen", lambda key, namespace, value: [word.upper() for word in value])
    changed = copy.write(str(tmp_path / "changed"), spark)
    stream = scripted(environment(changed), ("ann", "x"), ("bo", "x")).uid("another script")
    with remembering(stream).execute_and_collect() as found:
        assert sorted(found) == [
            ("ann", 103, {"shop": 1, "x": 1}, ["HOME", "SHOP", "x"]),
            ("bo", 102, {"x": 1}, ["HOME", "x"]),
        ]


# --- columns ---
DECLARED = [
    (Types.BOOLEAN(), True, "boolean", True),
    (Types.BYTE(), 1, "tinyint", 1),
    (Types.SHORT(), 1, "smallint", 1),
    (Types.INT(), 1, "int", 1),
    (Types.LONG(), 1 << 40, "bigint", 1 << 40),
    (Types.FLOAT(), 0.5, "float", 0.5),
    (Types.DOUBLE(), 0.1, "double", 0.1),
    (Types.STRING(), "ä", "string", "ä"),
    (Types.BIG_INT(), 10**30, "decimal(38,0)", Decimal(10**30)),
    (Types.BIG_DEC(), Decimal("1.25"), "decimal(38,18)", Decimal("1.25")),
    (Types.SQL_DATE(), datetime.date(2024, 5, 6), "date", datetime.date(2024, 5, 6)),
    (Types.SQL_TIME(), datetime.time(1, 2, 3), "string", "01:02:03"),
    (Types.SQL_TIMESTAMP(), datetime.datetime(2024, 5, 6, 7), "timestamp_ntz", datetime.datetime(2024, 5, 6, 7)),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"\0\1", "binary", b"\0\1"),
    (Types.LIST(Types.INT()), [1, None], "array<int>", [1, None]),
    (Types.MAP(Types.STRING(), Types.LONG()), {"a": 1}, "map<string,bigint>", {"a": 1}),
    (Types.TUPLE([Types.INT(), Types.STRING()]), (1, "a"), "struct<_1:int,_2:string>", (1, "a")),
    (Types.ROW_NAMED(["n"], [Types.LONG()]), Row(n=1), "struct<n:bigint>", (1,)),
    (Types.ROW([Types.LONG()]), Row(1), "struct<f0:bigint>", (1,)),
    (Types.LIST(Types.ROW_NAMED(["n"], [Types.LONG()])), [Row(n=1)], "array<struct<n:bigint>>", [(1,)]),
]


def test_declared_types_become_columns_and_come_back(spark: SparkSession, tmp_path: Path) -> None:
    descriptors = [ValueStateDescriptor(f"s{i}", info) for i, (info, *_) in enumerate(DECLARED)]
    writer = SavepointWriter.new(parallelism=2)
    for descriptor, (_, value, _, _) in zip(descriptors, DECLARED, strict=True):
        writer.with_keyed_state("op", descriptor, [("k", value)])
    reader = SavepointReader(writer.write(str(tmp_path / "plain")))
    frames = [reader.read_state("op", descriptor.get_name(), spark) for descriptor in descriptors]
    assert [types_of(frame)["value"] for frame in frames] == [kind for _, _, kind, _ in DECLARED]
    assert [frame.collect()[0]["value"] for frame in frames] == [shown for *_, shown in DECLARED]
    again = SavepointWriter.new()
    for descriptor, frame in zip(descriptors, frames, strict=True):
        again.with_keyed_state("op", descriptor, frame)
    reader = SavepointReader(again.write(str(tmp_path / "again")))
    values = [next(iter(reader.read_python("op", d.get_name())))[2] for d in descriptors]
    assert values == [info.fit([value])[0] for info, value, *_ in DECLARED]


INFERRED = [
    ([1, 2.5], "double", [1.0, 2.5]),
    ([1 << 70, 1], "decimal(38,0)", [Decimal(1 << 70), Decimal(1)]),
    ([UUID(int=1), None], "string", [str(UUID(int=1)), None]),
    ([datetime.timedelta(seconds=1)], "interval day to second", [datetime.timedelta(seconds=1)]),
    ([Row(a=1, b=None), Row(b="x", a=2)], "struct<a:bigint,b:string>", [(1, None), (2, "x")]),
    ([[1], [], [2.5]], "array<double>", [[1.0], [], [2.5]]),
    ([{"a": (1, b"")}, {}], "map<string,struct<_1:bigint,_2:binary>>", [{"a": (1, b"")}, {}]),
    ([TimeWindow(0, 10)], "struct<start:bigint,end:bigint>", [(0, 10)]),
    ([{None: 1}], "string", ["{None: 1}"]),
]


def test_other_types_are_found_from_all_values(spark: SparkSession, tmp_path: Path) -> None:
    writer = SavepointWriter.new(parallelism=2)
    for number, (values, *_) in enumerate(INFERRED):
        rows = [{"key": i, "map_key": i, "value": value} for i, value in enumerate(values)]
        writer.with_keyed_state("op", MapStateDescriptor(f"s{number}"), rows)
    reader = SavepointReader(writer.write(str(tmp_path / "new")))
    frames = [reader.read_state("op", f"s{number}", spark) for number in range(len(INFERRED))]
    assert [types_of(frame)["value"] for frame in frames] == [kind for _, kind, _ in INFERRED]
    shown = [[row["value"] for row in frame.orderBy("key").collect()] for frame in frames]
    assert shown == [values for *_, values in INFERRED]


def test_what_no_type_fits_is_shown_as_python_prints_it(
    spark: SparkSession, written: Callable[..., SavepointReader], caplog: pytest.LogCaptureFixture
) -> None:
    frame = written(COUNT, [(1, 1), ("x", 2)]).read_state("op", "count", spark)
    assert rows_of(frame) == [("'x'", None, 2), ("1", None, 1)]
    assert "no Spark type fits all values of column 'key'" in caplog.text
    assert frame.schema["key"].metadata["comment"].startswith("Python's repr")


def test_values_that_do_not_fit_what_was_declared_widen_the_column(spark: SparkSession, tmp_path: Path) -> None:
    writer = SavepointWriter.new().with_keyed_state("op", COUNT, [(1, 1), (2, 3)])
    path = writer.write(str(tmp_path / "a"))
    halved = SavepointWriter.from_existing(path).transform_state("op", "count", lambda k, n, v: v / 2 if k > 1 else v)
    frame = SavepointReader(halved.write(str(tmp_path / "b"), spark)).read_state("op", "count", spark)
    assert types_of(frame)["value"] == "double" and rows_of(frame) == [(1, None, 1.0), (2, None, 1.5)]


PROGRAM = """
from dataclasses import dataclass
from tempfile import mkdtemp

from penstock.datastream import ValueStateDescriptor
from penstock.state import SavepointReader, SavepointWriter

@dataclass(frozen=True)
class User:
    name: str
    age: int

class Visit(User):
    pass

writer = SavepointWriter.new(parallelism=2).with_keyed_state(
    "op", ValueStateDescriptor("user"), [(User("ann", 3), Visit("bo", 4)), (User("cy", 5), User("dee", 6))]
)
path = writer.write(mkdtemp() + "/new")
frame = SavepointReader.read(path).read_state("op", "user")
print(*(f"{r.key.name} {r.key.age} {r.value.name} {r.value.age}" for r in frame.orderBy("key").collect()), sep=", ")
copy = SavepointWriter.from_existing(path)
copy.transform_state("op", "user", lambda key, _, value: Visit(key.name, value.age))
copied = SavepointReader.read(copy.write(path + "-copy", frame.sparkSession))
values = [value for _, _, value in copied.read_python("op", "user")]
print(*sorted(f"{type(value).__name__} {value.name} {value.age}" for value in values), sep=", ")
"""


def test_classes_of_the_main_script_travel(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(script)],
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "PENSTOCK_MASTER": "local[2]",
            "PYTHONWARNINGS": "ignore:PySpark does not yet fully support pandas:FutureWarning",
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, without_waits(done.stderr)) == (0, ""), done.stderr
    assert done.stdout.splitlines() == ["ann 3 bo 4, cy 5 dee 6", "Visit ann 4, Visit cy 6"]


def expiring(descriptor: StateDescriptor) -> StateDescriptor:
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(10)).build())
    return descriptor


def test_state_that_expires_shows_when_it_was_used(
    spark: SparkSession, written: Callable[..., SavepointReader], tmp_path: Path
) -> None:
    value = expiring(ValueStateDescriptor("value", Types.LONG()))
    frame = written(value, [{"key": "a", "value": 1, "last_access": 5}]).read_state("op", "value", spark)
    assert types_of(frame)["last_access"] == "bigint" and rows_of(frame) == [("a", None, 1, 5)]
    many = expiring(ListStateDescriptor("list", Types.LONG()))
    frame = written(many, [{"key": "a", "value": [1, 2], "last_access": [5, 6]}]).read_state("op", "list", spark)
    assert types_of(frame)["last_access"] == "array<bigint>" and rows_of(frame) == [("a", None, [1, 2], [5, 6])]
    named = expiring(MapStateDescriptor("map", Types.STRING(), Types.LONG()))
    rows = [{"key": "a", "map_key": k, "value": v, "last_access": v} for k, v in [("x", 1), ("y", 2)]]
    frame = written(named, rows).read_state("op", "map", spark)
    assert rows_of(frame) == [("a", None, "x", 1, 1), ("a", None, "y", 2, 2)]
    again = SavepointWriter.new().with_keyed_state("op", named, frame).write(str(tmp_path / "again"))
    assert rows_of(SavepointReader(again).read_state("op", "map", spark)) == rows_of(frame)


def test_operator_state_goes_both_ways(spark: SparkSession, tmp_path: Path) -> None:
    items, limits = (
        ListStateDescriptor("items", Types.LONG()),
        MapStateDescriptor("limits", Types.STRING(), Types.INT()),
    )
    writer = SavepointWriter.new(parallelism=2)
    writer.with_list_state("list", items, spark.createDataFrame([(1,), (2,), (3,)], "element bigint"))
    writer.with_list_state("union", items, [4, 5], union=True)
    writer.with_broadcast_state("broadcast", limits, spark.createDataFrame([(7, "eur")], "value int, key string"))
    reader = SavepointReader(writer.write(str(tmp_path / "new")))
    assert rows_of(reader.read_state("list", "items", spark)) == [(1,), (2,), (3,)]
    assert rows_of(reader.read_state("union", "items", spark)) == [(4,), (5,)]
    frame = reader.read_state("broadcast", "limits", spark)
    assert types_of(frame) == {"key": "string", "value": "int"} and rows_of(frame) == [("eur", 7)]


def test_state_of_windows_goes_both_ways(
    spark: SparkSession, written: Callable[..., SavepointReader], tmp_path: Path
) -> None:
    reader = written(COUNT, [("a", TimeWindow(0, 10), 1), ("b", TimeWindow(10, 20), 2)], window=True)
    frame = reader.read_state("op", "count", spark, window=True)
    assert types_of(frame)["namespace"] == "struct<start:bigint,end:bigint>"
    assert rows_of(frame) == [("a", (0, 10), 1), ("b", (10, 20), 2)]
    again = SavepointWriter.new().with_keyed_state("op", COUNT, frame, window=True).write(str(tmp_path / "again"))
    found = sorted(SavepointReader(again).read_python("op", "count", window=True))
    assert found == [("a", TimeWindow(0, 10), 1), ("b", TimeWindow(10, 20), 2)]
    assert isinstance(found[0][1], TimeWindow)


# --- from DataFrames ---
def test_large_state_is_written_by_the_tasks_that_have_it(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(20_000).selectExpr("id as user", "id % 7 as day", "cast(id as string) as value")
    names = ValueStateDescriptor("name", Types.STRING())
    writer = SavepointWriter.new(max_parallelism=64, parallelism=3)
    writer.with_keyed_state("op", names, frame, key=["user", "day"]).with_keyed_state("op", COUNT, [((1, 1), 9)])
    reader = SavepointReader(writer.write(str(tmp_path / "new")))
    chains = [[file.inline is None for file in slot.files] for slot in reader.metadata.slots]
    assert chains == [[True, False]] * 3
    assert {path.name.split("-")[1] for path in (tmp_path / "new").glob("slot-*")} == {"0", "1", "2"}
    found = reader.read_state("op", "name", spark)
    assert types_of(found)["key"] == "struct<_1:bigint,_2:bigint>"
    assert found.count() == 20_000 and found.where("cast(key._1 as string) = value").count() == 20_000
    assert list(reader.read_python("op", "count")) == [((1, 1), None, 9)]
    copy = SavepointWriter.from_existing(reader.path).transform_state("op", "name", lambda k, n, v: v if k[0] else None)
    copied = SavepointReader(copy.write(str(tmp_path / "copy"), spark))
    assert [len(slot.files) for slot in copied.metadata.slots] == [1, 1, 1]
    assert copied.read_state("op", "name", spark).count() == 19_999


def test_bad_frames_are_refused_with_errors_of_penstock(spark: SparkSession, tmp_path: Path) -> None:
    writer = SavepointWriter.new(parallelism=2)
    with pytest.raises(ProgramError, match=r"need the columns key, value and may have namespace; these have id"):
        writer.with_keyed_state("op", COUNT, spark.range(1))
    with pytest.raises(UnsupportedKey, match=r"column 'key' is of type array"):
        writer.with_keyed_state("op", COUNT, spark.createDataFrame([([1], 1)], "key array<int>, value int"))
    with pytest.raises(ProgramError, match=r"need the columns element; these have id"):
        writer.with_list_state("op", ListStateDescriptor("items"), spark.range(1))
    for rows, schema, error, message in [
        ([(1, 1), (1, 2)], "key int, value bigint", ProgramError, "two rows for 1"),
        ([(float("nan"), 1)], "key double, value bigint", UnsupportedKey, "NaN"),
        ([(1, "x")], "key int, value string", TypeMismatch, "state 'count' of operator 'op'"),
    ]:
        frame = spark.createDataFrame(rows, schema)
        with pytest.raises(error, match=message):
            SavepointWriter.new().with_keyed_state("op", COUNT, frame).write(str(tmp_path / "bad"))
        assert not (tmp_path / "bad").exists()


def test_errors_of_tasks_are_errors_of_penstock(spark: SparkSession, tmp_path: Path) -> None:
    path = SavepointWriter.new().with_keyed_state("op", COUNT, [(1, 1)]).write(str(tmp_path / "a"))
    failing = SavepointWriter.from_existing(path).transform_state("op", "count", lambda k, n, v: v / 0)
    with pytest.raises(ProgramError, match="the function raised ZeroDivisionError"):
        failing.write(str(tmp_path / "b"), spark)
    large = SavepointWriter.new().with_keyed_state("op", COUNT, ((i, i) for i in range(9000)))
    reader = SavepointReader(large.write(str(tmp_path / "c")))
    next((tmp_path / "c").glob("slot-*")).unlink()
    with pytest.raises(SnapshotError, match="is missing"):
        reader.read_state("op", "count", spark)


def test_columns_of_empty_state_have_types(spark: SparkSession, written: Callable[..., SavepointReader]) -> None:
    frame = written(COUNT, []).read_state("op", "count", spark)
    assert types_of(frame) == {"key": "string", "namespace": "string", "value": "bigint"} and rows_of(frame) == []
    assert isinstance(frame.schema["value"].dataType, sql.LongType)
