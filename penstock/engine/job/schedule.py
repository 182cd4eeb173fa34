"""The start time of the next epoch, as pure functions of the slots' last reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.engine.checkpoint.coordinator import Coordinator
from penstock.engine.job.facts import EpochRan
from penstock.engine.messages.commands_and_reports import Report

LONGEST_WAIT_MILLIS = 1_000
UPLOAD_WAIT_MILLIS = 20
"""Time to wait before asking again whether a checkpoint has been written."""


@dataclass(frozen=True)
class Schedule:
    """The time from which the next epoch may begin, and the time at which it begins even if nothing arrives."""

    earliest: int
    latest: int | None

    def until(self, news: bool) -> int | None:
        """Return the time until which to wait; None to wait until something arrives."""
        if news and (self.latest is None or self.latest > self.earliest):
            return self.earliest
        return self.latest


def all_finished(reports: Sequence[Report]) -> bool:
    """Return True if there are reports, and every slot has finished."""
    return bool(reports) and all(report.finished for report in reports)


def next_epoch(
    ran: EpochRan, *, started: int, interval: int, coordinator: Coordinator, stopping: bool, unsealed: bool
) -> Schedule:
    """Return the schedule of the next epoch.

    A job that catches up, ends, or has news for its slots does not wait. Other jobs wait until something is due or
    arrives.

    `unsealed` tells that the input has ended, and that the checkpoint of its end cannot be tried again yet.
    """
    if _is_busy(ran, coordinator, stopping, unsealed):
        return Schedule(started, started)
    return Schedule(started + interval, _latest(ran, started + interval, coordinator))


def _is_busy(ran: EpochRan, coordinator: Coordinator, stopping: bool, unsealed: bool) -> bool:
    if ran.more and not stopping:
        return True
    if coordinator.awaits_slots():
        return not all_finished(ran.reports) and _has_backlog(ran)
    if coordinator.has_news():
        return True
    return _has_backlog(ran) or (all_finished(ran.reports) and not unsealed)


def _has_backlog(ran: EpochRan) -> bool:
    return any(report.backlog for report in ran.reports)


def _latest(ran: EpochRan, earliest: int, coordinator: Coordinator) -> int | None:
    """Return the time at which the next epoch begins even if nothing arrives; None if it needs an arrival."""
    if coordinator.awaits_slots() and not _rings(ran):
        return ran.now + UPLOAD_WAIT_MILLIS
    if any(report.waits_for_input for report in ran.reports) and not all_finished(ran.reports):
        return earliest
    due = _next_due(ran, coordinator)
    return None if due is None else max(due, earliest)


def wait_in_slots(ran: EpochRan, now: int, longest: int, coordinator: Coordinator) -> int:
    """Return the time, in milliseconds, for which a source may wait for external input in its slot."""
    if not any(report.waits_for_input for report in ran.reports) or _has_backlog(ran):
        return 0
    longest = UPLOAD_WAIT_MILLIS if coordinator.has_news() else min(longest, LONGEST_WAIT_MILLIS)
    due = _next_due(ran, coordinator)
    return longest if due is None else max(0, min(longest, due - now))


def _next_due(ran: EpochRan, coordinator: Coordinator) -> int | None:
    due = [report.next_due for report in ran.reports if report.next_due is not None]
    if ran.look_in is not None and _rings(ran):
        due.append(ran.now + int(1000 * ran.look_in))
    checkpoint = coordinator.next_due()
    return min(due if checkpoint is None else [*due, checkpoint], default=None)


def _rings(ran: EpochRan) -> bool:
    """Return True if every slot rings its bell when something arrives."""
    return all(report.rings for report in ran.reports)
