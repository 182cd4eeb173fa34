"""Datadog: series of points as JSON over HTTPS."""

from __future__ import annotations

import json
import math
import time
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from penstock.errors import ConfigurationError
from penstock.metrics.samples import COUNTER, HISTOGRAM, METER, Sample
from penstock.service.reporters.reporter import Reporter, ReporterContext, ReporterOptions, number_of, plain

SITES = {
    "US": "https://app.datadoghq.com",
    "US3": "https://us3.datadoghq.com",
    "US5": "https://us5.datadoghq.com",
    "EU": "https://app.datadoghq.eu",
}
SECONDS = 10
_PARTS = {"min": "min", "max": "max", "mean": "avg", "p50": "median", "p95": "95percentile", "count": "count"}
"""Datadog's names for the parts of a histogram that are sent."""
Key = tuple[str, tuple[str, ...]]


class DatadogReporter(Reporter):
    """Reporter that sends the increase of counters since the last report, and all other values unchanged."""

    OPTIONS: ClassVar[tuple[str, ...]] = (
        "apikey",
        "tags",
        "proxyHost",
        "proxyPort",
        "dataCenter",
        "url",
        "maxMetricsPerRequest",
        "useLogicalIdentifier",
    )

    def check(self, options: ReporterOptions) -> None:
        options.needed("apikey")
        if options.text("dataCenter", "US").upper() not in SITES:
            raise ConfigurationError(f"option {options.full_name('dataCenter')} must be one of {', '.join(SITES)}")
        if options.number("maxMetricsPerRequest", 2000) < 1:
            raise ConfigurationError(f"option {options.full_name('maxMetricsPerRequest')} must be at least 1")
        options.truth("useLogicalIdentifier", False)

    def open(self, context: ReporterContext) -> None:
        self.context = context
        options = context.options
        self._key = options.needed("apikey")
        site = options.text("url") or SITES[options.text("dataCenter", "US").upper()]
        self._url = f"{site.rstrip('/')}/api/v1/series"
        self._tags = [tag.strip() for tag in options.text("tags").split(",") if tag.strip()]
        self._most = options.number("maxMetricsPerRequest", 2000)
        self._logical = options.truth("useLogicalIdentifier", False)
        proxy = options.text("proxyHost")
        through = f"http://{proxy}:{options.number('proxyPort', 8080)}"
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({"http": through, "https": through} if proxy else {})
        )
        self._sent: dict[Key, float | int] = {}

    def report(self, samples: Sequence[Sample]) -> None:
        series = [one for sample in samples for one in self._series(sample, int(time.time()))]
        for first in range(0, len(series), self._most):
            self._post(series[first : first + self._most])

    def _post(self, series: list[dict[str, Any]]) -> None:
        body = json.dumps({"series": series}, allow_nan=False).encode()
        headers = {"Content-Type": "application/json", "DD-API-KEY": self._key}
        with self._opener.open(urllib.request.Request(self._url, body, headers), timeout=SECONDS) as answer:
            answer.read()

    def _series(self, sample: Sample, now: int) -> Iterator[dict[str, Any]]:
        tags = [*self._tags, *(f"{plain(n)}:{value}" for n, value in sample.variables.items() if n != "<host>")]
        about = {"host": sample.variables.get("<host>", ""), "tags": tags}
        for part, value in self._values(sample):
            name = f"{self._name(sample)}.{part}" if part else self._name(sample)
            is_count = sample.kind == COUNTER
            shown = self._increase((name, tuple(tags)), value) if is_count else value
            kind = {"type": "count", "interval": 10} if is_count else {"type": "gauge"}
            yield {"metric": name, "points": [[now, shown]], **kind, **about}

    def _name(self, sample: Sample) -> str:
        return ".".join((*sample.logical_scope, sample.name)) if self._logical else self.context.full_name(sample)

    def _values(self, sample: Sample) -> Iterator[tuple[str, float | int]]:
        wanted = {"rate": ""} if sample.kind == METER else _PARTS if sample.kind == HISTOGRAM else {"": ""}
        for part, shown in wanted.items():
            value = number_of(sample.values.get(part))
            if value is not None and math.isfinite(value):
                yield shown, value

    def _increase(self, key: Key, value: float | int) -> float | int:
        """Return the increase of a counter since the last report. A counter that restarted counts from 0."""
        before = self._sent.get(key, 0)
        self._sent[key] = value
        return value - before if value >= before else value
