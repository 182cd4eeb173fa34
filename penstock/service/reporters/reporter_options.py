"""The options that name the reporters. Options of one reporter begin with `metrics.reporter.<name>.`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReportersOption:
    """A row of the table of options."""

    name: str
    default: str | None = None
    others: tuple[str, ...] = ()


OPTIONS = [ReportersOption("metrics.reporters"), ReportersOption("traces.reporters")]
