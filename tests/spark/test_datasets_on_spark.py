"""Data sets on Spark: tasks and slots that die change no result."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.common import RestartStrategies
from penstock.dataset import ExecutionEnvironment
from penstock.dataset.functions import RichMapFunction
from tests.spark.once import Once, die


@pytest.fixture
def env() -> ExecutionEnvironment:
    return ExecutionEnvironment.get_execution_environment().set_parallelism(2)


class Counting(RichMapFunction):
    """Counts, and kills its process for once."""

    def __init__(self, once: Once) -> None:
        self.once = once

    def open(self, runtime_context: Any) -> None:
        self.context = runtime_context
        self.seen = runtime_context.get_long_counter("seen")

    def map(self, value: int) -> int:
        self.once.map(value)
        self.seen.add(1)
        return value


def test_a_task_that_dies_counts_once(env: ExecutionEnvironment, tmp_path: Path) -> None:
    numbers = env.generate_sequence(1, 2000).map(Counting(Once(1500, tmp_path / "died", die)))
    out = tmp_path / "out"
    totals = numbers.map(lambda number: (number % 3, number)).group_by(0).sum(1)
    totals.write_as_csv(str(out))
    result = env.execute()
    lines = [line for file in out.iterdir() for line in file.read_text().splitlines()]
    assert sorted(lines) == sorted(f"{rest},{sum(range(rest or 3, 2001, 3))}" for rest in range(3))
    assert sorted(os.listdir(out)) == ["1", "2"]
    assert result.get_accumulator_result("seen") == 2000 and (tmp_path / "died").exists()


def test_joins_of_more_than_one_stage(env: ExecutionEnvironment) -> None:
    numbers = env.generate_sequence(1, 3000).map(lambda number: (number % 100, number))
    names = env.from_collection([(key, f"name {key}") for key in range(100)])
    for joined in (numbers.join(names), numbers.join_with_tiny(names)):
        counts = joined.where(0).equal_to(0).with_(lambda number, name: (name[1], 1)).group_by(0).sum(1)
        assert Counter(count for _, count in counts.collect()) == {30: 100}


class DiesInSuperstep(RichMapFunction):
    def __init__(self, once: Once) -> None:
        self.once = once

    def open(self, runtime_context: Any) -> None:
        self.superstep = runtime_context.get_superstep_number()

    def map(self, value: int) -> int:
        self.once.map(self.superstep)
        return value + self.superstep


def test_an_iteration_whose_slot_dies_begins_anew(env: ExecutionEnvironment, tmp_path: Path) -> None:
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 0))
    iteration = env.generate_sequence(1, 50).iterate(10)
    moved = iteration.map(DiesInSuperstep(Once(4, tmp_path / "died", die))).rebalance()
    assert sorted(iteration.close_with(moved).collect()) == [number + 55 for number in range(1, 51)]
    assert (tmp_path / "died").exists()
