"""The iterator of execute_and_collect: it gives results to the calling process while the job runs."""

from __future__ import annotations

import pickle
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol

BUFFERED_PAYLOADS = 1_000


class _Job(Protocol):
    def cancel(self) -> None: ...

    def result(self, timeout: float | None = None) -> Any: ...


class CloseableIterator:
    """Iterator over a job's results. Closing it, or leaving its `with` block, cancels a job that still runs."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._payloads: deque[bytes] = deque()
        self._ended = False
        self._closed = False
        self._job: _Job | None = None
        self._current: Iterator[Any] = iter(())

    def attach(self, job: _Job) -> None:
        """Set the job whose results these are."""
        self._job = job

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
    def __iter__(self) -> CloseableIterator:
        return self

    def __next__(self) -> Any:
        for value in self._current:
            return value
        while (payload := self._next_payload()) is not None:
            self._current = iter(pickle.loads(payload))
            for value in self._current:
                return value
        raise StopIteration

    def next(self) -> Any:
        """Return the next result, as PyFlink's iterator does."""
        return self.__next__()

    def _next_payload(self) -> bytes | None:
        """Return the next payload, or None at the end of the job. Raise the job's error if it failed."""
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

    def take(self, limit: int) -> list[Any]:
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

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
