"""JMX: a bean for every metric in the JVM of the driver's Spark session, where jconsole and agents find them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from penstock.metrics.samples import COUNTER, Sample
from penstock.service.reporters.reporter import Reporter, ReporterContext, ReporterOptions, plain

DOMAIN = "org.apache.flink"
"""Flink's domain, so that tools set up for Flink find the same beans."""
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
"""Names of attributes in Flink's beans, by the part of a metric."""


class JmxReporter(Reporter):
    """Reporter that updates beans in every interval. With `port`, other machines can read them, too."""

    OPTIONS: ClassVar[tuple[str, ...]] = ("port",)

    def check(self, options: ReporterOptions) -> None:
        options.ports("port")

    def open(self, context: ReporterContext) -> None:
        from penstock.spark.sessions.mbeans import MBeans

        self.context = context
        self._beans = MBeans(context.options.ports("port"))

    @property
    def port(self) -> int | None:
        """Port to which other processes can connect, or None without the option."""
        return self._beans.port

    def report(self, samples: Sequence[Sample]) -> None:
        self._beans.show({bean_name(sample): _attributes(sample) for sample in samples})

    def close(self) -> None:
        self._beans.close()


def bean_name(sample: Sample) -> str:
    """Return the name of a metric's bean, such as `org.apache.flink.jobmanager.job.uptime:host=a,job_name=orders`."""
    domain = ".".join((DOMAIN, *sample.logical_scope, sample.name)).replace(":", "_")
    pairs = [f"{_clean(plain(name))}={_clean(value)}" for name, value in sample.variables.items()]
    return f"{domain}:{','.join(sorted(pairs)) or 'scope=job'}"


def _clean(text: str) -> str:
    """Replace the characters that would end a name or a value, or make it a pattern."""
    return "".join("-" if character in ' ;:,=*?"\n' else character for character in text) or "-"


def _attributes(sample: Sample) -> dict[str, Any]:
    if sample.kind == COUNTER:
        return {"Count": sample.value}
    return {_ATTRIBUTES.get(part, part): value for part, value in sample.values.items()}
