"""A widget that shows a job in a notebook, as a picture that is redrawn while the job runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from penstock.base.libraries import optional_library
from penstock.common.job import JobStatus
from penstock.engine.job.job_picture import bundle
from penstock.engine.job.job_record import JobRecord

DRAWN_EVERY = 1.0


class JobWidget:
    """A picture below the cell that created it. A thread redraws it until the job ends or `stop` is called.

    The kernel sends it anew as plain HTML: it needs no extension of Jupyter, and stays in the saved notebook.
    """

    def __init__(self, read: Callable[[], JobRecord], seconds: float = DRAWN_EVERY) -> None:
        self._read = read
        self._seconds = seconds
        self._stopped = threading.Event()
        show = optional_library("IPython.display", "a widget is shown by IPython", "notebook")
        self._shown: Any = show.display(bundle(read()), raw=True, display_id=True)
        self._thread = threading.Thread(target=self._draw, name="penstock widget", daemon=True)
        if self._shown is not None:
            self._thread.start()

    def _draw(self) -> None:
        while not self._stopped.wait(self._seconds):
            record = self._read()
            self._shown.update(bundle(record), raw=True)
            if JobStatus[record.status].is_terminal_state():
                return

    def stop(self) -> None:
        """Stop redrawing the picture."""
        self._stopped.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the picture shows the end of the job. Return True if it does."""
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _ipython_display_(self) -> None:
        """Do nothing: the widget has displayed itself already."""
