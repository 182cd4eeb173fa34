"""Reporters: send the metrics of jobs, and spans for their checkpoints and restarts, to systems that keep them."""

from penstock.service.reporters.reporter import Reporter, ReporterContext, ReporterOptions
from penstock.service.reporters.spans import Span

__all__ = ["Reporter", "ReporterContext", "ReporterOptions", "Span"]
