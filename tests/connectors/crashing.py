"""A database in which a process may die before, in and after every transaction, for the crash simulator."""

from __future__ import annotations

import gc
from collections import Counter
from typing import Any

import pytest

from penstock.connectors.jdbc.database import Database
from penstock.datastream import MapFunction
from penstock.testing.crashes import Build, Outcome, crash_point, simulate

RECORDS = 30


class Fragile(MapFunction):
    """Passes records on, if the process lives."""

    def map(self, value: Any) -> Any:
        crash_point("map")
        return value


def make_fragile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every transaction of the connectors may be the last thing that a process does."""
    whole = Database.run

    def run(self: Database, action: Any, what: str) -> Any:
        def then_die(connection: Any) -> Any:
            result = action(connection)
            crash_point(f"before the commit, {what}")
            return result

        crash_point(f"before {what}")
        result = whole(self, then_die, what)
        crash_point(f"after {what}")
        return result

    monkeypatch.setattr(Database, "run", run)


def check_seeds(seeds: range, build: Build, check: Any, fresh: Any) -> list[Outcome]:
    """Simulate with every seed, each in a world of its own; too few deaths would make the test worthless, and fail."""
    fresh("whole")
    whole = simulate(build, seed=0)
    check("uninterrupted")
    outcomes = []
    for seed in seeds:
        fresh(f"seed{seed}")
        outcomes.append(simulate(build, seed, steps=whole.steps))
        # What dead processes held is let go here and not later, in the middle of something else.
        gc.collect()
        check(f"seed {seed}, {outcomes[-1].crashes}, {outcomes[-1].settings}")
    assert sum(len(outcome.crashes) for outcome in outcomes) > len(seeds) / 2
    assert any(outcome.drivers > 1 for outcome in outcomes)
    return outcomes


def once_each(rows: list[Any]) -> Counter[Any]:
    return Counter(dict.fromkeys(rows, 1))
