"""A script whose records are of classes that a function defines, with those of the module for comparison."""

from __future__ import annotations

import collections
import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.datastream import StreamExecutionEnvironment


class Global(NamedTuple):
    name: str


def records() -> Iterator[Any]:
    class Named(NamedTuple):
        name: str

    @dataclass
    class Data:
        name: str

    class Plain:
        def __init__(self, name: str) -> None:
            self.name = name

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Plain) and self.name == other.name

    class Choice(enum.Enum):
        FIRST = 1

    return iter(
        [Global("a"), Named("a"), collections.namedtuple("Made", "name")("a"), Data("a"), Plain("a"), Choice.FIRST]
    )


def main() -> None:
    given = list(records())
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    moved = env.from_collection(given).rebalance().map(lambda record: record)
    with moved.execute_and_collect() as collected:
        found = list(collected)
    for record in given:
        print(type(record).__name__, any(type(one) is type(record) and one == record for one in found))
    env.from_collection(given).map(lambda record: type(record).__name__).print()
    env.execute()


main()
