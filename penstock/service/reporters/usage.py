"""What the processes of slots use of processor and memory, put together by the machines that they are on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.engine.job.job_record import SlotRecord

Usage = Mapping[str, float | int]
_OF_THE_MACHINE = "Status.JVM.Memory.Heap.Max"
"""The memory of the whole machine, which its processes share; of everything else each has its own."""


def usage_by_place(slots: Iterable[SlotRecord]) -> dict[str, dict[str, float | int]]:
    """By task manager: what its slots use together."""
    places: dict[str, list[Usage]] = {}
    for slot in slots:
        if slot.usage:
            places.setdefault(slot.place, []).append(slot.usage)
    return {place: together(usages) for place, usages in places.items()}


def together(usages: Iterable[Usage]) -> dict[str, float | int]:
    """What several processes on one machine use."""
    total: dict[str, float | int] = {}
    for usage in usages:
        for name, value in usage.items():
            total[name] = max(total.get(name, 0), value) if name == _OF_THE_MACHINE else total.get(name, 0) + value
    return total
