"""Lengths, and NOT NULL in nested values, of tables that are written into. The rows are those of Flink 2.3."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.common.typeinfo import Types
from penstock.common.types import Row, RowKind
from penstock.datastream import StreamExecutionEnvironment
from penstock.errors import ExecutionException, ValidationException
from penstock.table import EnvironmentSettings, Schema, StreamTableEnvironment, TableEnvironment
from penstock.testing import in_process

LENGTHS, NESTED, NOT_NULL = (
    f"table.exec.sink.{name}-enforcer" for name in ("type-length", "nested-constraint", "not-null")
)
COLUMNS = (
    "a INT, b VARCHAR(4), c CHAR(4), d VARBINARY(4), e BINARY(4), r ROW<x INT NOT NULL, y VARCHAR(4)>, "
    "l ARRAY<INT NOT NULL>, m MAP<STRING, INT NOT NULL>"
)
ROW = (
    '{"a":1,"b":"abcdef","c":"äb","d":"YWJjZGVm","e":"YWI=","r":{"x":null,"y":"abcdef"},"l":[1,null],"m":{"k":null}}\n'
    '{"a":2}\n'
)
PLAIN = {"a": 2, "b": None, "c": None, "d": None, "e": None, "r": None, "l": None, "m": None}


@pytest.fixture(params=["streaming", "batch"])
def t_env(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TableEnvironment]:
    with in_process():
        t_env = TableEnvironment.create(getattr(EnvironmentSettings, f"in_{request.param}_mode")())
        declare(t_env, tmp_path, COLUMNS)
        yield t_env


def declare(t_env: TableEnvironment, folder: Path, columns: str) -> None:
    (folder / "in.json").write_text(ROW)
    for name, path in (("src", folder / "in.json"), ("snk", folder / "out")):
        t_env.execute_sql(
            f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'json')"
        )


def copied(t_env: TableEnvironment, folder: Path, **options: str) -> list[dict[str, Any]]:
    """The rows that reach a table of files when all rows of another one are written into it."""
    for name, value in options.items():
        t_env.get_config().set({"lengths": LENGTHS, "nested": NESTED, "not_null": NOT_NULL}[name], value)
    t_env.execute_sql("INSERT INTO snk SELECT * FROM src").wait()
    lines = [line for part in (folder / "out").glob("part-*") for line in part.read_text().splitlines()]
    return sorted((json.loads(line) for line in lines), key=lambda row: int(row["a"]))


def fitted(**values: Any) -> dict[str, Any]:
    """The first row with lengths that fit."""
    row = {"a": 1, "b": "abcd", "c": "äb  ", "d": "YWJjZA==", "e": "YWIAAA==", "r": {"x": None, "y": "abcdef"}}
    return {**row, "l": [1, None], "m": {"k": None}, **values}


def test_values_of_any_length_are_written_by_default(t_env: TableEnvironment, tmp_path: Path) -> None:
    assert copied(t_env, tmp_path) == [json.loads(ROW.splitlines()[0]), PLAIN]


def test_values_are_cut_and_padded(t_env: TableEnvironment, tmp_path: Path) -> None:
    assert copied(t_env, tmp_path, lengths="trim_pad") == [fitted(), PLAIN]


def test_a_value_that_does_not_fit_is_an_error(t_env: TableEnvironment, tmp_path: Path) -> None:
    with pytest.raises(
        ExecutionException,
        match=r"'b' is VARCHAR\(4\), but the value to write has the length "
        "6.*TRIM_PAD",
    ):
        copied(t_env, tmp_path, lengths="ERROR")


@pytest.mark.parametrize(("nested", "column"), [("ROWS", r"r\.x"), ("ROWS_AND_COLLECTIONS", r"r\.x")])
def test_a_null_in_a_row_is_an_error(t_env: TableEnvironment, tmp_path: Path, nested: str, column: str) -> None:
    with pytest.raises(ExecutionException, match=f"column '{column}' is NOT NULL"):
        copied(t_env, tmp_path, nested=nested)


@pytest.mark.parametrize(("kind", "value", "place"), [
    ("ARRAY<INT NOT NULL>", [1, None], r"v\[1\]"),
    ("MAP<STRING, INT NOT NULL>", {"k": None}, r"v\[value\]"),
    ("ARRAY<ROW<x INT NOT NULL>>", [{"x": 1}, None, {"x": None}], r"v\[2\]\.x"),
    ("MAP<STRING, ARRAY<INT NOT NULL>>", {"j": [1], "k": [2, None]}, r"v\[value\]\[1\]"),
    ("ROW<l ARRAY<INT NOT NULL>>", {"l": [None]}, r"v\.l\[0\]"),
])  # fmt: skip
def test_a_null_in_a_collection_is_an_error(tmp_path: Path, kind: str, value: Any, place: str) -> None:
    with in_process():
        t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        declare(t_env, tmp_path, f"a INT, v {kind}")
        (tmp_path / "in.json").write_text(json.dumps({"a": 1}) + "\n" + json.dumps({"a": 2, "v": value}) + "\n")
        with pytest.raises(ExecutionException, match=f"column '{place}' is NOT NULL"):
            copied(t_env, tmp_path, nested="ROWS_AND_COLLECTIONS")


def test_rows_with_a_nested_null_can_be_dropped(t_env: TableEnvironment, tmp_path: Path) -> None:
    assert copied(t_env, tmp_path, nested="rows_and_collections", not_null="DROP") == [PLAIN]


def test_texts_in_a_row_are_cut_too(t_env: TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('{"a":1,"r":{"x":5,"y":"abcdef"}}\n{"a":2}\n')
    first = copied(t_env, tmp_path, lengths="TRIM_PAD", nested="ROWS")[0]
    assert first == {**PLAIN, "a": 1, "r": {"x": 5, "y": "abcd"}}


def test_values_in_collections_cannot_be_cut(t_env: TableEnvironment, tmp_path: Path) -> None:
    with pytest.raises(ValidationException, match=r"TRIM_PAD.*cannot be combined with.*ROWS_AND_COLLECTIONS"):
        copied(t_env, tmp_path, lengths="TRIM_PAD", nested="ROWS_AND_COLLECTIONS")


@pytest.mark.parametrize(
    ("key", "allowed"),
    [(LENGTHS, "IGNORE, TRIM_PAD or ERROR"), (NESTED, "IGNORE, ROWS or ROWS_AND_COLLECTIONS")],
)
def test_the_enforcers_have_few_words(t_env: TableEnvironment, key: str, allowed: str) -> None:
    with pytest.raises(ValidationException, match=f"'{key}' cannot be 'drop': it must be {allowed}"):
        t_env.get_config().set(key, "drop")


def test_rows_that_are_taken_back_are_cut_like_those_that_came() -> None:
    """Rows of a stream of changes into a sink of rows; a deletion may hold the key alone."""
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        t_env = StreamTableEnvironment.create(env)
        rows = [
            Row.of_kind(RowKind.INSERT, "k", "abcdef"),
            Row.of_kind(RowKind.DELETE, "k", None),
        ]
        stream = env.from_collection(rows, Types.ROW_NAMED(["k", "v"], [Types.STRING(), Types.STRING()]))
        schema = Schema.new_builder().column("k", "STRING NOT NULL").column("v", "CHAR(4) NOT NULL").primary_key("k")
        t_env.create_temporary_view("src", t_env.from_changelog_stream(stream, schema.build()))
        t_env.execute_sql(
            "CREATE TABLE snk (k STRING, v CHAR(4) NOT NULL, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'print')"
        )
        t_env.get_config().set(LENGTHS, "TRIM_PAD")
        t_env.execute_sql("INSERT INTO snk SELECT * FROM src").wait()


@pytest.mark.parametrize("text", [
    "SELECT MAP[x, 1] FROM (VALUES ('a'), (CAST(NULL AS STRING))) AS t(x)",
    "SELECT MAP_FROM_ARRAYS(ARRAY['a', CAST(NULL AS STRING)], ARRAY[1, 2])",
])  # fmt: skip
def test_a_key_of_a_map_is_never_null(t_env: TableEnvironment, text: str) -> None:
    with pytest.raises(Exception, match="a key of a map is NULL, and every key must have a value"):
        list(t_env.execute_sql(text).collect())
