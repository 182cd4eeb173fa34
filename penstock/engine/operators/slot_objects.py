"""Objects that several operators of a job share in one slot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from penstock.engine.operators.operator import OperatorContext

T = TypeVar("T")
_objects: dict[tuple[str, int, str, int], Any] = {}
"""The objects by job, attempt, name and subtask. A process may have several slots of a job."""


def slot_object(context: OperatorContext, name: str, make: Callable[[], T]) -> T:
    """Return the object of this name in the slot of an operator. The first operator that asks for it makes it."""
    key = context.job_id, context.attempt, name, context.subtask
    if key not in _objects:
        _objects[key] = make()
    made: T = _objects[key]
    return made


def forget_slot_object(context: OperatorContext, name: str) -> None:
    """Forget the object of this name in the slot of an operator, and those of earlier attempts."""
    for key in list(_objects):
        if key[0] == context.job_id and key[2:] == (name, context.subtask) and key[1] <= context.attempt:
            del _objects[key]
