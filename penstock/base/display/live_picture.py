"""A picture below a notebook's cell that is redrawn while something goes on."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from penstock.base.libraries import optional_library

DRAWN_EVERY = 1.0
"""Default time between two pictures, in seconds."""
_FIRST = 0.2
"""Greatest time until the second picture, in seconds: much happens at the beginning."""


def in_kernel() -> bool:
    """Return True if this process is a notebook's kernel, whose pictures can be replaced."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def show(bundle: Mapping[str, str]) -> None:
    """Display one object in the notebook. `bundle` gives its forms by MIME type."""
    optional_library("IPython.display", "pictures are shown by IPython", "notebook").display(bundle, raw=True)


class LivePicture:
    """A picture below the cell that created it. A thread redraws it until it is over or `stop` is called.

    The kernel sends it anew as plain HTML: it needs no extension of Jupyter, and stays in the saved notebook. In a
    terminal it is shown once.
    """

    def __init__(
        self, draw: Callable[[], Mapping[str, str]], is_over: Callable[[], bool], seconds: float = DRAWN_EVERY
    ) -> None:
        """Take functions that return the picture by MIME type, and whether it is the last one."""
        self._draw = draw
        self._is_over = is_over
        self._seconds = seconds
        self._stopped = threading.Event()
        display = optional_library("IPython.display", "a widget is shown by IPython", "notebook")
        self._shown: Any = display.display(draw(), raw=True, display_id=True)
        self._thread = threading.Thread(target=self._redraw, name="penstock widget", daemon=True)
        if self._shown is not None and in_kernel():
            self._thread.start()

    def _redraw(self) -> None:
        pause = min(self._seconds, _FIRST)
        while not self._stopped.wait(pause):
            is_last = self._is_over()
            self._shown.update(self._draw(), raw=True)
            if is_last:
                return
            pause = self._seconds

    def stop(self) -> None:
        """Stop redrawing the picture."""
        self._stopped.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the picture shows the end. Return True if it does."""
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _ipython_display_(self) -> None:
        """Do nothing: the picture has displayed itself already."""
