"""Prometheus: a page that it scrapes, and its PushGateway for jobs that may end before they are scraped."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from secrets import token_hex
from typing import Any, ClassVar

from penstock.base.libraries import optional_library
from penstock.errors import ConfigurationError
from penstock.metrics.samples import HISTOGRAM, METER, Sample
from penstock.service.reporters.reporter import Reporter, ReporterContext, ReporterOptions, number_of, plain

log = logging.getLogger("penstock.reporters")
PREFIX = "flink"
"""Prefix of all names. Names are those of Flink's metrics, so that dashboards made for Flink also work here."""
PORT = "9249"
_UNCHANGED = re.compile(r"[^a-zA-Z0-9:_]")
_QUANTILES = {"p50": "0.5", "p75": "0.75", "p95": "0.95", "p98": "0.98", "p99": "0.99", "p999": "0.999"}


def _library() -> Any:
    return optional_library("prometheus_client", "metrics for Prometheus need prometheus-client", "prometheus")


def metric_name(sample: Sample) -> str:
    """Return a metric's name in Prometheus, such as `flink_taskmanager_job_task_numRecordsIn`."""
    return _UNCHANGED.sub("_", "_".join((PREFIX, *sample.logical_scope, sample.name)))


class Collector:
    """Provider of samples in the form that Prometheus's library requires."""

    def __init__(self, read: Callable[[], Sequence[Sample]], filters_values: bool) -> None:
        self._read = read
        self._filters_values = filters_values
        self._family = _library().Metric

    def collect(self) -> Iterator[Any]:
        """Yield all metrics, grouped by name. The first sample of a name determines the type."""
        families: dict[str, Any] = {}
        for sample in self._read():
            name = metric_name(sample)
            if name not in families:
                kind = "summary" if sample.kind == HISTOGRAM else "gauge"
                families[name] = self._family(name, sample.help or ".".join(sample.logical_scope), kind)
            self._add(families[name], sample)
        yield from (family for family in families.values() if family.samples)

    def _add(self, family: Any, sample: Sample) -> None:
        labels = self._labels(sample)
        if sample.kind == HISTOGRAM:
            for part, quantile in _QUANTILES.items():
                if part in sample.values:
                    family.add_sample(family.name, {**labels, "quantile": quantile}, sample.values[part])
            family.add_sample(f"{family.name}_count", labels, sample.values.get("count", 0))
            return
        value = number_of(sample.values["rate"] if sample.kind == METER else sample.value)
        if value is not None:
            family.add_sample(family.name, labels, value)

    def _labels(self, sample: Sample) -> dict[str, str]:
        return {_UNCHANGED.sub("_", plain(name)): self._value(value) for name, value in sample.variables.items()}

    def _value(self, value: str) -> str:
        return _UNCHANGED.sub("_", value) if self._filters_values else value


def _registry(context: ReporterContext) -> Any:
    registry = _library().CollectorRegistry(auto_describe=False)
    registry.register(Collector(context.samples, context.options.truth("filterLabelValueCharacters", True)))
    return registry


class PrometheusReporter(Reporter):
    """Reporter that serves `/metrics`. A scrape shows the job at that moment, whatever the interval is."""

    OPTIONS: ClassVar[tuple[str, ...]] = ("port", "host", "filterLabelValueCharacters")

    def check(self, options: ReporterOptions) -> None:
        _library()
        if not options.ports("port", PORT):
            raise ConfigurationError(f"option {options.full_name('port')} must name a port")
        options.truth("filterLabelValueCharacters", True)

    def open(self, context: ReporterContext) -> None:
        self.context = context
        registry, host = _registry(context), context.options.text("host", "0.0.0.0")
        ports = context.options.ports("port", PORT)
        for port in ports:
            try:
                self._server, self._thread = _library().start_http_server(port, host, registry)
            except OSError as error:
                if port == ports[-1]:
                    where = f"port {port}" if len(ports) == 1 else f"any of the ports {ports[0]} to {port}"
                    raise OSError(f"{where} of {host} cannot be used: {error}") from None
                continue
            log.info("Prometheus can scrape port %d", self.port)
            return

    @property
    def port(self) -> int:
        """Port of the range that is in use."""
        return int(self._server.server_port)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class PushGatewayReporter(Reporter):
    """Reporter that pushes all metrics in every interval, and deletes them at the end."""

    OPTIONS: ClassVar[tuple[str, ...]] = (
        "hostUrl",
        "host",
        "port",
        "jobName",
        "randomJobNameSuffix",
        "deleteOnShutdown",
        "groupingKey",
        "filterLabelValueCharacters",
    )

    def check(self, options: ReporterOptions) -> None:
        _library()
        _gateway_of(options)
        for option in ("randomJobNameSuffix", "deleteOnShutdown", "filterLabelValueCharacters"):
            options.truth(option, True)
        options.pairs("groupingKey", ";", "=")

    def open(self, context: ReporterContext) -> None:
        self.context = context
        options = context.options
        self._registry = _registry(context)
        self._url = _gateway_of(options)
        suffix = token_hex(16) if options.truth("randomJobNameSuffix", True) else ""
        self.job = options.text("jobName") + suffix or "penstock"
        self._grouping = options.pairs("groupingKey", ";", "=")
        self._deletes = options.truth("deleteOnShutdown", True)

    def report(self, samples: Sequence[Sample]) -> None:
        _library().push_to_gateway(self._url, self.job, self._registry, self._grouping, timeout=10)

    def close(self) -> None:
        if self._deletes:
            _library().delete_from_gateway(self._url, self.job, self._grouping, timeout=10)


def _gateway_of(options: ReporterOptions) -> str:
    """Return the gateway's URL from `hostUrl`, or from `host` and `port` of earlier versions of Flink."""
    host = options.text("host")
    return f"http://{host}:{options.number('port', 9091)}" if host else options.needed("hostUrl")
