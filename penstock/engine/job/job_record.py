"""A job as plain data that any process can read without the job's own code. It is sent and stored as JSON.

A `JobView` refers to the plan, and through it to the program's functions. A `JobRecord` holds the same facts as numbers
and words. Everything outside a job's driver (REST, web pages, the register of a server) reads records only.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from socket import gethostname
from typing import Any, TypeVar

from penstock.engine.checkpoint.checkpoint_history import CheckpointsView
from penstock.engine.job.job_view import FailureView, JobView, StatusChange
from penstock.engine.job.reports import readings
from penstock.engine.messages.commands_and_reports import Report
from penstock.engine.messages.metric_totals import combine_metrics
from penstock.engine.observe.rates import Rates
from penstock.engine.observe.system_metrics import HIGHEST_WATERMARK, LOWEST_WATERMARK
from penstock.graph.plan import Edge, Node, Plan, operator_id
from penstock.graph.plan_text import title
from penstock.metrics.metric import Described
from penstock.metrics.process_metrics import process_metrics

T = TypeVar("T")


@dataclass(frozen=True)
class OperatorRecord:
    """An operator inside a vertex."""

    uid: str
    name: str
    kind: str


@dataclass(frozen=True)
class InputRecord:
    """A stream that enters a vertex."""

    vertex: str
    """The id of the vertex that it comes from."""
    number: int
    """Index of the operator's input that it enters, from 0."""
    partitioning: str
    side_output: str | None = None


@dataclass(frozen=True)
class VertexRecord:
    """A chain of operators, which Flink calls a vertex of the job graph."""

    id: str
    name: str
    parallelism: int
    max_parallelism: int
    slot_sharing_group: str
    operators: tuple[OperatorRecord, ...]
    inputs: tuple[InputRecord, ...] = ()


@dataclass(frozen=True)
class SlotRecord:
    """The report of a slot at the end of the last epoch, as plain data."""

    slot: int
    process: int
    finished: bool
    watermarks: Mapping[str, int]
    """Watermarks by operator uid."""
    metrics: Mapping[str, Any]
    """Metrics by full name: uid of the operator, or of the vertex's first one for built-in metrics, and own name."""
    place: str = ""
    """Machine, and executor if known, on which the slot runs."""
    operators: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The engine's figures of single operators, by operator uid, under Flink's names."""
    usage: Mapping[str, float | int] = field(default_factory=dict)
    """Processor time and memory of the slot's process, under Flink's names."""


@dataclass(frozen=True)
class MetricRecord:
    """The description of a metric of a user or a connector, without its value."""

    uid: str
    """The operator to which it belongs."""
    name: str
    kind: str
    """`counter`, `gauge`, `meter` or `histogram`."""
    groups: tuple[str, ...] = ()
    logical_groups: tuple[str, ...] = ()
    """The groups without the values of key-value groups."""
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StateRecord:
    """A state that can be looked up from outside."""

    name: str
    kind: str
    """value, list, map, reducing or aggregating."""
    uid: str
    """Uid of the operator that holds it."""
    operator: str


@dataclass(frozen=True)
class CheckpointingRecord:
    """The checkpoint settings of a job. Times are in milliseconds."""

    mode: str = "EXACTLY_ONCE"
    interval: int = 0
    timeout: int = 600_000
    min_pause: int = 0
    max_concurrent: int = 1
    tolerable_failures: int = 0
    retention: str = "NO_EXTERNALIZED_CHECKPOINTS"
    state_backend: str = "HashMapStateBackend"
    storage: str = "JobManagerCheckpointStorage"
    unaligned: bool = False
    retained: int = 1
    """Number of complete checkpoints that are kept."""


@dataclass(frozen=True)
class Settings:
    """The settings with which the job was started."""

    parallelism: int = 1
    max_parallelism: int | None = None
    restart_strategy: str = ""
    object_reuse: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)
    """The global job parameters."""
    configuration: Mapping[str, str] = field(default_factory=dict)
    """Every option that was given, with secrets masked."""
    checkpoints: CheckpointingRecord | None = None
    """None if the job takes no checkpoints by itself."""
    master: str = ""


@dataclass(frozen=True)
class JobRecord:
    """Everything that can be reported about a job at one moment. Times are in milliseconds since 1970."""

    job_id: str
    name: str
    batch: bool
    status: str
    """The name of a JobStatus."""
    changes: tuple[StatusChange, ...]
    taken: int = 0
    """Time at which this record was made."""
    attempt: int = 0
    epoch: int = 0
    deployed: int | None = None
    """Time since which the slots of this attempt are ready; None while the job waits for them."""
    restart_at: int | None = None
    vertices: tuple[VertexRecord, ...] = ()
    slots: tuple[SlotRecord, ...] = ()
    checkpoints: CheckpointsView = field(default_factory=CheckpointsView)
    failures: tuple[FailureView, ...] = ()
    accumulators: Mapping[str, float | int] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    described: Mapping[str, MetricRecord] = field(default_factory=dict)
    """Descriptions of metrics by full name, as in the metrics of slots."""
    host: str = ""
    """The machine of the driver."""
    usage: Mapping[str, float | int] = field(default_factory=dict)
    """Processor time and memory of the driver's process, under Flink's names."""
    queryable: tuple[StateRecord, ...] = ()
    """Queryable states that functions have asked for so far."""

    def time_of(self, status: str) -> int | None:
        """Return the time at which the job last entered this status; None if it never did."""
        return next((change.when for change in reversed(self.changes) if change.status.name == status), None)

    @property
    def started(self) -> int:
        """Time of the job's first status."""
        return self.changes[0].when if self.changes else self.taken

    @property
    def ended(self) -> int | None:
        """Time at which the job ended; None while it has not."""
        last = self.changes[-1] if self.changes else None
        return last.when if last is not None and last.status.is_globally_terminal_state() else None


def vertex_id(uid: str) -> str:
    """Return the id of the vertex that begins with this operator. It is the same in every run of the program."""
    return operator_id(uid)


def record_of(view: JobView, settings: Settings, rates: Rates, taken: int) -> JobRecord:
    """Return a view as plain data."""
    plan, built_in, operators = view.plan, rates.metrics(view.reports), rates.operators(view.reports, taken)
    _add_state_sizes(operators, view.checkpoints)
    return JobRecord(
        job_id=view.job_id,
        name=plan.job_name if plan is not None else "",
        batch=plan is not None and plan.batch,
        status=view.status.name,
        changes=view.changes,
        taken=taken,
        attempt=view.attempt,
        epoch=view.epoch,
        deployed=view.deployed,
        restart_at=view.restart_at,
        vertices=_vertices(plan) if plan is not None else (),
        slots=tuple(_slot(report, built_in[report.slot], operators[report.slot], taken) for report in view.reports),
        checkpoints=view.checkpoints,
        failures=view.failures,
        accumulators=combine_metrics(view.reports),
        settings=settings,
        described=_metric_records(view.reports),
        host=gethostname(),
        usage=process_metrics(),
    )


def _add_state_sizes(operators: Mapping[int, Mapping[str, dict[str, Any]]], checkpoints: CheckpointsView) -> None:
    """Add the size of each operator's state in each slot's part of the last checkpoint."""
    for share in checkpoints.completed[-1].slots if checkpoints.completed else ():
        for uid, size in share.operators.items():
            if uid in operators.get(share.slot, {}):
                operators[share.slot][uid]["lastCheckpointStateSize"] = size


def _metric_records(reports: Sequence[Report]) -> dict[str, MetricRecord]:
    return {name: _metric(metric) for report in reports for name, metric in report.described.items()}


def _metric(described: Described) -> MetricRecord:
    uid, *groups = described.scope
    return MetricRecord(
        uid, described.name, described.kind, tuple(groups), described.logical_scope[1:], described.variables
    )


def _vertices(plan: Plan) -> tuple[VertexRecord, ...]:
    chains: dict[int, list[Node]] = {}
    for node in plan.nodes:
        chains.setdefault(node.chain, []).append(node)
    ids = {node.id: vertex_id(nodes[0].uid) for nodes in chains.values() for node in nodes}
    return tuple(_vertex(plan, nodes, ids) for nodes in chains.values())


def _vertex(plan: Plan, nodes: list[Node], ids: dict[int, str]) -> VertexRecord:
    first = nodes[0]
    entering = [edge for node in nodes for edge in plan.incoming[node.id] if ids[edge.source] != ids[first.id]]
    return VertexRecord(
        id=ids[first.id],
        name=" -> ".join(map(title, nodes)),
        parallelism=first.parallelism,
        max_parallelism=first.max_parallelism,
        slot_sharing_group=first.slot_sharing_group,
        operators=tuple(OperatorRecord(node.uid, title(node), node.kind) for node in nodes),
        inputs=tuple(_input(edge, ids) for edge in entering),
    )


def _input(edge: Edge, ids: dict[int, str]) -> InputRecord:
    return InputRecord(ids[edge.source], edge.input_index, edge.partitioning.label, edge.tag)


def _slot(
    report: Report, built_in: Mapping[str, float | int], operators: Mapping[str, dict[str, Any]], taken: int
) -> SlotRecord:
    for uid, watermark in report.watermarks.items():
        if LOWEST_WATERMARK < watermark < HIGHEST_WATERMARK and uid in operators:
            operators[uid]["watermarkLag"] = taken - watermark
    return SlotRecord(
        report.slot,
        report.process,
        report.finished,
        report.watermarks,
        {**_plain(readings(report)), **built_in},
        report.place,
        operators,
        report.usage,
    )


def _plain(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Replace values that are not plain by their text, since a gauge may return any object."""
    return {
        name: value if isinstance(value, (int, float, str, bool)) else repr(value) for name, value in metrics.items()
    }


# --- as JSON ---
_AS_THEY_ARE = frozenset({int, float, str, bool, type(None)})


def as_json(value: Any) -> Any:
    """Return a value in the form of JSON: dataclasses become objects, enumerations their names, tuples lists."""
    if type(value) in _AS_THEY_ARE:
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {part.name: as_json(getattr(value, part.name)) for part in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Mapping):
        return {name: as_json(one) for name, one in value.items()}
    if isinstance(value, (tuple, list)):
        return [as_json(one) for one in value]
    return value


def from_json(kind: type[T], data: Any) -> T:
    """Return the value that `as_json` was given. Fields that this version does not know are left out."""
    return typing.cast(T, _read(kind, data))


@cache
def _field_types(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _read(kind: Any, data: Any) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if data is None or kind is Any:
        return data
    if origin in (typing.Union, types.UnionType):
        return _read(next(one for one in arguments if one is not type(None)), data)
    if origin is tuple:
        return tuple(_read(arguments[0], one) for one in data)
    if origin is Mapping and dataclasses.is_dataclass(arguments[1]):
        return {name: _read(arguments[1], one) for name, one in data.items()}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind[data]
    return _read_fields(kind, data) if dataclasses.is_dataclass(kind) else data


def _read_fields(kind: Any, data: Mapping[str, Any]) -> Any:
    known = _field_types(kind)
    return kind(**{name: _read(known[name], one) for name, one in data.items() if name in known})
