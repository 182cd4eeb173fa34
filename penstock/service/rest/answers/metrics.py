"""The metrics of a job, a vertex or a machine, and the answers that list and aggregate them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.engine.job.job_record import JobRecord, SlotRecord, VertexRecord
from penstock.engine.messages.metric_totals import OF_THE_JOB
from penstock.engine.observe.system_metrics import LOWEST_WATERMARK, TASK_METRICS
from penstock.metrics.samples import HISTOGRAM, METER
from penstock.service.rest.answers.flink_numbers import AGGREGATES, Json, Number, as_number, metric_text
from penstock.service.rest.job_backend import TaskManagerRecord

Metrics = Mapping[str, Any]


# --- metrics by owner ---
def task_metrics(vertex: VertexRecord, slot: SlotRecord | None) -> dict[str, Any]:
    """Return the metrics of one subtask that belong to no particular operator."""
    reported = slot.metrics if slot is not None else {}
    return {name: reported.get(full, 0) for name, full in task_metric_names(vertex).items()}


def task_metric_names(vertex: VertexRecord) -> dict[str, str]:
    """Return the metrics of the engine itself, with the names under which slots report them."""
    uid = vertex.operators[0].uid if vertex.operators else ""
    return {name: f"{uid}.{name}" for name in TASK_METRICS}


def subtask_metrics(record: JobRecord, vertex: VertexRecord) -> dict[int, dict[str, Any]]:
    """Return the metrics of each subtask. Metrics of operators have the operator's name as a prefix."""
    slots, names = {slot.slot: slot for slot in record.slots}, _Names(record, vertex)
    return {index: _subtask(vertex, slots.get(index), names) for index in range(vertex.parallelism)}


def _subtask(vertex: VertexRecord, slot: SlotRecord | None, names: _Names) -> dict[str, Any]:
    metrics = task_metrics(vertex, slot) | {"currentInputWatermark": input_watermark(vertex, slot)}
    if slot is None:
        return metrics
    for full, value in slot.metrics.items():
        name = names[full]
        if name is not None:
            metrics[name] = value
    for uid, operator in names.operators.items():
        metrics[f"{operator}.currentOutputWatermark"] = slot.watermarks.get(uid, LOWEST_WATERMARK)
        metrics.update({f"{operator}.{short}": value for short, value in slot.operators.get(uid, {}).items()})
    return metrics


class _Names(dict[str, str | None]):
    """Maps the full name of a metric to its name in the vertex, or to None. Each name is computed once."""

    def __init__(self, record: JobRecord, vertex: VertexRecord) -> None:
        super().__init__()
        self._record, self._vertex = record, vertex
        self.operators = {one.uid: (one.name or one.uid).replace(" ", "_") for one in vertex.operators}
        if any(slot.operators for slot in record.slots):
            # These metrics belong to the subtask itself, and operators report their own.
            self.update(dict.fromkeys(task_metric_names(vertex).values()))

    def __missing__(self, full: str) -> str | None:
        uid = owner_of(full, self._vertex)
        own = None if uid is None else _flinks_name(self._record, full).removeprefix(f"{uid}.")
        shown = self[full] = None if uid is None else f"{self.operators[uid]}.{own}"
        return shown


def _flinks_name(record: JobRecord, full: str) -> str:
    """Return Flink's name of a reading.

    A reading of a histogram follows the metric's name after an underscore. The rate of a meter has the meter's name.
    """
    metric, _, part = full.rpartition(".")
    described = record.described.get(metric) if full not in record.described else None
    if described is None:
        return full
    if described.kind == HISTOGRAM:
        return f"{metric}_{'median' if part == 'p50' else part}"
    return metric if (described.kind, part) == (METER, "rate") else full


def latency_metrics(record: JobRecord) -> dict[str, Any]:
    """Return the latencies of markers from sources to operators, which are metrics of the whole job."""
    return {
        _flinks_name(record, full).removeprefix(OF_THE_JOB): value
        for slot in record.slots
        for full, value in slot.metrics.items()
        if full.startswith(OF_THE_JOB)
    }


def owner_of(metric: str, vertex: VertexRecord) -> str | None:
    """Return the uid of the operator that owns a metric: the longest uid of the vertex with which the name begins."""
    found: str | None = None
    for operator in vertex.operators:
        uid = operator.uid
        if metric.startswith(uid) and metric[len(uid) : len(uid) + 1] == "." and len(uid) > len(found or ""):
            found = uid
    return found


def input_watermark(vertex: VertexRecord, slot: SlotRecord | None) -> int:
    """Return the watermark at the first operator of a subtask."""
    if slot is None or not vertex.operators:
        return LOWEST_WATERMARK
    return slot.watermarks.get(vertex.operators[0].uid, LOWEST_WATERMARK)


def machine_metrics(machine: TaskManagerRecord) -> dict[str, Any]:
    """Return the metrics of a task manager, under the names that Flink's clients ask for."""
    used = max(0, machine.memory - machine.free_memory)
    return {
        "Status.JVM.CPU.Load": 0.0,
        "Status.JVM.Memory.Heap.Used": used,
        "Status.JVM.Memory.Heap.Committed": machine.memory,
        "Status.JVM.Memory.Heap.Max": machine.memory,
        **machine.metrics,
    }


def cluster_metrics(running: int, machines: Sequence[TaskManagerRecord], process: Metrics) -> dict[str, Any]:
    """Return the metrics of the service: slots, jobs, and the metrics of its own process."""
    return {
        "numRunningJobs": running,
        "numRegisteredTaskManagers": len(machines),
        "taskSlotsTotal": sum(machine.slots for machine in machines),
        "taskSlotsAvailable": sum(machine.free_slots for machine in machines),
        **process,
    }


# --- answers ---
def by_subtask(metrics: Mapping[int, Metrics]) -> dict[str, Any]:
    """Return the metrics of all subtasks in one mapping. Each name begins with the number of its subtask."""
    return {f"{index}.{name}": value for index, one in metrics.items() for name, value in one.items()}


def list_metrics(metrics: Metrics, wanted: Sequence[str] | None) -> list[Json]:
    """Return all names, or the values of the wanted metrics that exist."""
    if wanted is None:
        return [{"id": name} for name in sorted(metrics)]
    return [{"id": name, "value": metric_text(metrics[name])} for name in wanted if name in metrics]


def aggregate_metrics(all_metrics: Sequence[Metrics], wanted: Sequence[str] | None, how: Sequence[str]) -> list[Json]:
    """Return all names, or aggregates of the values over several holders. Return nothing if no holder knows a name."""
    if wanted is None:
        return [{"id": name} for name in sorted({name for metrics in all_metrics for name in metrics})]
    found = {name: _numbers(all_metrics, name) for name in wanted}
    if not all(found.values()):
        return []
    return [{"id": name, **_amounts(values, how)} for name, values in found.items()]


def _numbers(all_metrics: Sequence[Metrics], name: str) -> list[Number]:
    numbers = (as_number(metrics.get(name)) for metrics in all_metrics)
    return [number for number in numbers if number is not None]


def _amounts(values: Sequence[Number], how: Sequence[str]) -> dict[str, float]:
    return {name: float(aggregate(values)) for name, aggregate in AGGREGATES.items() if name in how}
