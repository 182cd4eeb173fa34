"""The values that stand for themselves among the arguments of expressions."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any, TypeAlias

__all__ = ["Constant"]

Moment: TypeAlias = datetime.date | datetime.time | datetime.timedelta
"""A datetime is a date, too."""

Constant: TypeAlias = (
    bool
    | int
    | float
    | Decimal
    | str
    | bytes
    | bytearray
    | Moment
    | list[Any]
    | tuple[Any, ...]
    | dict[Any, Any]
    | None
)
"""Values whose type of SQL need not be given."""
