"""The iteration under all models: every slot keeps its part of a graph, and in each superstep parts send and receive.

A part is an element of a bulk iteration. So are the messages on their way from one part to another, in batches: one for
each pair of parts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

from penstock.dataset import DataSet
from penstock.dataset.aggregators import Aggregator, ConvergenceCriterion, LongSumAggregator, LongZeroConvergence
from penstock.dataset.operators.dataset_operator import DataSetOperator
from penstock.engine.records.elements import Values
from penstock.engine.records.failures import USER_ERRORS
from penstock.engine.state.key_groups import stable_hash
from penstock.errors import ProgramError
from penstock.graph.partitioning import Custom

WORK = "work of the superstep"
"""Name of the aggregator for what the programs of all parts say of their work. It cannot be taken by a user's one."""


class Parcel(NamedTuple):
    """A batch of messages for a part of the graph, or the part itself."""

    part: int
    is_part: bool
    content: Any


class SuperstepProgram(ABC):
    """The work of each part of a graph in a superstep: send messages, and receive those that all parts have sent."""

    @abstractmethod
    def send(self, part: Any, task: Any) -> Iterable[tuple[int, Any]]:
        """Yield batches of messages, each with the number of the part that it goes to."""

    @abstractmethod
    def receive(self, part: Any, batches: Sequence[Any], task: Any) -> float:
        """Take the batches for a part. Return the work that it leaves, which the criterion looks at as a sum."""

    def open(self, task: Any) -> None:  # noqa: B027 - most programs have nothing to prepare
        """Prepare for a superstep."""

    def close(self) -> None:  # noqa: B027
        """End a superstep."""

    def refuse(self, number: int, batches: Sequence[Any]) -> None:
        """Raise an error for messages to a part that has no vertices."""
        raise ProgramError(f"messages go to part {number} of the graph, which has no vertices")


@dataclass
class Supersteps:
    """An iteration over the parts of a graph."""

    name: str
    program: SuperstepProgram
    max_iterations: int
    parallelism: int
    aggregators: Mapping[str, Aggregator] = field(default_factory=dict)
    broadcast_sets: Mapping[str, DataSet] = field(default_factory=dict)
    work: Aggregator = field(default_factory=LongSumAggregator)
    criterion: ConvergenceCriterion = field(default_factory=LongZeroConvergence)

    def run(self, parts: DataSet) -> DataSet:
        """Return the parts as they are after the last superstep."""
        iteration = parts.iterate(self.max_iterations)
        for name, aggregator in self.aggregators.items():
            iteration.register_aggregator(name, aggregator)
        iteration.register_aggregation_convergence_criterion(WORK, self.work, self.criterion)
        sent = iteration.add(f"{self.name}: send", SendOperator(self.program))
        received = to_parts(sent, f"{self.name}: receive", ReceiveOperator(self.program), self.parallelism)
        for operator in (sent, received):
            operator.set_parallelism(self.parallelism)
            for name, data in self.broadcast_sets.items():
                operator.with_broadcast_set(data, name)
        return iteration.close_with(received)


def to_parts(data: DataSet, name: str, operator: DataSetOperator, parallelism: int) -> DataSet:
    """Add an operator that gets each parcel in the task of its part."""
    made = data.add(name, operator, partitioning=Custom(choose_task, itemgetter(0)))
    return made.set_parallelism(parallelism)


def choose_task(part: int, tasks: int) -> int:
    """Return the task of a part."""
    return part % tasks


def owner_of(vertex_id: Any, parts: int) -> int:
    """Return the number of the part that has a vertex."""
    return stable_hash(vertex_id) % parts if parts > 1 else 0


# --- operators ---
class SendOperator(DataSetOperator):
    """Lets parts send."""

    def __init__(self, program: SuperstepProgram) -> None:
        super().__init__()
        self.program = program

    def begin(self) -> None:
        self.program.open(self.runtime_context)

    def process(self, index: int, values: Values) -> None:
        for parcel in values:
            try:
                batches = self.program.send(parcel.content, self.runtime_context)
                self.give(Parcel(number, False, batch) for number, batch in batches)
            except USER_ERRORS as error:
                raise self.failure(error, []) from error
            self.give([parcel])

    def rest(self) -> Iterator[Iterable[Any] | None]:
        self.program.close()
        return iter(())


class PartOperator(DataSetOperator):
    """Base of operators that wait for all parcels of their parts."""

    def begin(self) -> None:
        self._parts: dict[int, Any] = {}
        self._batches: dict[int, list[Any]] = {}

    def process(self, index: int, values: Values) -> None:
        for parcel in values:
            if parcel.is_part:
                self._parts[parcel.part] = parcel.content
            else:
                self._batches.setdefault(parcel.part, []).append(parcel.content)

    def rest(self) -> Iterator[Iterable[Any] | None]:
        for number in sorted({*self._parts, *self._batches}):
            try:
                results = self.complete(number, self._parts.get(number), self._batches.get(number, []))
                yield list(results)
            except USER_ERRORS as error:
                raise self.failure(error, []) from error

    def complete(self, number: int, part: Any, batches: list[Any]) -> Iterable[Parcel]:
        """Return the results for a part, and for all parcels to it. The part is None if there is none yet."""
        raise NotImplementedError


class ReceiveOperator(PartOperator):
    """Lets parts receive."""

    def __init__(self, program: SuperstepProgram) -> None:
        super().__init__()
        self.program = program

    def begin(self) -> None:
        super().begin()
        self.program.open(self.runtime_context)

    def complete(self, number: int, part: Any, batches: list[Any]) -> Iterable[Parcel]:
        if part is None:
            self.program.refuse(number, batches)
            return
        work = self.program.receive(part, batches, self.runtime_context)
        self.runtime_context.get_iteration_aggregator(WORK).aggregate(work)
        yield Parcel(number, True, part)

    def rest(self) -> Iterator[Iterable[Any] | None]:
        yield from super().rest()
        self.program.close()


__all__ = ["WORK", "Parcel", "PartOperator", "SuperstepProgram", "Supersteps", "owner_of", "to_parts"]
