"""A failure inside an operator, in the form for users: the operator, the record and the user's own traceback."""

from __future__ import annotations

import os
import traceback
from dataclasses import dataclass
from typing import Any

from penstock import errors
from penstock.engine.state.key_groups import short_repr

_PACKAGE = os.path.dirname(os.path.abspath(errors.__file__)) + os.sep


@dataclass(frozen=True)
class Failure:
    """The data of a failed operator, which travels to the driver."""

    operator: str
    uid: str
    subtask: int
    record: str
    error_type: str
    message: str
    traceback: str
    stage: int = 0
    known_as: str = ""
    """The name of the class in penstock.errors to which the error belongs, or ""."""

    def describe(self) -> str:
        """Return the message of the exception for the user."""
        lines = [f"{self.operator} (uid {self.uid}, subtask {self.subtask}) failed: {self.error_type}: {self.message}"]
        if self.record:
            lines.append(f"  on record {self.record}")
        if self.traceback:
            lines.append(self.traceback.rstrip())
        return "\n".join(lines)


USER_ERRORS = (Exception, SystemExit)
"""The errors that a user function may raise. A function that calls exit() fails its job, not the process."""


class OperatorFailed(Exception):
    """Carries a Failure from the operator to the task."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.describe())
        self.failure = failure


_NO_RECORD = object()


def failure_of(error: BaseException, operator: str, uid: str, subtask: int, record: Any = _NO_RECORD) -> Failure:
    """Describe an exception without the frames of Penstock's own machinery."""
    kept = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_PACKAGE)]
    shown = "Traceback (most recent call last):\n" + "".join(traceback.format_list(kept)) if kept else ""
    if shown:
        shown += "".join(traceback.format_exception_only(error))
    return Failure(
        operator=operator,
        uid=uid,
        subtask=subtask,
        record="" if record is _NO_RECORD else short_repr(record),
        error_type=type(error).__name__,
        message=str(error),
        traceback=shown,
        known_as=next((kind.__name__ for kind in type(error).__mro__ if kind.__module__ == errors.__name__), ""),
    )
