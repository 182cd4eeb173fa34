"""Handles SIGTERM in a program with jobs: suspends the jobs and ends the process, so that a successor can continue.

Without a handler, the first process of a container ignores SIGTERM, and any other process ends without giving its jobs
back. A suspended job keeps its checkpoints, and its successor need not find out whether its driver still runs.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from weakref import WeakSet

from penstock.engine.checkpoint.ownership import NoOwnership
from penstock.engine.job.job_handle import JobHandle
from penstock.errors import StorageError

SUSPEND_SECONDS = 1.5
"""Time, in seconds, in which jobs must stop. Slots that have not stopped when the driver ends, end by themselves."""
EPOCH_SECONDS = 0.5
"""Time, in seconds, in which the running epoch of a job may end by itself."""
EXIT_CODE = 128 + signal.SIGTERM
"""Exit code after SIGTERM. It is not 0, because the jobs have not ended and another process should continue them."""
log = logging.getLogger("penstock.job")
_jobs: WeakSet[JobHandle] = WeakSet()
_starting: list[NoOwnership] = []
_leaving = threading.Event()


def suspend_on_sigterm() -> None:
    """Let SIGTERM suspend the jobs of this process and end it, unless the program has a handler of its own."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return
    owner = os.getpid()

    def leave_soon(number: int, _: object) -> None:
        if os.getpid() != owner:
            # A forked process inherits the handler, but not the threads that run the jobs.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif not _leaving.is_set():
            _leaving.set()
            threading.Thread(target=_leave, name="penstock termination", daemon=True).start()

    signal.signal(signal.SIGTERM, leave_soon)


def suspend_with_process(job: JobHandle) -> None:
    """Suspend this job when the process gets SIGTERM. The program never sees the end of the job then."""
    _jobs.add(job)
    job.before_result = _hold


@contextmanager
def give_back_on_sigterm(owner: NoOwnership) -> Iterator[None]:
    """Give a job that is about to start back if the process gets SIGTERM within this block."""
    _starting.append(owner)
    try:
        yield
    finally:
        _starting.remove(owner)


def _hold() -> None:
    """Keep the program from going on as if its job were over while the process ends."""
    while _leaving.is_set():
        time.sleep(1)


def _leave() -> None:
    for owner in list(_starting):
        with suppress(StorageError):
            owner.end(finished=False)
    jobs = [job for job in _jobs if not job.status().is_terminal_state()]
    stopping = [threading.Thread(target=job.suspend, args=(EPOCH_SECONDS,), daemon=True) for job in jobs]
    for thread in stopping:
        thread.start()
    until = time.monotonic() + SUSPEND_SECONDS
    for job in jobs:
        stopped = job.wait(max(0.0, until - time.monotonic()))
        log.info("SIGTERM: job %s is %s", job.job_id, "suspended" if stopped else "left: it does not stop in time")
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(EXIT_CODE)
