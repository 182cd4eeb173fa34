"""What runs in a slot's Python worker process. Spark calls `serve` once per stage; the slot lives in this module.

What is to be done is a tag byte and a body: a deployment or blobs of an exchange, which come as data, or an epoch's
command, which comes as a property of the Spark job. Elements that are empty only hold the slot in its place.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import struct
import sys
import threading
from base64 import b85decode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pyspark import TaskContext

from penstock import compat
from penstock.runtime.failures import Failure, OperatorFailed, failure_of
from penstock.runtime.protocol import Command, Deployment, Report
from penstock.runtime.task import Slot
from penstock.spark import cached_files

SLOT_VARIABLE = "PENSTOCK_SLOT"
STAGES_VARIABLE = "PENSTOCK_STAGES"
SLOTS_VARIABLE = "PENSTOCK_SLOTS"
ORDER_PROPERTY = "penstock.order"
_GC_THRESHOLDS = (50_000, 20, 50)
"""State is many small objects that live long: Python's defaults would walk over them again and again."""
DEPLOY, COMMAND, BLOB, RELEASE = b"D", b"C", b"B", b"R"
_ENVELOPE = struct.Struct("!qqq")
"""Job's attempt, epoch and stage of a blob."""


class _Process:
    """The slot of this process, and why it is lost if it is."""

    slot: Slot | None = None


def serve(_partition: int, elements: Iterator[bytes]) -> Iterator[bytes]:
    """One stage of one epoch. Drains its input first: Spark does not reuse a worker that left some unread."""
    received = [element for element in elements if element] or [_order()]
    yield from _HANDLERS[received[0][:1]](received)


def _order() -> bytes:
    return b85decode(TaskContext.get().getLocalProperty(ORDER_PROPERTY))


def slot_index() -> int:
    return int(os.environ[SLOT_VARIABLE].rsplit("/", 1)[1])


def _deploy(received: list[bytes]) -> Iterator[bytes]:
    failure = None
    _spare_full_collections()
    try:
        deployment: Deployment = pickle.loads(received[0][1:])
        if deployment.attempt:
            _end_former_slots(deployment.job_id)
        sys.path.extend(folder for folder in deployment.search_path if folder not in sys.path)
        if deployment.pyflink:
            compat.install()
        deployment.cached_files = cached_files.local(deployment.cached_files)
        if deployment.working_directory is not None:
            os.chdir(deployment.working_directory)
        if _Process.slot is not None:
            _Process.slot.close()
        _Process.slot = Slot(slot_index(), deployment)
        _Process.slot.open()
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_GC_THRESHOLDS)
    except OperatorFailed as failed:
        failure = failed.failure
    except Exception as error:
        failure = failure_of(error, "the engine", "-", slot_index())
    yield _report(failure)


def _end_former_slots(job_id: str) -> None:
    """End what is left on this machine of the job's slots before a failure: they hold memory, and may be busy still."""
    generation = os.environ[SLOT_VARIABLE].rsplit("/", 1)[0]
    of_job, of_now = (f"{SLOT_VARIABLE}={prefix}/".encode() for prefix in (job_id, generation))
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            environment = (process / "environ").read_bytes()
            if of_job in environment and of_now not in environment:
                os.kill(int(process.name), signal.SIGKILL)


def _spare_full_collections() -> None:
    """Keep pyspark's daemon from a full garbage collection after every task: it would cost in proportion to the state.

    Python's own generational collection goes on, and user code that calls gc.collect() still gets it.
    """
    collect = gc.collect

    def collect_unless_daemon(generation: int = 2) -> int:
        caller = sys._getframe(1).f_code.co_filename
        return 0 if caller.endswith(os.path.join("pyspark", "daemon.py")) else collect(generation)

    if not hasattr(gc, "penstock"):
        gc.penstock = True  # type: ignore[attr-defined]
        gc.collect = collect_unless_daemon


def _command(received: list[bytes]) -> Iterator[bytes]:
    command: Command = pickle.loads(received[0][1:])
    slot = _Process.slot
    if slot is None or slot.deployment.attempt != command.attempt:
        yield from _lost(command.attempt, command.epoch, 0)
        return
    slot.begin(command)
    yield from _run(slot, 0, [])


def _blobs(received: list[bytes]) -> Iterator[bytes]:
    attempt, epoch, stage = _ENVELOPE.unpack_from(received[0], 1)
    slot = _Process.slot
    if slot is None or slot.command is None or (slot.deployment.attempt, slot.epoch) != (attempt, epoch):
        yield from _lost(attempt, epoch, stage)
        return
    yield from _run(slot, stage, [body for blob in received if (body := blob[1 + _ENVELOPE.size :])])


def _run(slot: Slot, stage: int, blobs: list[bytes]) -> Iterator[bytes]:
    outgoing = slot.run_stage(stage, blobs)
    if stage == slot.plan.stages - 1:
        yield pickle.dumps(slot.report())
        return
    header = BLOB + _ENVELOPE.pack(slot.deployment.attempt, slot.epoch, stage + 1)
    for target, blob in enumerate(outgoing):
        yield _address(target)
        yield header + blob


def _lost(attempt: int, epoch: int, stage: int) -> Iterator[bytes]:
    """This process is not the one that holds the slot's state: say so at the last stage; the job goes on till then.

    How many stages and slots there are is in the environment, since nothing else is here.
    """
    stages = int(os.environ[STAGES_VARIABLE])
    why = "its process was replaced, and its live state is gone with the old one"
    if stage == stages - 1:
        yield pickle.dumps(Report(slot_index(), epoch, os.getpid(), lost=why))
        return
    _Process.slot = None
    for target in range(int(os.environ[SLOTS_VARIABLE])):
        yield _address(target)
        yield BLOB + _ENVELOPE.pack(attempt, epoch, stage + 1)


def _release(received: list[bytes]) -> Iterator[bytes]:
    """Close the functions and, once Spark has its answer, end this process: nobody will need it again."""
    slot, _Process.slot = _Process.slot, None
    failures = slot.release() if slot is not None else []
    yield _report(failures[0] if failures else None)
    timer = threading.Timer(1.0, os._exit, (0,))
    timer.daemon = True
    timer.start()


def _report(failure: Failure | None) -> bytes:
    return pickle.dumps(Report(slot_index(), -1, os.getpid(), failure=failure))


def _address(target: int) -> bytes:
    """The key of an exchanged pair, as Spark's PairwiseRDD reads it."""
    return struct.pack("!q", target)


_HANDLERS = {DEPLOY: _deploy, COMMAND: _command, BLOB: _blobs, RELEASE: _release}
