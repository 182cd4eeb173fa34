"""The base class of reporters, for reporters of your own. See `docs/reporters.md`."""

from penstock.service.reporters.reporter import Reporter, ReporterContext, ReporterOptions
from penstock.service.reporters.spans import Span

__all__ = ["Reporter", "ReporterContext", "ReporterOptions", "Span"]
