"""One stage of a BATCH job in one slot: parcels in, parcels out, in bounded memory.

This module knows nothing of Spark.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from penstock.engine.batch.parcels import Arrivals, Origin, Parcel, receivers, senders
from penstock.engine.messages.commands_and_reports import Command, Deployment, Report
from penstock.engine.messages.epoch_requests import Bell
from penstock.engine.operators.sinks.committing import Begun
from penstock.engine.records.failures import OperatorFailed
from penstock.engine.slot.slot import Slot
from penstock.graph.plan import Plan

OUTPUT_BYTES = 2 << 20
"""Approximate number of bytes of output that a task gathers, for all slots together, before it sends them."""
FIRST_RECORDS = 1024
MOST_RECORDS = 16_384
"""Highest number of records that a source reads at once. The output of many small reads is still sent together."""
MOST_RESULTS = 16
"""Number of payloads of results that are gathered."""
UNLIMITED_MILLIS = 1 << 40
"""Milliseconds that a source may read at a time: in effect no limit.

The number of records read at a time must not depend on speed.
"""
LOOK_SECONDS = 0.05
LONGEST_REST_SECONDS = 1.0

Sent = tuple[int, Parcel]
"""(target slot, parcel)"""
Assignments = dict[int, list[Any]]
"""Payloads from the driver's enumerator to the subtask, in order, by source."""


class InputCut(Exception):
    """The input ended too early: the process that sent or stored it is gone."""


class BatchStage:
    """The operators of one stage in one slot, from the first record to the last."""

    def __init__(
        self,
        index: int,
        deployment: Deployment,
        stage: int,
        announce: Callable[[list[Begun]], None] = lambda begun: None,
    ) -> None:
        """Create the stage.

        `announce` sends the driver the items that sinks have begun, before they get their first record.
        """
        self._woken = threading.Event()
        self._slot = Slot(index, deployment, Bell(self._woken.set), stage)
        self._announce = announce
        self._index = index
        self._stage = stage
        self._plan = deployment.plan
        self._attempt = deployment.attempt
        self._outlet = Outlet(self._slot, Origin(stage, index))
        self._arrivals = Arrivals(senders(self._plan, stage), deployment.spill_folder)
        self._epoch = 0

    def run(self, arriving: Iterable[Parcel], assigned: Assignments) -> Iterator[Sent]:
        """Run the stage, and iterate over everything it sends. Parcels for later stages pass through."""
        try:
            self._slot.open()
            if begun := self._slot.begun():
                self._announce(begun)
            yield from self._read(assigned)
            for parcel in arriving:
                if parcel.stage > self._stage:
                    yield self._index, parcel
                else:
                    yield from self._take(parcel)
            if missing := self._arrivals.missing():
                raise InputCut(f"stage {self._stage} of slot {self._index} has not received all input from {missing}")
            yield from self._finish()
        except OperatorFailed as failed:
            raise OperatorFailed(replace(failed.failure, stage=self._stage)) from failed
        finally:
            self._arrivals.close()
            self._slot.release()

    # --- the sources of the first stage ---
    def _read(self, assigned: Assignments) -> Iterator[Sent]:
        waiting = {node: deque(payloads) for node, payloads in assigned.items()}
        while not self._slot.has_read():
            self._slot.run_epoch(self._command({n: p.popleft() for n, p in waiting.items() if p}))
            report = self._slot.report()
            self._outlet.results += report.results
            self._outlet.committables += report.committables
            yield from self._outlet.enough()
            if not (self._slot.has_read() or report.backlog or report.news or any(waiting.values())):
                self._rest(report)

    def _rest(self, report: Report) -> None:
        """Wait until something is due or arrives, since nothing can be read now."""
        seconds = LOOK_SECONDS if report.waits_for_input else LONGEST_REST_SECONDS
        if report.next_due is not None:
            seconds = min(seconds, max(0.0, report.next_due / 1000 - time.time()))
        self._woken.wait(seconds)
        self._woken.clear()

    def _command(self, payloads: dict[int, Any]) -> Command:
        self._epoch += 1
        return Command(
            epoch=self._epoch,
            attempt=self._attempt,
            now=_now(),
            max_records=min(self._outlet.most, MOST_RECORDS),
            max_millis=UNLIMITED_MILLIS,
            assignments={node: _for_slot(self._index, payload) for node, payload in payloads.items()},
        )

    # --- what comes from earlier stages ---
    def _take(self, parcel: Parcel) -> Iterator[Sent]:
        for due in self._arrivals.take(parcel):
            if due.contents:
                self._slot.run_epoch(self._command({}), due.contents)
                yield from self._outlet.enough()

    # --- the end ---
    def _finish(self) -> Iterator[Sent]:
        while self._slot.step():
            self._slot.clock.now = _now()
            yield from self._outlet.enough()
        report = self._slot.report()
        if not report.finished:
            raise RuntimeError(f"stage {self._stage} of slot {self._index} has read all its input and has not finished")
        failures = [*([report.failure] if report.failure else []), *self._slot.close()]
        if failures:
            raise OperatorFailed(failures[0])
        yield from self._outlet.rest(report)


class Outlet:
    """Packs the output of a stage into parcels: whenever there is enough, and at the end."""

    def __init__(self, slot: Slot, origin: Origin) -> None:
        self._slot = slot
        self._origin = origin
        self._numbers: dict[tuple[int, int], int] = {}
        self.most = FIRST_RECORDS
        """Number of records to gather. It is adjusted so that they take about OUTPUT_BYTES."""
        self.results: list[tuple[str, Any]] = []
        self.committables: list[tuple[str, int, list[Any]]] = []

    def enough(self) -> Iterator[Sent]:
        """Send the gathered output if it is large enough."""
        waiting = self._slot.waiting()
        if waiting >= self.most:
            yield from self._frames(waiting)
        self.results += self._slot.take_results()
        if len(self.results) >= MOST_RESULTS:
            results, self.results = self.results, []
            yield self._to_driver(Report(self._origin.slot, -1, results=results), is_last=False)

    def _frames(self, waiting: int) -> Iterator[Sent]:
        size = 0
        for (stage, target), contents in self._slot.take_output().items():
            size += sum(len(frame) for _, frames in contents for frame in frames)
            yield target, self._parcel(stage, target, contents, is_last=False)
        fitting = waiting * OUTPUT_BYTES // max(1, size)
        self.most = max(1, min(2 * self.most, fitting))

    def rest(self, report: Report) -> Iterator[Sent]:
        """Send the last parcel to every slot that waits for one."""
        plan = self._slot.plan
        taken = self._slot.take_output()
        for stage in receivers(plan, self._origin.stage):
            for target in range(plan.slots):
                yield target, self._parcel(stage, target, taken.get((stage, target), []), is_last=True)
        report.results = self.results + report.results
        report.committables = self.committables + report.committables
        yield self._to_driver(report, is_last=True)

    def _to_driver(self, report: Report, is_last: bool) -> Sent:
        slot = self._origin.slot
        return slot, self._parcel(self._slot.plan.stages, slot, report, is_last)

    def _parcel(self, stage: int, target: int, contents: Any, is_last: bool) -> Parcel:
        number = self._numbers.get((stage, target), 0)
        self._numbers[stage, target] = number + 1
        return Parcel(stage, self._origin, number, is_last, contents)


def reports_of(plan: Plan, parcels: Sequence[Parcel], epoch: int) -> list[Report]:
    """Merge the reports of all stages of each slot into one."""
    reports = {slot: Report(slot, epoch, finished=True) for slot in range(plan.slots)}
    ended = 0
    for parcel in sorted(parcels, key=lambda parcel: (parcel.origin, parcel.number)):
        told, report = parcel.contents, reports[parcel.origin.slot]
        report.results += told.results
        report.committables += told.committables
        report.metrics.update(told.metrics)
        report.described.update(told.described)
        report.operators.update(told.operators)
        report.watermarks.update(told.watermarks)
        ended += parcel.is_last
    if ended != plan.stages * plan.slots:
        raise RuntimeError(f"{ended} of {plan.stages * plan.slots} tasks have reported their end to the driver")
    return list(reports.values())


def _for_slot(index: int, payload: Any) -> list[Any]:
    """Return a list of payloads by slot in which only this slot has one."""
    return [*([None] * index), payload]


def _now() -> int:
    return time.time_ns() // 1_000_000
