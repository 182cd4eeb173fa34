"""The context that users' functions get: the operator, the subtask and the job's parameters."""

from __future__ import annotations

from penstock.engine.operators.operator import OperatorContext
from penstock.table.expression.function_declarations import FunctionContext


def function_context(context: OperatorContext) -> FunctionContext:
    """Return the context for `open` of functions in an operator."""
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
