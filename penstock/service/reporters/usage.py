"""Processor time and memory of the slots' processes, added up by machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.engine.job.job_record import SlotRecord

Usage = Mapping[str, float | int]
_OF_THE_MACHINE = "Status.JVM.Memory.Heap.Max"
"""Metric of the whole machine's memory, which its processes share. All other metrics are added up."""


def usage_by_place(slots: Iterable[SlotRecord]) -> dict[str, dict[str, float | int]]:
    """Return the total usage of the slots, by task manager."""
    places: dict[str, list[Usage]] = {}
    for slot in slots:
        if slot.usage:
            places.setdefault(slot.place, []).append(slot.usage)
    return {place: together(usages) for place, usages in places.items()}


def together(usages: Iterable[Usage]) -> dict[str, float | int]:
    """Return the total usage of several processes on one machine."""
    total: dict[str, float | int] = {}
    for usage in usages:
        for name, value in usage.items():
            total[name] = max(total.get(name, 0), value) if name == _OF_THE_MACHINE else total.get(name, 0) + value
    return total
