"""Jobs that are only data: what a test says about them is what REST is told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.base.logs.levels import check_levels
from penstock.common.job import JobStatus
from penstock.engine.checkpoint.checkpoint_history import CheckpointRecord, CheckpointStatus, CheckpointsView, SlotShare
from penstock.engine.job.job_record import (
    CheckpointingRecord,
    InputRecord,
    JobRecord,
    OperatorRecord,
    Settings,
    SlotRecord,
    VertexRecord,
    vertex_id,
)
from penstock.engine.job.job_view import FailureView, StatusChange
from penstock.engine.observe.profiling import ProfileOrder, Seen
from penstock.errors import CheckpointFailed, NoSuchSnapshot, NotFound
from penstock.service.rest.job_backend import (
    LogFile,
    ProgramRecord,
    Refused,
    RunRequest,
    SavepointOrder,
    TaskManagerRecord,
    UnknownJob,
)

RUNNING, FINISHED, FAILED, CANCELED = ("a" * 32, "b" * 32, "c" * 32, "d" * 32)
SOURCE, SINK = vertex_id("source-1"), vertex_id("sink-1")
NOW = 1_794_769_186_000


def vertices() -> tuple[VertexRecord, ...]:
    source = OperatorRecord("source-1", "Source: numbers", "source")
    sink = OperatorRecord("sink-1", "Sink: <print>", "sink")
    return (
        VertexRecord(SOURCE, source.name, 2, 128, "default", (source,)),
        VertexRecord(SINK, sink.name, 2, 128, "default", (sink,), (InputRecord(SOURCE, 0, "HASH"),)),
    )


def slot(index: int, **metrics: Any) -> SlotRecord:
    counts = {f"sink-1.{name}": value for name, value in metrics.items()}
    return SlotRecord(index, 100 + index, False, {"source-1": 5000, "sink-1": 4000 + index}, counts, "worker-1")


def checkpoint(number: int, savepoint: bool = False) -> CheckpointRecord:
    shares = tuple(SlotShare(index, NOW - 500, 100, 60, 1.0, 2.0, {"sink-1": 80}) for index in range(2))
    path = f"file:/data/{'savepoint' if savepoint else 'chk'}-{number}"
    return CheckpointRecord(
        number, CheckpointStatus.COMPLETED, savepoint, NOW - 900, NOW - 500, path, expected=2, slots=shares
    )


def job(job_id: str = RUNNING, status: str = "RUNNING", **changes: Any) -> JobRecord:
    began = [StatusChange(JobStatus.CREATED, NOW - 60_000), StatusChange(JobStatus.RUNNING, NOW - 59_000)]
    last = [] if status == "RUNNING" else [StatusChange(JobStatus[status], NOW - 1000)]
    record = JobRecord(
        job_id,
        f"job {job_id[:2]}",
        False,
        status,
        (*began, *last),
        taken=NOW,
        deployed=NOW - 58_000,
        vertices=vertices(),
        slots=(slot(0, numRecordsIn=10, numRecordsOut=3), slot(1, numRecordsIn=30, numRecordsOut=4)),
        checkpoints=CheckpointsView(
            completed=(checkpoint(1), checkpoint(2), checkpoint(3, True)), completed_in_all=3, failed_in_all=0
        ),
        settings=Settings(
            parallelism=2,
            restart_strategy="never",
            parameters={"team": "yard"},
            configuration={"s3.secret-key": "******"},
            checkpoints=CheckpointingRecord(interval=1000),
        ),
    )
    return replace(record, **changes)


def failure() -> FailureView:
    trace = "Traceback (most recent call last):\n  File ...\nValueError: no number"
    return FailureView(NOW - 1000, 0, "JobFailed", "sink failed", "print", "sink-1", 1, "x", trace)


@dataclass
class ScriptedJobs:
    """Implements `Jobs`. Orders are noted; `hold` makes savepoints wait until it is set."""

    known: dict[str, JobRecord] = field(default_factory=dict)
    orders: list[Any] = field(default_factory=list)
    files: list[LogFile] = field(default_factory=list)
    uploaded: dict[str, bytes] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=lambda: {"s3.secret-key": "hunter2", "rest.port": "0"})
    hold: threading.Event = field(default_factory=threading.Event)
    levels: dict[str, str] = field(default_factory=lambda: {"root": "INFO"})
    profiled: list[ProfileOrder] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=lambda: [Seen("sink-1", 1, True, ("write:1", "flush:2"), 7)])
    answer: Callable[[str, Mapping[str, Any]], Mapping[str, Any]] = lambda name, request: {"state": name, **request}

    @classmethod
    def usual(cls) -> ScriptedJobs:
        """One job in each of the states that most clients tell apart."""
        records = [
            job(),
            job(FINISHED, "FINISHED"),
            job(FAILED, "FAILED", failures=(failure(),)),
            job(CANCELED, "CANCELED"),
        ]
        jobs = cls({record.job_id: record for record in records})
        jobs.hold.set()
        return jobs

    def records(self) -> Sequence[JobRecord]:
        return list(self.known.values())

    def record(self, job_id: str) -> JobRecord:
        if job_id not in self.known:
            raise UnknownJob(f"Job {job_id} not found.")
        return self.known[job_id]

    def configuration(self) -> Mapping[str, str]:
        return self.options

    def task_managers(self) -> Sequence[TaskManagerRecord]:
        return [TaskManagerRecord("worker-1", "host-1", 4, 2, {RUNNING: 2}, 4, 1 << 30, 1 << 29)]

    def threads(self, of: str | None = None) -> Sequence[tuple[str, str]]:
        return [("main", f'"main" of {of}')]

    def logs(self, of: str | None = None) -> Sequence[LogFile]:
        return self.files

    def cancel(self, job_id: str) -> None:
        self.record(job_id)
        self.orders.append(("cancel", job_id))

    def savepoint(self, job_id: str, order: SavepointOrder) -> str:
        assert self.hold.wait(60)
        if self.record(job_id).status != "RUNNING":
            raise Refused(f"job {job_id} does not run")
        self.orders.append(("savepoint", job_id, order))
        if order.directory == "/full":
            raise CheckpointFailed("the disk is full; access.secret=hunter2")
        return f"file:/savepoints/{len(self.orders)}"

    def checkpoint(self, job_id: str, full: bool) -> int:
        self.orders.append(("checkpoint", job_id, full))
        return 7

    def log_levels(self, job_id: str) -> Mapping[str, str]:
        self.record(job_id)
        return dict(self.levels)

    def set_log_levels(self, job_id: str, levels: Mapping[str, str]) -> None:
        self.record(job_id)
        self.levels.update(check_levels(levels))

    def profile(self, job_id: str, order: ProfileOrder) -> Sequence[Seen]:
        self.profiled.append(order)
        return self.seen

    def dispose(self, savepoint: str) -> None:
        if savepoint == "gone":
            raise NoSuchSnapshot("there is no savepoint 'gone'")
        self.orders.append(("dispose", savepoint))

    def rescale(self, job_id: str, parallelism: int) -> None:
        self.orders.append(("rescale", job_id, parallelism))

    def query(self, job_id: str, name: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self.record(job_id)
        return self.answer(name, request)

    def programs(self) -> Sequence[ProgramRecord]:
        return [ProgramRecord(id, id.partition("_")[2], NOW, ("main",)) for id in self.uploaded]

    def upload(self, name: str, file: Path) -> ProgramRecord:
        self.uploaded[f"1_{name}"] = file.read_bytes()
        return ProgramRecord(f"1_{name}", name, NOW)

    def forget_program(self, program: str) -> None:
        if self.uploaded.pop(program, None) is None:
            raise NotFound(f"there is no program {program}")

    def run(self, request: RunRequest) -> str:
        self.orders.append(request)
        return request.job_id or "e" * 32

    def plan(self, request: RunRequest) -> JobRecord:
        self.orders.append(request)
        return job("e" * 32)
