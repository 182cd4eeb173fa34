"""Jobs that are only data, and whose figures move: what a browser is shown where no job needs to run."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.common.job import JobStatus
from penstock.engine.checkpoint.checkpoint_history import (
    CheckpointRecord,
    CheckpointStatus,
    CheckpointsView,
    Restored,
    SlotShare,
)
from penstock.engine.job.job_record import (
    CheckpointingRecord,
    InputRecord,
    JobRecord,
    OperatorRecord,
    Settings,
    SlotRecord,
    StateRecord,
    VertexRecord,
    vertex_id,
)
from penstock.engine.job.job_view import FailureView, StatusChange
from penstock.service.rest.job_backend import TaskManagerRecord
from tests.rest.scripted_jobs import ScriptedJobs

ORDERS, RESTARTED, BROKEN, DONE, LARGE, THOUSAND = ("a1" * 16, "b2" * 16, "c3" * 16, "d4" * 16, "e5" * 16, "f6" * 16)
SECONDS = 1000
TRACE = """Traceback (most recent call last):
  File "orders.py", line 41, in process_element
    price = float(order["price"]) * rates[order["currency"]]
            ~~~~~^^^^^^^^^^^^^^^^
KeyError: 'currency'
"""

# What a vertex is: uid, operators, inputs (uid, partitioning), share busy, share held back, records a second.
Shape = tuple[str, list[str], list[tuple[str, str]], float, float, float]
ORDER_SHAPES: list[Shape] = [
    ("orders", ["Source: orders", "parse", "timestamps"], [], 0.31, 0.58, 41_300),
    ("customers", ["Source: customers", "parse"], [], 0.04, 0.0, 120),
    ("enrich", ["enrich with customer"], [("orders", "HASH"), ("customers", "BROADCAST")], 0.42, 0.51, 41_200),
    ("totals", ["totals per minute", "to row"], [("enrich", "HASH")], 0.96, 0.0, 39_800),
    ("alerts", ["alerts"], [("enrich", "FORWARD")], 0.08, 0.0, 310),
    ("to-kafka", ["Sink: totals to Kafka"], [("totals", "REBALANCE")], 0.12, 0.0, 5_300),
    ("to-mail", ["Sink: mail"], [("alerts", "FORWARD")], 0.0, 0.0, 12),
]


def now() -> int:
    return int(time.time() * 1000)


def vertices(shapes: Sequence[Shape], parallelism: int) -> tuple[VertexRecord, ...]:
    return tuple(
        VertexRecord(
            vertex_id(uid),
            " -> ".join(names),
            parallelism,
            128 if parallelism <= 128 else 2048,
            "default",
            tuple(OperatorRecord(f"{uid}-{number}", name, "map") for number, name in enumerate(names)),
            tuple(InputRecord(vertex_id(other), number, how) for number, (other, how) in enumerate(inputs)),
        )
        for uid, names, inputs, *_ in shapes
    )


def slots(shapes: Sequence[Shape], parallelism: int, taken: int) -> tuple[SlotRecord, ...]:
    return tuple(_slot(shapes, parallelism, index, taken) for index in range(parallelism))


def _slot(shapes: Sequence[Shape], parallelism: int, index: int, taken: int) -> SlotRecord:
    metrics: dict[str, Any] = {}
    watermarks: dict[str, int] = {}
    wave = 1 + 0.08 * math.sin(taken / 5000 + index)
    for uid, names, inputs, busy, held, rate in shapes:
        own = rate / parallelism * wave
        share = min(1.0, busy * (1 - 0.06 * index / max(1, parallelism)) * wave)
        figures = {
            "numRecordsIn": int(own * 600) if inputs else 0,
            "numRecordsOut": int(own * 590),
            "numRecordsInPerSecond": own if inputs else 0.0,
            "numRecordsOutPerSecond": own * 0.98,
            "numBytesIn": int(own * 600 * 84) if inputs else 0,
            "numBytesOut": int(own * 590 * 84),
            "numBytesInPerSecond": own * 84 if inputs else 0.0,
            "numBytesOutPerSecond": own * 82,
            "busyTimeMsPerSecond": 1000 * share,
            "backPressuredTimeMsPerSecond": 1000 * min(held, 1 - share),
            "idleTimeMsPerSecond": 1000 * max(0.0, 1 - share - held),
            "accumulateBusyTimeMs": 600_000 * share,
        }
        metrics |= {f"{uid}-0.{name}": value for name, value in figures.items()}
        metrics[f"{uid}-0.rejected"] = 3 + index
        watermarks |= {f"{uid}-{number}": taken - 2300 - 120 * index for number in range(len(names))}
    return SlotRecord(index, 4000 + index, False, watermarks, metrics, f"worker-{1 + index % 2}")


def checkpoints(uids: Sequence[str], parallelism: int, began: int, taken: int) -> CheckpointsView:
    """One every five seconds."""
    last = max(1, (taken - began) // 5000)
    numbers = range(max(1, last - 40), last + 1)
    done = tuple(_checkpoint(number, uids, parallelism, began) for number in numbers if number % 17)
    failed = tuple(_failed(number, began) for number in numbers if number % 17 == 0)
    restored = Restored(3, False, began + 15_000, "file:/data/orders/chk-3")
    return CheckpointsView(
        completed=done,
        failed=failed,
        restored=restored,
        completed_in_all=last - last // 17,
        failed_in_all=len(failed),
        restored_in_all=1,
    )


def _checkpoint(number: int, uids: Sequence[str], parallelism: int, began: int) -> CheckpointRecord:
    at = began + number * 5000
    size = 18_000_000 + 220_000 * number + int(2_000_000 * math.sin(number / 3))
    took = 140 + number % 7 * 20
    shares = tuple(
        SlotShare(
            index,
            at + took - 10 * index,
            size // parallelism,
            size // parallelism // 6,
            4.0,
            90.0,
            {f"{uid}-0": size // parallelism // len(uids) for uid in uids},
        )
        for index in range(parallelism)
    )
    savepoint = number % 13 == 0
    path = f"file:/data/orders/{'savepoint' if savepoint else 'chk'}-{number}"
    return CheckpointRecord(
        number, CheckpointStatus.COMPLETED, savepoint, at, at + took, path, expected=parallelism, slots=shares
    )


def _failed(number: int, began: int) -> CheckpointRecord:
    at = began + number * 5000
    why = "CheckpointFailed: subtask 2 of totals per minute could not write: No space left on device"
    return CheckpointRecord(number, CheckpointStatus.FAILED, False, at, at + 900, None, why, expected=4)


def failure(when: int, attempt: int = 0, uid: str = "enrich-0") -> FailureView:
    message = "operator enrich with customer (uid enrich) failed at {'id': 4711, 'price': '12.40'}"
    return FailureView(when, attempt, "UserFunctionError", message, "enrich with customer", uid, 1, "4711", TRACE)


def _settings(parallelism: int) -> Settings:
    return Settings(
        parallelism=parallelism,
        restart_strategy="exponential delay: 1 s, doubling up to 1 min",
        parameters={"team": "checkout", "topic": "orders.v3"},
        configuration={
            "execution.checkpointing.interval": "5 s",
            "state.backend.type": "rocksdb",
            "s3.secret-key": "******",
            "parallelism.default": str(parallelism),
        },
        checkpoints=CheckpointingRecord(interval=5000, state_backend="EmbeddedRocksDBStateBackend", retained=3),
    )


def running(job_id: str, name: str, shapes: Sequence[Shape], parallelism: int, minutes: float = 7) -> JobRecord:
    """A job that has run for some minutes."""
    taken = now()
    began = taken - int(minutes * 60 * SECONDS)
    return JobRecord(
        job_id,
        name,
        False,
        "RUNNING",
        (StatusChange(JobStatus.CREATED, began), StatusChange(JobStatus.RUNNING, began + 900)),
        taken=taken,
        epoch=8113,
        deployed=began + 2100,
        vertices=vertices(shapes, parallelism),
        slots=slots(shapes, parallelism, taken),
        checkpoints=checkpoints([shape[0] for shape in shapes[:4]], min(parallelism, 8), began, taken),
        settings=_settings(parallelism),
        accumulators={f"{shape[0]}-0.rejected": 17 for shape in shapes},
        queryable=(
            StateRecord("totals", "value", f"{shapes[-1][0]}-0", shapes[-1][1][0]),
            StateRecord("last-orders", "list", f"{shapes[0][0]}-0", shapes[0][1][0]),
        ),
    )


def restarted() -> JobRecord:
    record = running(RESTARTED, "enrich-clicks", ORDER_SHAPES[:3], 2, 12)
    began = record.changes[0].when
    changes = (*record.changes, StatusChange(JobStatus.RESTARTING, began + 240_000))
    again = StatusChange(JobStatus.RUNNING, began + 245_000)
    return replace(record, attempt=1, changes=(*changes, again), failures=(failure(began + 240_000),))


def broken() -> JobRecord:
    record = running(BROKEN, "nightly-report", ORDER_SHAPES[:3], 2, 30)
    ended = record.taken - 9 * 60_000
    return replace(
        record,
        status="FAILED",
        changes=(*record.changes, StatusChange(JobStatus.FAILED, ended)),
        failures=(failure(ended - 60_000), failure(ended, 1)),
        slots=record.slots,
    )


def done() -> JobRecord:
    record = running(DONE, "backfill-2026-10", ORDER_SHAPES[:2], 2, 90)
    return replace(
        record,
        status="FINISHED",
        batch=True,
        changes=(*record.changes, StatusChange(JobStatus.FINISHED, now() - 60_000)),
    )


def large_shapes(count: int) -> list[Shape]:
    """A tree that branches and joins."""
    shapes: list[Shape] = [("v0", ["Source: everything"], [], 0.3, 0.1, 9000)]
    for number in range(1, count):
        inputs = [(f"v{(number - 1) // 2}", "HASH")]
        if number % 7 == 0:
            inputs.append((f"v{number - 3}", "FORWARD"))
        shapes.append((f"v{number}", [f"step {number}"], inputs, (number % 10) / 14, 0.0, 9000 / number))
    return shapes


class LivelyJobs(ScriptedJobs):
    """Every look takes a new record."""

    @classmethod
    def usual(cls) -> LivelyJobs:
        jobs = cls()
        jobs.hold.set()
        jobs.known = dict.fromkeys((ORDERS, RESTARTED, BROKEN, DONE))  # type: ignore[assignment]
        jobs.options = {"rest.port": "8081", "state.backend.type": "rocksdb", "s3.secret-key": "hunter2"}
        jobs.answer = state_page
        return jobs

    def records(self) -> Sequence[JobRecord]:
        return [self.record(job_id) for job_id in self.known]

    def record(self, job_id: str) -> JobRecord:
        kept = super().record(job_id)
        if kept is not None:
            return kept
        made = {
            ORDERS: lambda: running(ORDERS, "orders", ORDER_SHAPES, 4),
            RESTARTED: restarted,
            BROKEN: broken,
            DONE: done,
            LARGE: lambda: running(LARGE, "five hundred vertices", large_shapes(500), 1),
            THOUSAND: lambda: running(THOUSAND, "a thousand subtasks", ORDER_SHAPES[:2], 1000),
        }
        return made[job_id]()

    def task_managers(self) -> Sequence[TaskManagerRecord]:
        figures = {"Status.CPU.Load": 0.42, "Status.Memory.Used": 3_200_000_000}
        return [
            TaskManagerRecord(
                f"worker-{number}", f"host-{number}", 8, 5, {ORDERS: 2, RESTARTED: 1}, 8, 32 << 30, 19 << 30, figures
            )
            for number in (1, 2)
        ]


def state_page(name: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Pages of fifty of 120 customers."""
    keys = request.get("keys")
    first = int(request.get("token") or 0)
    chosen = [f"customer-{number:03}" for number in range(first, min(120, first + 50))] if keys is None else keys
    entries = [
        {"key": key, "found": True, "value": {"orders": len(key) + 3, "total": 12.5 * len(key)}}
        if str(key).startswith("customer-")
        else {"key": key, "found": False}
        for key in chosen
    ]
    following = str(first + 50) if keys is None and first + 50 < 120 else None
    cut = {"attempt": 0, "epoch": 8113, "processing-time": now()}
    return {"state": name, "kind": "value", "cut": cut, "entries": entries, "next": following}
