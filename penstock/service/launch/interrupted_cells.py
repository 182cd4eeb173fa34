"""Ends the queries that a notebook's cell was reading when it was interrupted.

In a program, Ctrl-C ends the process and its jobs. A kernel continues, and an interrupted iterator would keep its job
and slots running until the program closes it.
"""

from __future__ import annotations

import sys
import threading
from asyncio import CancelledError
from typing import Any, Protocol
from weakref import WeakSet


class Reader(Protocol):
    """Something that a cell reads from a job, such as an iterator over results."""

    def close(self) -> None:
        """Cancel the job if it still runs."""


_read: WeakSet[Any] = WeakSet()
"""Readers that the present cell has used so far."""
_shells: WeakSet[Any] = WeakSet()
"""The shells that tell when a cell has ended."""


def close_if_interrupted(reader: Reader) -> None:
    """Close a reader if the notebook's cell that is running now is interrupted. Do nothing outside of notebooks."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or threading.current_thread() is not threading.main_thread():
        return
    if shell not in _shells:
        shell.events.register("post_run_cell", _end_cell)
        _shells.add(shell)
    _read.add(reader)


def _end_cell(result: Any) -> None:
    """Close what an interrupted cell has read. IPython calls this with the result of each cell."""
    readers = list(_read)
    _read.clear()
    if result is None or isinstance(result.error_in_exec, (KeyboardInterrupt, CancelledError)):
        for reader in readers:
            reader.close()
