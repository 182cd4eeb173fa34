"""The iterator of execute_and_collect: it gives results to the calling process while the job runs."""

from __future__ import annotations

import pickle
import threading
from collections import deque
from collections.abc import Iterator
from typing import Generic, Protocol, Self

from penstock.base.type_variables import T_co
from penstock.common.job import RunningJob
from penstock.service.launch.interrupted_cells import close_if_interrupted

BUFFERED_PAYLOADS = 1_000


class ResultHandler(Protocol):
    """Takes what a sink sends to the process of the program."""

    def put(self, payload: bytes) -> None:
        """Take a payload."""

    def end(self) -> None:
        """Note that no payload follows."""


class CloseableIterator(Generic[T_co]):
    """Iterator over a job's results. Closing it, or leaving its `with` block, cancels a job that still runs."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._payloads: deque[bytes] = deque()
        self._ended = False
        self._closed = False
        self._job: RunningJob | None = None
        self._current: Iterator[T_co] = iter(())

    def attach(self, job: RunningJob) -> None:
        """Set the job whose results these are."""
        self._job = job
        close_if_interrupted(self)

    # --- the job's side ---
    def put(self, payload: bytes) -> None:
        """Take a pickled list of values. Wait while the reader is far behind, which slows the job down."""
        with self._changed:
            while len(self._payloads) >= BUFFERED_PAYLOADS and not self._closed:
                self._changed.wait(0.5)
            if not self._closed:
                self._payloads.append(payload)
                self._changed.notify_all()

    def end(self) -> None:
        """Note that the job is over and that no payload follows."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    # --- the reader's side ---
    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T_co:
        for value in self._current:
            return value
        while (payload := self._next_payload()) is not None:
            self._current = iter(pickle.loads(payload))
            for value in self._current:
                return value
        raise StopIteration

    def next(self) -> T_co:
        """Return the next result, as PyFlink's iterator does."""
        return self.__next__()

    def _next_payload(self) -> bytes | None:
        """Return the next payload, or None at the end of the job. Raise the job's error if it failed."""
        close_if_interrupted(self)
        with self._changed:
            while not self._payloads:
                if self._ended or self._closed:
                    break
                self._changed.wait(0.5)
            if self._payloads:
                payload = self._payloads.popleft()
                self._changed.notify_all()
                return payload
        if not self._closed and self._job is not None:
            self._job.result()
        return None

    def take(self, limit: int) -> list[T_co]:
        """Return the first `limit` results as a list, and stop the job."""
        if limit <= 0:
            raise ValueError(f"a limit is at least 1, not {limit}")
        with self:
            return [value for _, value in zip(range(limit), self, strict=False)]

    def close(self) -> None:
        """Stop iterating, and cancel the job if it still runs."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._job is not None:
            self._job.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
