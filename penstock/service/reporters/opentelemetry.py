"""OpenTelemetry: metrics, and spans for checkpoints and restarts, over OTLP."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from penstock import __version__
from penstock.base.libraries import optional_library
from penstock.errors import ConfigurationError
from penstock.metrics.samples import COUNTER, Sample
from penstock.service.reporters.reporter import Reporter, ReporterContext, ReporterOptions, plain, readings
from penstock.service.reporters.spans import Span

PREFIX = "flink"
PROTOCOLS = {"http": "opentelemetry.exporter.otlp.proto.http", "grpc": "opentelemetry.exporter.otlp.proto.grpc"}
_EXTRAS = {"http": "otel", "grpc": "otel-grpc"}
_PATHS = {"metric": "/v1/metrics", "trace": "/v1/traces"}
_QUANTILES = {"p50": 0.5, "p75": 0.75, "p95": 0.95, "p98": 0.98, "p99": 0.99, "p999": 0.999}


class OpenTelemetryReporter(Reporter):
    """Reporter for both `metrics.reporter.*` and `traces.reporter.*`."""

    OPTIONS: ClassVar[tuple[str, ...]] = (
        "exporter.endpoint",
        "exporter.protocol",
        "exporter.timeout",
        "exporter.headers",
        "service.name",
        "service.version",
    )

    def check(self, options: ReporterOptions) -> None:
        options.needed("exporter.endpoint")
        options.millis("exporter.timeout", 10_000)
        options.pairs("exporter.headers", ",", "=")
        _exporter_class(options, "metric")

    def open(self, context: ReporterContext) -> None:
        self.context = context
        options = context.options
        resources = _sdk("resources")
        self._resource = resources.Resource.create(
            {
                "service.name": options.text("service.name", "penstock"),
                "service.version": options.text("service.version", __version__),
            }
        )
        self._began = time.time_ns()
        self._metrics: Any = None
        self._tracers: Any = None

    # --- metrics ---
    def report(self, samples: Sequence[Sample]) -> None:
        export = _sdk("metrics.export")
        self._metrics = self._metrics or _exporter(self.context.options, "metric")
        scope = _sdk("util.instrumentation").InstrumentationScope("penstock", __version__)
        in_scope = export.ScopeMetrics(scope, list(self._all(samples, export)), "")
        done = self._metrics.export(export.MetricsData([export.ResourceMetrics(self._resource, [in_scope], "")]))
        if done is not export.MetricExportResult.SUCCESS:
            raise ConnectionError(f"{self.context.options.text('exporter.endpoint')} did not accept the metrics")

    def _all(self, samples: Sequence[Sample], export: Any) -> Iterator[Any]:
        """Yield one metric for each name and kind, with all its points.

        The quantiles of a histogram share a name and differ in an attribute. Its other parts have names of their own.
        """
        points: dict[tuple[str, bool], list[Any]] = {}
        descriptions: dict[str, str] = {}
        now = time.time_ns()
        for sample in samples:
            attributes = {plain(name): value for name, value in sample.variables.items()}
            for part, value in readings(sample).items():
                name, extra = _name_and_attributes(sample, part)
                point = export.NumberDataPoint({**attributes, **extra}, self._began, now, value)
                counts = sample.kind == COUNTER or part == "count"
                points.setdefault((name, counts), []).append(point)
                descriptions[name] = sample.help
        for (name, counts), found in points.items():
            # A counter may go down, and restarts with every attempt, so its sum is not monotonic.
            data = export.Sum(found, export.AggregationTemporality.CUMULATIVE, False) if counts else export.Gauge(found)
            yield export.Metric(name, descriptions[name], "", data)

    # --- spans ---
    def trace(self, spans: Sequence[Span]) -> None:
        provider = self._provider()
        for span in spans:
            tracer = provider.get_tracer(span.scope, __version__)
            made = tracer.start_span(span.name, start_time=span.began * 1_000_000, attributes=dict(span.attributes))
            made.end(span.ended * 1_000_000)

    def _provider(self) -> Any:
        if self._tracers is None:
            trace = _sdk("trace")
            self._tracers = trace.TracerProvider(resource=self._resource)
            exporter = _exporter(self.context.options, "trace")
            self._tracers.add_span_processor(_sdk("trace.export").BatchSpanProcessor(exporter))
        return self._tracers

    def close(self) -> None:
        for one in (self._metrics, self._tracers):
            if one is not None:
                one.shutdown()


def _sdk(module: str) -> Any:
    return optional_library(f"opentelemetry.sdk.{module}", "reporting to OpenTelemetry needs its SDK", "otel")


def _name_and_attributes(sample: Sample, part: str) -> tuple[str, dict[str, float]]:
    name = ".".join((PREFIX, *sample.logical_scope, sample.name))
    if part in _QUANTILES:
        return name, {"quantile": _QUANTILES[part]}
    return (name if part in ("", "rate") else f"{name}.{part}"), {}


def _protocol(options: ReporterOptions) -> str:
    """Return the protocol, by default HTTP. Flink's default is gRPC, whose library is larger and a separate extra."""
    chosen = options.text("exporter.protocol", "HTTP").lower()
    if chosen not in PROTOCOLS:
        raise ConfigurationError(f"option {options.full_name('exporter.protocol')} must be HTTP or gRPC")
    return chosen


def _exporter_class(options: ReporterOptions, what: str) -> Any:
    chosen = _protocol(options)
    need = f"reporting to OpenTelemetry over {options.text('exporter.protocol', 'HTTP')} needs its exporter"
    module = optional_library(f"{PROTOCOLS[chosen]}.{what}_exporter", need, _EXTRAS[chosen])
    return module.OTLPMetricExporter if what == "metric" else module.OTLPSpanExporter


def _exporter(options: ReporterOptions, what: str) -> Any:
    endpoint = options.needed("exporter.endpoint").rstrip("/")
    if _protocol(options) == "http" and not endpoint.endswith(_PATHS[what]):
        endpoint += _PATHS[what]
    return _exporter_class(options, what)(
        endpoint=endpoint,
        timeout=options.millis("exporter.timeout", 10_000) / 1000,
        headers=options.pairs("exporter.headers", ",", "=") or None,
    )
