"""The operators of an iteration: heads that begin supersteps, sinks that keep elements, and the steps between."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Any

from penstock.dataset.accumulators import Accumulator
from penstock.dataset.iterations.iteration_driver import IterationDriver, OrderEnumerator
from penstock.dataset.iterations.place import Identity, Order, Place
from penstock.dataset.operators.dataset_operator import ACCUMULATORS, DataSetOperator
from penstock.engine.operators.operator import Operator, OperatorContext
from penstock.engine.operators.slot_objects import forget_slot_object
from penstock.engine.operators.sources.source_operator import (
    CHUNK_RECORDS,
    Budget,
    Enumerator,
    Reader,
    Source,
    SourceOperator,
)
from penstock.engine.records.elements import Chunk, Receiver, Timestamps, Values


class Role(Enum):
    """Output of a head: the elements of a superstep, the solution set in each, or the result at the end."""

    ELEMENTS = "elements"
    SOLUTION = "solution"
    RESULT = "result"
    SOLUTION_RESULT = "solution result"


class HeadSource(Source):
    """A source that is fed by the sinks of the iteration in the same slot, on the orders of the driver."""

    def __init__(self, identity: Identity, role: Role, driver: IterationDriver) -> None:
        self.identity = identity
        self.role = role
        self.driver: IterationDriver | None = driver

    def reader(self, context: OperatorContext, position: Any = None) -> HeadReader:
        return HeadReader(self, context)

    def enumerator(self) -> Enumerator | None:
        assert self.driver is not None
        self.driver.begin_attempt()
        self.driver.heads = [head for head in self.driver.heads if not head.is_closed]
        head = OrderEnumerator(self.driver)
        self.driver.heads.append(head)
        return head

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the driver's part, which stays with the driver."""
        return {**self.__dict__, "driver": None}


class HeadReader(Reader):
    """Emits the elements of its role when an order arrives."""

    def __init__(self, source: HeadSource, context: OperatorContext) -> None:
        self._source = source
        self._context = context
        self.place: Place = source.identity.place(context)

    def poll(self, output: Receiver, budget: Budget) -> int:
        if budget.payload is None:
            return 0
        order: Order = budget.payload
        budget.payload = None
        self.place.begin(order)
        values = self._values(order)
        for start in range(0, len(values), CHUNK_RECORDS):
            output.chunk(Chunk(values[start : start + CHUNK_RECORDS]))
        self.finished = order.ends
        return len(values)

    def _values(self, order: Order) -> list[Any]:
        role, place = self._source.role, self.place
        if order.ends:
            if role is Role.RESULT:
                return place.next_elements
            return list(place.solution.values()) if role is Role.SOLUTION_RESULT else []
        if role is Role.ELEMENTS:
            return place.elements
        return list(place.solution.values()) if role is Role.SOLUTION else []

    def waits_for_input(self) -> bool:
        return True

    def position(self) -> None:
        return None

    def close(self) -> None:
        forget_slot_object(self._context, self._source.identity.name)


class IterationHead(SourceOperator):
    """Reads from the iteration in its slot. The one that emits elements also reports to the driver."""

    source: HeadSource
    reader: HeadReader

    def run(self, budget: Budget) -> None:
        place = self.reader.place
        if budget.payload is None:
            place.end_superstep()
        super().run(budget)
        if self.source.role is not Role.ELEMENTS:
            return
        self.backlog = place.is_in_superstep
        if place.has_news and not place.is_in_superstep and not self.finished:
            assert self.context.results is not None
            self.context.results(self.context.uid, pickle.dumps(place.report(self.context)))

    def has_news(self) -> bool:
        return not self.finished and self.reader.place.has_news

    def waits_for_input(self) -> bool:
        return not self.finished


# --- sinks ---
class IterationSink(Operator):
    """Base of the sinks that keep elements in their slot."""

    def __init__(self, identity: Identity, completes: str | None = None) -> None:
        """Create the sink. `completes` names the input of the iteration that is complete with its last element."""
        super().__init__()
        self.identity = identity
        self.completes = completes

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self.place = self.identity.place(context)

    def watermark(self, timestamp: int) -> None:
        """Ignore watermarks, which a DataSet program does not have."""

    def finish(self) -> Iterator[None] | None:
        if self.completes is not None:
            self.place.complete(self.completes)
        return None


class ElementsSink(IterationSink):
    """Keeps elements for the next superstep."""

    def records(self, values: Values, timestamps: Timestamps) -> None:
        self.place.next_elements.extend(values)


class SolutionSink(IterationSink):
    """Keeps elements in the solution set."""

    def __init__(self, identity: Identity, key: Callable[[Any], Any], completes: str | None = None) -> None:
        super().__init__(identity, completes)
        self.key = key

    def records(self, values: Values, timestamps: Timestamps) -> None:
        self.place.store(self.key, values)


class TerminationSink(IterationSink):
    """Counts the elements of the termination set."""

    def records(self, values: Values, timestamps: Timestamps) -> None:
        self.place.termination_elements += len(values)


# --- between ---
class StaticInput(Operator):
    """Passes on elements from outside of the iteration, and notes when all have come."""

    def __init__(self, identity: Identity, name: str) -> None:
        super().__init__()
        self.identity = identity
        self.name = name

    def records(self, values: Values, timestamps: Timestamps) -> None:
        self.emit(values, None)

    def watermark(self, timestamp: int) -> None:
        """Ignore watermarks, which a DataSet program does not have."""

    def finish(self) -> Iterator[None] | None:
        self.identity.place(self.context).complete(self.name)
        return None


class SuperstepOperator(Operator):
    """Runs an operator once in each superstep, from its first element to its last.

    Elements from outside of the iteration are kept, and given to the operator again in every superstep.
    """

    def __init__(self, identity: Identity, inner: DataSetOperator, static: Sequence[bool]) -> None:
        """Wrap an operator.

        `static` has a flag for each input, broadcast sets first: True if the input comes from outside.
        """
        super().__init__()
        self.identity = identity
        self.inner = inner
        self.static = tuple(static)

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self.place = self.identity.place(context)
        self._held: list[list[Values]] = [[] for _ in self.static]
        self._accumulators: dict[str, Accumulator] = {}

    def inputs(self) -> Sequence[Callable[[Chunk], None]]:
        return [partial(self._hold, index) for index in range(len(self.static))]

    def _hold(self, index: int, chunk: Chunk) -> None:
        self._held[index].append(chunk.values)

    def watermark(self, timestamp: int) -> None:
        """Ignore watermarks, which a DataSet program does not have."""

    def end_epoch(self) -> None:
        if self.place.is_in_superstep:
            self._run()

    def _run(self) -> None:
        inner = copy.copy(self.inner)
        inner.iteration = self.place
        try:
            inner.open(replace(self.context, side_outputs={}))
            for index, receive in enumerate(inner.inputs()):
                chunks = self._held[index]
                if not self.static[index]:
                    self._held[index] = []
                for values in chunks:
                    receive(Chunk(values))
            for _ in inner.finish():
                pass
        finally:
            inner.close()
        for name, accumulator in inner.runtime_context.accumulators.items():
            if name in self._accumulators:
                self._accumulators[name].merge(accumulator)
            else:
                self._accumulators[name] = accumulator

    def finish(self) -> Iterator[None] | None:
        receiver = self.context.side_outputs.get(ACCUMULATORS)
        if receiver is not None and self._accumulators:
            receiver.chunk(Chunk(list(self._accumulators.items())))
        return None
