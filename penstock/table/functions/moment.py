"""The time at which an expression is evaluated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Moment:
    """The time for functions. It is passed to them, so that they never read a clock."""

    processing_time: int = 0
    """Milliseconds since 1970."""
    watermark: int | None = None
    """The current watermark in milliseconds, or None before the first one."""
    zone: str = "UTC"
    """The zone of the session."""
    catalog: str = "default_catalog"
    database: str = "default_database"
