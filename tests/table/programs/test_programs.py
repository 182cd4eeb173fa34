"""Programs with a savepoint in the middle: what their sinks hold before and after it is what Flink's hold."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.table import StreamTableEnvironment, connectors
from tests.recovery.conftest import Stage, immediate_checkpoints, stage
from tests.recovery.programs import STORES
from tests.table.programs.programs import PROGRAMS, Program, Rows, changing
from tests.table.programs.script_connector import PAUSE

__all__ = ["immediate_checkpoints", "stage"]
RECORDED: dict[str, dict[str, list[str]]] = json.loads((Path(__file__).parent / "recorded.json").read_text())
DIFFERENT = {"rank-numbers-by-item": {("b", "11", "1"), ("a", "10", "2"), ("d", "7", "3")}}
"""Programs that Flink gives a wrong end, with the right one: a row that leaves the ranks stays in Flink's sink."""
REST = 6
"""Epochs without rows around the savepoint."""


@pytest.fixture(autouse=True)
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(connectors._BUILT_IN, "script", "tests.table.programs.script_connector:Script")
    yield
    STORES.clear()


class Build:
    """Declares the tables of a program, and writes its query into the sink."""

    def __init__(self, program: Program, one_by_one: bool) -> None:
        self.program = program
        self.one_by_one = one_by_one
        self.longest = max(len(source.before) for source in program.sources)

    def __call__(self, env: StreamExecutionEnvironment) -> None:
        env.set_max_parallelism(16)
        t_env = StreamTableEnvironment.create(env)
        for name, value in {"pipeline.auto-watermark-interval": "0 ms", **self.program.options}.items():
            t_env.get_config().set(name, value)
        for source in self.program.sources:
            rows = json.dumps(self._script(source.before, source.after)).replace("'", "''")
            t_env.execute_sql(
                f"CREATE TABLE {source.name} ({source.columns}) WITH ('connector' = 'script', "
                f"'modes' = '{source.modes}', 'rows' = '{rows}')"
            )
        t_env.execute_sql(f"CREATE TABLE s ({self.program.sink}) WITH ('connector' = 'script', 'store' = 's')")
        inserts = t_env.create_statement_set()
        inserts.add_insert_sql(f"INSERT INTO s {self.program.sql}")
        inserts.attach_as_datastream()

    def _script(self, before: Rows, after: Rows) -> list[Any]:
        """Rows come one in an epoch, or all at once; those after the savepoint come later in any case."""
        first, second = list(self._cut(before)), list(self._cut(after))
        rest = self.epochs - first.count(PAUSE) + REST
        return [*first, *[PAUSE] * rest, *second]

    def _cut(self, rows: Rows) -> Iterator[Any]:
        for row in rows:
            yield row
            if self.one_by_one:
                yield PAUSE

    @property
    def epochs(self) -> int:
        """How many epochs read the rows before the savepoint."""
        return self.longest if self.one_by_one else 1


def held(program: Program, changes: list[tuple[Any, ...]]) -> Counter[tuple[str, ...]]:
    """The rows that a sink holds after some changes: one of each primary key, if it has one."""
    key = re.search(r"PRIMARY KEY \((.*?)\)", program.sink)
    names = [part.split()[0] for part in program.sink.split(", PRIMARY KEY")[0].split(", ")]
    places = [names.index(name) for name in key[1].split(", ")] if key else []
    rows: Counter[tuple[str, ...]] = Counter()
    by_key: dict[tuple[str, ...], tuple[str, ...]] = {}
    for kind, *row in changes:
        values = tuple("null" if value is None else str(value) for value in row)
        own = tuple(values[place] for place in places)
        if not places:
            rows[values] += 1 if kind[0] == "+" else -1
            assert rows[values] >= 0, f"{values} is taken away and is not there"
        elif kind[0] == "+":
            by_key[own] = values
        else:
            by_key.pop(own, None)
    return Counter(by_key.values()) if places else +rows


def written(program: Program) -> list[tuple[Any, ...]]:
    """What the sink got; no -U, if it holds one row of each key."""
    changes = STORES["s"].records("out")
    assert "PRIMARY KEY" not in program.sink or not any(change[0] == "-U" for change in changes)
    return changes


def of_flink(text: str) -> tuple[str, ...]:
    kind, row = text[:2], text[3:-1]
    return (kind, *row.split(", "))


def expected(program: Program, part: str) -> Counter[tuple[str, ...]]:
    """What Flink's sink holds before the savepoint, or after everything: it keeps its changes over a savepoint."""
    return held(program, [of_flink(text) for text in RECORDED[program.name][part]])


def test_every_program_is_recorded() -> None:
    assert set(RECORDED) == set(PROGRAMS)


AT_ONCE = {program.name for program in changing()}


@pytest.mark.parametrize(
    ("name", "one_by_one"),
    [*((name, True) for name in RECORDED), *((name, False) for name in RECORDED if name in AT_ONCE)],
)
def test_a_program_with_a_savepoint_in_the_middle(stage: Stage, name: str, one_by_one: bool) -> None:
    program = PROGRAMS[name]
    build = Build(program, one_by_one)
    path = stage.start(build, hold_at=build.epochs + 1).stop(stage.savepoints)
    assert held(program, written(program)) == expected(program, "before")
    stage.run(build, parallelism=2, execution_state__recovery_path=path)
    at_end = held(program, written(program))
    if name in DIFFERENT:
        assert set(at_end) == DIFFERENT[name] != set(expected(program, "after"))
    else:
        assert at_end == expected(program, "after")
