"""Conversion of a job's record to samples for reporters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from penstock.engine.job.job_record import JobRecord, MetricRecord, OperatorRecord, SlotRecord, VertexRecord, vertex_id
from penstock.engine.observe.system_metrics import LOWEST_WATERMARK, READINGS, TASK_METRICS, kind_of
from penstock.metrics.samples import METER, Sample
from penstock.metrics.scopes import ScopeFormats
from penstock.service.reporters.job_metrics import job_metrics
from penstock.service.reporters.usage import usage_by_place

Variables = Mapping[str, str]
NOBODYS = ""
"""Uid that stands for the job as a whole."""
_TM_JOB = ("taskmanager", "job")


def samples_of(record: JobRecord, formats: ScopeFormats) -> list[Sample]:
    """Return every metric of a job: of its driver, its slots, and the subtasks and operators in them."""
    return [*_of_the_job(record, formats), *_of_the_slots(record, formats)]


def _of_the_job(record: JobRecord, formats: ScopeFormats) -> Iterator[Sample]:
    host = {"<host>": record.host or "localhost"}
    job = {**host, **_job_variables(record)}
    yield from _samples(record.usage, formats.scope_parts("jm", host), ("jobmanager",), host)
    yield from _samples(job_metrics(record), formats.scope_parts("jm_job", job), ("jobmanager", "job"), job)


def _job_variables(record: JobRecord) -> dict[str, str]:
    return {"<job_name>": record.name, "<job_id>": record.job_id}


def _of_the_slots(record: JobRecord, formats: ScopeFormats) -> Iterator[Sample]:
    described: dict[str, list[tuple[str, MetricRecord]]] = {}
    for full, metric in record.described.items():
        described.setdefault(metric.uid, []).append((full, metric))
    for place, usage in usage_by_place(record.slots).items():
        host = _host_variables(record, place)
        yield from _samples(usage, formats.scope_parts("tm", host), ("taskmanager",), host)
    for slot in record.slots:
        job = {**_host_variables(record, slot.place), **_job_variables(record)}
        yield from _users(described.get(NOBODYS, ()), slot, formats.scope_parts("tm_job", job), _TM_JOB, job)
        for vertex in record.vertices:
            if slot.slot < vertex.parallelism:
                variables = {**job, **_task_variables(record, vertex, slot)}
                yield from _of_a_subtask(vertex, slot, variables, formats)
                for operator in vertex.operators:
                    yield from _of_an_operator(operator, slot, described, variables, formats)


def _host_variables(record: JobRecord, place: str) -> dict[str, str]:
    return {"<host>": place.partition(":")[0] or record.host or "localhost", "<tm_id>": place or "-"}


def _task_variables(record: JobRecord, vertex: VertexRecord, slot: SlotRecord) -> dict[str, str]:
    return {
        "<task_name>": vertex.name,
        "<task_id>": vertex.id,
        "<task_attempt_num>": str(record.attempt),
        "<subtask_index>": str(slot.slot),
    }


def _of_a_subtask(
    vertex: VertexRecord, slot: SlotRecord, variables: Variables, formats: ScopeFormats
) -> Iterator[Sample]:
    uid = vertex.operators[0].uid if vertex.operators else ""
    values = {name: slot.metrics[full] for name in TASK_METRICS if (full := f"{uid}.{name}") in slot.metrics}
    values["currentInputWatermark"] = slot.watermarks.get(uid, LOWEST_WATERMARK)
    yield from _samples(values, formats.scope_parts("task", variables), ("taskmanager", "job", "task"), variables)


def _of_an_operator(
    operator: OperatorRecord,
    slot: SlotRecord,
    described: Mapping[str, list[tuple[str, MetricRecord]]],
    task: Variables,
    formats: ScopeFormats,
) -> Iterator[Sample]:
    variables = {
        **task,
        "<operator_name>": operator.name or operator.uid,
        "<operator_id>": vertex_id(operator.uid),
        "<operator_uid>": operator.uid,
    }
    scope, logical = formats.scope_parts("operator", variables), ("taskmanager", "job", "task", "operator")
    own = {
        "currentOutputWatermark": slot.watermarks.get(operator.uid, LOWEST_WATERMARK),
        **slot.operators.get(operator.uid, {}),
    }
    yield from _samples(own, scope, logical, variables)
    yield from _users(described.get(operator.uid, ()), slot, scope, logical, variables)


def _users(
    metrics: Iterable[tuple[str, MetricRecord]],
    slot: SlotRecord,
    scope: tuple[str, ...],
    logical: tuple[str, ...],
    variables: Variables,
) -> Iterator[Sample]:
    """Yield the described metrics: those of users and connectors, and latencies."""
    for full, metric in metrics:
        values = _readings(full, metric, slot)
        if values:
            yield Sample(
                metric.name,
                metric.kind,
                values,
                (*scope, *metric.groups),
                (*logical, *metric.logical_groups),
                {**variables, **{f"<{key}>": value for key, value in metric.variables.items()}},
            )


def _readings(full: str, metric: MetricRecord, slot: SlotRecord) -> dict[str, Any]:
    names = {part: f"{full}.{part}" if part else full for part in READINGS[metric.kind]}
    return {part: slot.metrics[name] for part, name in names.items() if name in slot.metrics}


def _samples(
    values: Mapping[str, Any], scope: tuple[str, ...], logical: tuple[str, ...], variables: Variables
) -> Iterable[Sample]:
    """Yield metrics of the engine. A dot in a name, as in `Status.JVM.CPU.Load`, separates groups."""
    for full, value in values.items():
        *groups, name = full.split(".")
        kind, help = kind_of(full)
        counted = values.get(full.removesuffix("PerSecond"), 0)
        shown = {"count": counted, "rate": value} if kind == METER else {"": value}
        yield Sample(name, kind, shown, (*scope, *groups), (*logical, *groups), variables, help)
