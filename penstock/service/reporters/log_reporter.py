"""The log: all metrics in one entry, and one line for each span."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from penstock.metrics.samples import Sample
from penstock.service.reporters.reporter import Reporter
from penstock.service.reporters.spans import Span

log = logging.getLogger("penstock.metrics")
KINDS = {"counter": "Counters", "gauge": "Gauges", "meter": "Meters", "histogram": "Histograms"}


class LogReporter(Reporter):
    """Reporter that writes to the logger `penstock.metrics` at level INFO."""

    def report(self, samples: Sequence[Sample]) -> None:
        lines = ["metrics of this moment"]
        for kind, title in KINDS.items():
            of_kind = [sample for sample in samples if sample.kind == kind]
            if of_kind:
                lines += [f"-- {title} {'-' * 60}", *map(self._line, of_kind)]
        log.info("%s", "\n".join(lines))

    def _line(self, sample: Sample) -> str:
        shown = ", ".join(f"{part}={value}" if part else str(value) for part, value in sample.values.items())
        return f"{self.context.full_name(sample)}: {shown}"

    def trace(self, spans: Sequence[Span]) -> None:
        for span in spans:
            known = ", ".join(f"{name}={value}" for name, value in span.attributes.items())
            log.info("%s took %d ms: %s", span.name, span.ended - span.began, known)
