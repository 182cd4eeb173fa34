"""JMX: a bean for every metric in the JVM of the driver's Spark session, where jconsole and agents find them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from penstock.metrics.samples import COUNTER, Sample
from penstock.service.reporters.reporter import Reporter, ReporterContext, ReporterOptions, plain

DOMAIN = "org.apache.flink"
"""Flink's, so that what was set up for Flink finds the same beans."""
_ATTRIBUTES = {
    "": "Value",
    "count": "Count",
    "rate": "Rate",
    "min": "Min",
    "max": "Max",
    "mean": "Mean",
    "stddev": "StdDev",
    "p50": "Median",
    "p75": "75thPercentile",
    "p95": "95thPercentile",
    "p98": "98thPercentile",
    "p99": "99thPercentile",
    "p999": "999thPercentile",
}
"""By the part of a metric: what Flink's beans call it."""


class JmxReporter(Reporter):
    """Keeps the beans as they were at the last turn. With `port`, other machines can look at them, too."""

    OPTIONS: ClassVar[tuple[str, ...]] = ("port",)

    def check(self, options: ReporterOptions) -> None:
        options.ports("port")

    def open(self, context: ReporterContext) -> None:
        from penstock.spark.sessions.mbeans import MBeans

        self.context = context
        self._beans = MBeans(context.options.ports("port"))

    @property
    def port(self) -> int | None:
        """Where other processes can connect; None without the option."""
        return self._beans.port

    def report(self, samples: Sequence[Sample]) -> None:
        self._beans.show({bean_name(sample): _attributes(sample) for sample in samples})

    def close(self) -> None:
        self._beans.close()


def bean_name(sample: Sample) -> str:
    """Such as `org.apache.flink.jobmanager.job.uptime:host=a,job_name=orders`."""
    domain = ".".join((DOMAIN, *sample.logical_scope, sample.name)).replace(":", "_")
    pairs = [f"{_clean(plain(name))}={_clean(value)}" for name, value in sample.variables.items()]
    return f"{domain}:{','.join(sorted(pairs)) or 'scope=job'}"


def _clean(text: str) -> str:
    """Without what ends a name or a value, and without what would make it a pattern."""
    return "".join("-" if character in ' ;:,=*?"\n' else character for character in text) or "-"


def _attributes(sample: Sample) -> dict[str, Any]:
    if sample.kind == COUNTER:
        return {"Count": sample.value}
    return {_ATTRIBUTES.get(part, part): value for part, value in sample.values.items()}
