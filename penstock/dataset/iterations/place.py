"""The part of an iteration in one slot: elements between two supersteps, the solution set, and aggregators."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.dataset.aggregators import Aggregator
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.operators.slot_objects import slot_object


@dataclass(frozen=True)
class Order:
    """The driver's next order to all slots."""

    number: int
    """Number of the order, from 1 on. It is that of the superstep, unless the iteration ends."""
    ends: bool = False
    """True if the iteration has ended and its result must be emitted."""
    aggregates: dict[str, Any] = field(default_factory=dict)
    """The aggregates of the superstep before, by name."""


@dataclass(frozen=True)
class SlotReport:
    """The state of one slot after an order."""

    attempt: int
    subtask: int
    number: int
    """Number of the order that was carried out; 0 before the first."""
    complete_inputs: frozenset[str]
    next_elements: int
    termination_elements: int
    aggregates: dict[str, Any]


class Place:
    """The state of an iteration in one slot. All operators of the iteration in the slot share it."""

    def __init__(self, aggregators: bytes) -> None:
        self.number = 0
        """Number of the last order that was carried out."""
        self.is_in_superstep = False
        """True within the epoch of a superstep."""
        self.elements: list[Any] = []
        """Elements that this superstep reads."""
        self.next_elements: list[Any] = []
        """Elements for the next superstep."""
        self.solution: dict[Any, Any] = {}
        """The elements of the solution set by key."""
        self.termination_elements = 0
        self.complete_inputs: set[str] = set()
        """Names of the inputs of the iteration that have come as a whole."""
        self.aggregators: dict[str, Aggregator] = pickle.loads(aggregators)
        self.previous: dict[str, Any] = {}
        """The aggregates of the superstep before, over all slots."""
        self.has_news = True

    def begin(self, order: Order) -> None:
        """Begin to carry out an order. Every head of the iteration in this slot calls it, and the first call counts."""
        if order.number == self.number:
            return
        self.number = order.number
        self.previous = order.aggregates
        if order.ends:
            return
        self.is_in_superstep = True
        self.elements, self.next_elements = self.next_elements, []
        self.termination_elements = 0
        for aggregator in self.aggregators.values():
            aggregator.reset()

    def end_superstep(self) -> None:
        """Note that the epoch of a superstep is over."""
        if self.is_in_superstep:
            self.is_in_superstep = False
            self.elements = []
            self.has_news = True

    def complete(self, name: str) -> None:
        """Note that an input of the iteration has come as a whole."""
        self.complete_inputs.add(name)
        self.has_news = True

    def report(self, context: OperatorContext) -> SlotReport:
        """Return the state for the driver."""
        self.has_news = False
        aggregates = {name: each.get_aggregate() for name, each in self.aggregators.items()}
        return SlotReport(
            context.attempt,
            context.subtask,
            self.number,
            frozenset(self.complete_inputs),
            len(self.next_elements),
            self.termination_elements,
            aggregates,
        )

    def store(self, key_of: Callable[[Any], Any], elements: Iterable[Any]) -> None:
        """Put elements into the solution set. Each replaces the one with its key."""
        for element in elements:
            self.solution[key_of(element)] = element


@dataclass(frozen=True)
class Identity:
    """The identity of an iteration, which its operators hold."""

    name: str
    aggregators: bytes

    def place(self, context: OperatorContext) -> Place:
        """Return the state of the iteration in the slot of an operator."""
        return slot_object(context, self.name, lambda: Place(self.aggregators))
