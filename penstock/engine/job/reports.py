"""Functions of the reports of all slots together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.engine.job.driver_parts import job_failed
from penstock.engine.messages.commands_and_reports import Report
from penstock.errors import SlotLost
from penstock.graph.plan import Plan
from penstock.metrics.histogram import HistogramState

Reached = dict[tuple[str, str, int], int]
"""Watermarks by alignment group, watermark operator and slot."""


def check(reports: list[Report]) -> None:
    """Raise SlotLost or JobFailed if a slot reports that it is lost or has failed."""
    lost = [report for report in reports if report.lost]
    if lost:
        raise SlotLost("; ".join(f"slot {report.slot}: {report.lost}" for report in lost))
    failed = [report.failure for report in reports if report.failure is not None]
    if failed:
        # A failure may make later stages fail in other slots: the earliest is the cause.
        raise job_failed(min(failed, key=lambda failure: failure.stage))


def complete_reports(before: Sequence[Report], reports: Sequence[Report]) -> None:
    """Complete reports, which hold only changed measurements, with the earlier reports of their slots."""
    known = {report.slot: report for report in before}
    for report in reports:
        earlier = known.get(report.slot)
        if earlier is not None:
            # The mappings of earlier reports never change, so that views can share them.
            report.metrics = {**earlier.metrics, **report.metrics} if report.metrics else earlier.metrics
            report.operators = {**earlier.operators, **report.operators} if report.operators else earlier.operators
            report.described = {**earlier.described, **report.described} if report.described else earlier.described
            report.usage = report.usage or earlier.usage


def readings(report: Report) -> dict[str, Any]:
    """Return the readings of a slot's metrics. Each reading of a histogram has a name of its own."""
    found: dict[str, Any] = {}
    for name, value in report.metrics.items():
        if isinstance(value, HistogramState):
            found.update({f"{name}.{part}": one for part, one in value.readings().items()})
        else:
            found[name] = value
    return found


def alignment_reached(reports: list[Report]) -> Reached:
    """Return the watermarks that the alignment groups have reached."""
    return {
        (group, uid, report.slot): watermark
        for report in reports
        for (group, uid), watermark in report.alignment.items()
    }


def alignment_limits(plan: Plan, reached: Reached) -> dict[str, int]:
    """Return the limit of each alignment group: the watermark of its slowest stream plus the smallest drift."""
    limits: dict[str, int] = {}
    for node in plan.nodes:
        if node.alignment is not None:
            group, drift = node.alignment
            slowest = [w for (g, _, _), w in reached.items() if g == group]
            if slowest:
                limits[group] = min(min(slowest) + drift, limits.get(group, 2**63))
    return limits
