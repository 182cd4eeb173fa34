"""What functions of users learn about where they run."""

from __future__ import annotations

from penstock.runtime.core.operator import OperatorContext
from penstock.table.udf import FunctionContext


def function_context(context: OperatorContext) -> FunctionContext:
    """The context for `open` of functions in an operator."""
    return FunctionContext(
        context.metrics,
        dict(context.job_parameters),
        context.name,
        f"{context.name} ({context.subtask + 1}/{context.parallelism})",
        context.parallelism,
        context.max_parallelism,
        context.subtask,
        context.attempt,
    )
