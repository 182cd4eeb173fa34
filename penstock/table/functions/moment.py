"""The time at which an expression is evaluated."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Moment:
    """What functions know of time: it is handed in, never read from a clock."""

    processing_time: int = 0
    """Milliseconds since 1970."""
    watermark: int | None = None
    """The current watermark in milliseconds; None before the first."""
    zone: str = "UTC"
    """The zone of the session."""
    catalog: str = "default_catalog"
    database: str = "default_database"
