"""Joins of every kind, and a savepoint of them in the midst of their work: `python -m tests.recovery.join_programs`."""

from __future__ import annotations

import datetime
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from penstock.common import Row
from penstock.datastream import StreamExecutionEnvironment
from penstock.table.builders import Planner
from penstock.table.logical.building import join
from penstock.table.logical.nodes import ROWTIME, Column, Relation, StreamScan, Watermark, WindowTable
from penstock.table.logical.rex import Call, InputRef, Literal, conjunction
from penstock.table.types.data_types import BooleanType, DayTimeIntervalType, TimestampType
from tests.table.runtime.table_programs import INT, STRING, TS, Options, call, columns

FOLDER = Path(__file__).with_name("savepoint_of_joins")
START, ROWS, WIDTH, SIZE = datetime.datetime(2024, 3, 1), 60, 4, 10
SEEN: list[list[Any]] = []
"""[name of the join, kind of change, values…], as they came out in this process."""
Values = tuple[Any, ...]


def at(seconds: int) -> datetime.datetime:
    return START + datetime.timedelta(seconds=seconds)


def rows(seed: int) -> list[Values]:
    """(time, key, value), in order of time."""
    rng = random.Random(seed)
    return [(number, rng.choice(["a", "b", "c", None]), rng.randrange(6)) for number in range(ROWS)]


def events(env: StreamExecutionEnvironment, name: str, seed: int, key: tuple[int, ...] = ()) -> Relation:
    stream = env.from_collection([Row(at(time), own, value, at(time - 2)) for time, own, value in rows(seed)])
    stream.uid(name)
    scan = StreamScan(columns(ts=TS, k=STRING, v=INT, mark=TS), stream, name)
    if any(part.name == "primary_key" for part in fields(StreamScan)):
        scan = replace(scan, primary_key=key)
    return Watermark((Column("ts", TS, ROWTIME), *scan.columns[1:]), scan, 0, InputRef(TS, 3))


def windowed(relation: Relation) -> Relation:
    bound = TimestampType(3, False)
    bounds = (Column("window_start", bound), Column("window_end", bound), Column("window_time", bound, ROWTIME))
    return WindowTable(relation.columns + bounds, relation, "TUMBLE", 0, SIZE * 1000)


def joins(env: StreamExecutionEnvironment) -> dict[str, Relation]:
    one, two, versions = events(env, "one", 1), events(env, "two", 2), events(env, "versions", 3, (1,))
    keys = call("=", InputRef(STRING, 1), InputRef(STRING, WIDTH + 1))
    span = Literal(DayTimeIntervalType(nullable=False), 3000)
    near = [
        Call(BooleanType(), operator, (InputRef(TS, WIDTH), Call(TS, sign, (InputRef(TS, 0), span))))
        for operator, sign in ((">=", "-"), ("<=", "+"))
    ]
    left, right = windowed(one), windowed(two)
    width = len(left.columns)
    same = [call("=", left.ref(i), InputRef(left.columns[i].type, width + i)) for i in (1, WIDTH, WIDTH + 1)]
    return {
        "inner": join(one, two, "INNER", keys),
        "full": join(one, two, "FULL", conjunction([keys, call("=", InputRef(INT, 2), InputRef(INT, WIDTH + 2))])),
        "interval": join(one, two, "FULL", conjunction([keys, *near])),
        "window": join(left, right, "LEFT", conjunction(same)),
        "temporal": replace(join(one, versions, "LEFT", keys), temporal=0),
    }


def build(env: StreamExecutionEnvironment) -> None:
    """Every join, each into SEEN."""
    env.set_max_parallelism(64)
    planner = Planner(env, Options(), False)
    for name, plan in joins(env).items():
        stream = planner.rows(plan).map(partial(see, name, plan.names())).uid(f"seen {name}")
        stream.discard().uid(f"nowhere {name}")


def see(name: str, names: list[str], row: Row) -> int:
    """Note time, key and value of both sides, and the kind of change."""
    wanted = [index for index, column in enumerate(names) if column[0] in "tkv"]
    values = [list(row)[index] for index in wanted]
    plain = [int((v - START).total_seconds()) if isinstance(v, datetime.datetime) else v for v in values]
    SEEN.append([name, str(row.get_row_kind()), *plain])
    return 0


def added_up(seen: list[list[Any]]) -> dict[str, Counter[Values]]:
    found: dict[str, Counter[Values]] = {}
    for name, kind, *row in seen:
        found.setdefault(name, Counter())[tuple(row)] += 1 if kind[0] == "+" else -1
    return {name: Counter({row: count for row, count in left.items() if count}) for name, left in found.items()}


def oracle() -> dict[str, Counter[Values]]:
    one, two, versions = rows(1), rows(2), rows(3)
    equal = {(a, b) for a in one for b in two if a[1] == b[1] is not None}
    found = {
        "inner": _padded(one, two, equal, ""),
        "full": _padded(one, two, {(a, b) for a, b in equal if a[2] == b[2]}, "FULL"),
        "interval": _padded(one, two, {(a, b) for a, b in equal if abs(a[0] - b[0]) <= 3}, "FULL"),
        "window": _padded(one, two, {(a, b) for a, b in equal if a[0] // SIZE == b[0] // SIZE}, "LEFT"),
    }
    valid = {a: [b for b in versions if a[1] == b[1] is not None and b[0] <= a[0]] for a in one}
    return {**found, "temporal": _padded(one, versions, {(a, own[-1]) for a, own in valid.items() if own}, "LEFT")}


def _padded(one: list[Values], two: list[Values], pairs: set[tuple[Values, Values]], outer: str) -> Counter[Values]:
    found = [a + b for a, b in pairs]
    if outer in {"LEFT", "FULL"}:
        found += [(*a, None, None, None) for a in one if not any(a == pair[0] for pair in pairs)]
    if outer == "FULL":
        found += [(None, None, None, *b) for b in two if not any(b == pair[1] for pair in pairs)]
    return Counter(found)


def write(folder: Path) -> None:
    """Run half of the joins' work, and leave a savepoint and what was seen."""
    from penstock.engine.snapshots import writing
    from penstock.testing import ManualClock
    from penstock.testing.crashes import ImmediateWriter
    from tests.recovery.conftest import Stage

    writing.new_writer = ImmediateWriter  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as work:
        stage = Stage(Path(work), ManualClock(), 8)
        path = stage.start(build, hold_at=5).stop(stage.savepoints)
        shutil.copytree(path.removeprefix("file://"), folder, dirs_exist_ok=True)
    (folder / "seen.json").write_text("\n".join(map(json.dumps, SEEN)) + "\n")


if __name__ == "__main__":
    from tests.recovery import join_programs  # functions of a main module would travel with copies of SEEN

    join_programs.write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
