"""The search for the operator that is currently running.

It inspects the stack only when asked, so it costs nothing for each record.
"""

from __future__ import annotations

import sys
from types import FrameType

from penstock.base.logs.log_lines import Origin
from penstock.engine.operators.operator import Operator


def operator_of(frame: FrameType) -> Operator | None:
    """Return the operator whose method this frame runs, if it has been opened."""
    code = frame.f_code
    # Look only at methods, and only at their first argument: `f_locals` is expensive.
    if not code.co_argcount or code.co_varnames[0] != "self":
        return None
    found = frame.f_locals.get("self")
    return found if isinstance(found, Operator) and hasattr(found, "context") else None


def innermost(frame: FrameType | None) -> Operator | None:
    """Return the operator at work in this frame: a later one of a chain rather than the one that called it."""
    while frame is not None:
        operator = operator_of(frame)
        if operator is not None:
            return operator
        frame = frame.f_back
    return None


def origin_here() -> Origin | None:
    """Return the place of the calling thread in a job, or None if it is not inside an operator."""
    operator = innermost(sys._getframe(1))
    return None if operator is None else origin_of(operator)


def origin_of(operator: Operator) -> Origin:
    """Return the place of an operator in its job."""
    context = operator.context
    return Origin(
        context.job_id,
        context.job_name,
        context.name,
        context.uid,
        context.subtask,
        context.parallelism,
        context.attempt,
    )
