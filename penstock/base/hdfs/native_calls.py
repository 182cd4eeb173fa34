"""Keeps the end of the interpreter and calls of a native client apart."""

from __future__ import annotations

import atexit
import os
import threading
import time

PATIENCE = 30.0
"""Seconds that the end of the interpreter waits for calls that run. The client itself tries for some 20 s."""


class NativeCalls:
    """Counts the calls of a native client that run, so that the interpreter does not end during one.

    Before version 3.14, Python ends a daemon thread that returns from native code while the interpreter ends. The
    client is written in Rust, where such an end aborts the whole process.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._is_over = False
        atexit.register(self.finish)
        os.register_at_fork(after_in_child=self._forget)

    def __enter__(self) -> None:
        with self._changed:
            # Threads that wait here for ever are daemons, and end with the interpreter.
            while self._is_over and threading.current_thread().daemon:
                self._changed.wait()
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def finish(self) -> None:
        """Hold all later calls of daemon threads, and wait until the calls that run have returned."""
        deadline = time.monotonic() + PATIENCE
        with self._changed:
            self._is_over = True
            while self._running and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)

    def _forget(self) -> None:
        """Begin anew in a forked process, which has none of the parent's other threads."""
        self._changed = threading.Condition()
        self._running = 0
        self._is_over = False
