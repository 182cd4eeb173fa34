"""The capture of log lines of functions in the process of a slot. It sends them, within limits, to the driver."""

from __future__ import annotations

import logging
import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.base.logs.levels import apply, current
from penstock.base.logs.log_lines import Allowance, Line, Origin
from penstock.base.logs.log_options import LINES, LogSettings
from penstock.engine.messages.commands_and_reports import Deployment
from penstock.engine.observe.current_operator import origin_here

FEWEST_PER_SECOND = 10.0
CUT = " … (cut off)"


class LogCapture(logging.Handler):
    """A handler of the root logger.

    It drops and counts the lines above the limits, and reports their number later. Lines of level ERROR always pass,
    because users look for them.
    """

    def __init__(self, origin: Origin, settings: LogSettings, send: Callable[[Line], bool]) -> None:
        """Create the handler.

        `origin` names the slot. `send` must not block. It returns True if it accepted the line.
        """
        super().__init__()
        self._origin = origin
        self._length = settings.line_length
        self._send = send
        share = settings.lines_per_second / max(1, origin.parallelism)
        self._per_second = max(FEWEST_PER_SECOND, share) if settings.lines_per_second else 0.0
        self._allowance = Allowance(self._per_second, time.monotonic())
        self._left_out = 0
        self._busy = threading.local()
        self._process = os.getpid()

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record to the driver, unless this thread is already making a line.

        A process that the function has forked does not send.
        """
        if getattr(self._busy, "emits", False):
            return  # lines logged while a line is made would have no end
        if os.getpid() != self._process:
            # The function has forked this process, and the link belongs to the parent.
            if logging.lastResort is not None:
                logging.lastResort.handle(record)
            return
        self._busy.emits = True
        try:
            self._take(record)
        except Exception:
            self._left_out += 1  # a function must not fail because of its log lines
        finally:
            self._busy.emits = False

    def _take(self, record: logging.LogRecord) -> None:
        passes = self._allowance.takes(time.monotonic()) or record.levelno >= logging.ERROR
        if passes and self._left_out:
            self._tell_left_out()
        if not passes or not self._send(self._line(record)):
            self._left_out += 1

    def _line(self, record: logging.LogRecord) -> Line:
        error = "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else record.exc_text or ""
        return Line(
            record.created,
            record.levelno,
            record.name,
            self._short(record.getMessage()),
            origin_here() or self._origin,
            self._short(error.rstrip()),
            record.pathname,
            record.lineno,
            record.funcName or "",
            record.threadName or "",
            record.process or 0,
        )

    def _short(self, text: str) -> str:
        return text if len(text) <= self._length else text[: self._length] + CUT

    def _tell_left_out(self) -> None:
        text = f"{self._left_out} lines were left out: a slot may log {self._per_second:g} a second ({LINES})"
        said = Line(time.time(), logging.WARNING, "penstock.job", text, self._origin)
        if self._send(said):
            self._left_out = 0


def capture(index: int, deployment: Deployment, send: Callable[[Line], bool]) -> None:
    """Send everything that is logged in this process to `send`, from now on, at the levels of the job."""
    settings = deployment.logs
    if settings is None:
        return
    plan = deployment.plan
    origin = Origin(deployment.job_id, plan.job_name, "", "", index, plan.slots, deployment.attempt)
    logging.getLogger().handlers[:] = [LogCapture(origin, settings, send)]
    apply(settings.levels)


@contextmanager
def capture_logs(index: int, deployment: Deployment, send: Callable[[Line], bool]) -> Iterator[None]:
    """Capture logs for the time of a context, in a process that goes on to other work."""
    root, before = logging.getLogger(), current()
    handlers = root.handlers[:]
    capture(index, deployment, send)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        apply({**dict.fromkeys(current(), ""), **before})
