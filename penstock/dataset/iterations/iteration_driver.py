"""The driver's part of an iteration: it learns how each superstep went, and orders the next one or the end."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Mapping
from typing import Any

from penstock.dataset.aggregators import Aggregator, ConvergenceCriterion
from penstock.dataset.iterations.place import Order, SlotReport
from penstock.engine.operators.sources.source_operator import Enumerator

log = logging.getLogger("penstock.job")


class IterationDriver:
    """Decides after each superstep, from the reports of all slots, whether another superstep follows."""

    def __init__(
        self,
        name: str,
        slots: int,
        max_iterations: int,
        aggregators: Mapping[str, Aggregator],
        criterion: tuple[str, ConvergenceCriterion] | None,
        ends_when_empty: bool,
        has_termination: bool,
    ) -> None:
        self._name = name
        self._inputs = frozenset[str]()
        self._max = max_iterations
        self._aggregators = pickle.dumps(dict(aggregators))
        self._criterion = criterion
        self._ends_when_empty = ends_when_empty
        self._has_termination = has_termination
        self._slots = slots
        self.heads: list[OrderEnumerator] = []
        self.begin_attempt()

    def set_inputs(self, names: frozenset[str]) -> None:
        """Set the names of the inputs that must be complete before the first superstep."""
        self._inputs = names

    def begin_attempt(self) -> None:
        """Begin anew: an attempt starts from the initial elements."""
        self.order: Order | None = None
        self._reports: dict[int, SlotReport] = {}
        self._attempt = -1

    # --- what the slots say ---
    def put(self, payload: bytes) -> None:
        """Take the report of a slot."""
        report: SlotReport = pickle.loads(payload)
        if report.attempt < self._attempt:
            return
        if report.attempt > self._attempt:
            self.begin_attempt()
            self._attempt = report.attempt
        self._reports[report.subtask] = report
        number = 0 if self.order is None else self.order.number
        done = [one for one in self._reports.values() if one.number == number]
        if len(done) == self._slots and (self.order is None or not self.order.ends):
            self._decide(number, done)

    def end(self) -> None:
        """Note that the job is over."""

    # --- decisions ---
    def _decide(self, number: int, reports: list[SlotReport]) -> None:
        if number == 0:
            if all(self._inputs <= report.complete_inputs for report in reports):
                self._give(Order(1))
            return
        aggregates = self._combine(reports)
        reason = self._reason_to_end(number, reports, aggregates)
        log.info("%s: superstep %d is done%s", self._name, number, "" if reason is None else f"; {reason}")
        self._give(Order(number + 1, reason is not None, aggregates))

    def _combine(self, reports: list[SlotReport]) -> dict[str, Any]:
        combined: dict[str, Aggregator] = pickle.loads(self._aggregators)
        for name, aggregator in combined.items():
            aggregator.reset()
            for report in reports:
                aggregator.aggregate(report.aggregates[name])
        return {name: aggregator.get_aggregate() for name, aggregator in combined.items()}

    def _reason_to_end(self, number: int, reports: list[SlotReport], aggregates: dict[str, Any]) -> str | None:
        if number >= self._max:
            return "this was the last one allowed"
        if self._ends_when_empty and not any(report.next_elements for report in reports):
            return "the workset is empty"
        if self._has_termination and not any(report.termination_elements for report in reports):
            return "the termination set is empty"
        if self._criterion is not None:
            name, criterion = self._criterion
            if criterion.is_converged(number, aggregates[name]):
                return f"'{name}' has converged"
        return None

    def _give(self, order: Order) -> None:
        self.order = order
        for head in self.heads:
            head.wake()


class OrderEnumerator(Enumerator):
    """Hands the driver's orders to one of the heads of an iteration."""

    exhausted = True
    is_closed = False
    """True if the attempt that this head belonged to is over."""

    def __init__(self, driver: IterationDriver) -> None:
        self._driver = driver
        self._given: Order | None = None

    def wake(self) -> None:
        """Note that there is a new order."""
        self.exhausted = False
        self.news()

    def assign(self, parallelism: int, max_records: int) -> list[Any]:
        order = self._driver.order
        self.exhausted = True
        if order is None or order is self._given:
            return [None] * parallelism
        self._given = order
        return [order] * parallelism

    def close(self) -> None:
        self.is_closed = True
