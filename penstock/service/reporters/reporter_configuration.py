"""The reporters of a configuration, under Flink's option names: `metrics.reporter.<name>.<option>`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points

from penstock.errors import ConfigurationError
from penstock.service.reporters.filters import Sieve, sieve_of
from penstock.service.reporters.reporter import Reporter, ReporterOptions

log = logging.getLogger("penstock.reporters")

METRICS, TRACES = "metrics", "traces"
ENTRY_POINTS = "penstock.reporters"
"""Group of entry points under which packages offer reporters."""
DEFAULT_MILLIS = 10_000

BUILT_IN = {
    "prometheus": "penstock.service.reporters.prometheus:PrometheusReporter",
    "pushgateway": "penstock.service.reporters.prometheus:PushGatewayReporter",
    "otel": "penstock.service.reporters.opentelemetry:OpenTelemetryReporter",
    "statsd": "penstock.service.reporters.statsd:StatsDReporter",
    "graphite": "penstock.service.reporters.graphite:GraphiteReporter",
    "datadog": "penstock.service.reporters.datadog:DatadogReporter",
    "log": "penstock.service.reporters.log_reporter:LogReporter",
    "jmx": "penstock.service.reporters.jmx:JmxReporter",
}
"""Classes of Penstock's reporters, by short name."""
_SAME = {"prom": "prometheus", "promgateway": "pushgateway", "opentelemetry": "otel", "slf4j": "log"}
_FLINKS = {
    "org.apache.flink.metrics.prometheus.PrometheusReporter": "prometheus",
    "org.apache.flink.metrics.prometheus.PrometheusPushGatewayReporter": "pushgateway",
    "org.apache.flink.metrics.otel.OpenTelemetryMetricReporter": "otel",
    "org.apache.flink.traces.otel.OpenTelemetryTraceReporter": "otel",
    "org.apache.flink.metrics.statsd.StatsDReporter": "statsd",
    "org.apache.flink.metrics.graphite.GraphiteReporter": "graphite",
    "org.apache.flink.metrics.datadog.DatadogHttpReporter": "datadog",
    "org.apache.flink.metrics.slf4j.Slf4jReporter": "log",
    "org.apache.flink.traces.slf4j.Slf4jTraceReporter": "log",
    "org.apache.flink.metrics.jmx.JMXReporter": "jmx",
}
"""Short names by Flink's classes. Flink's factories have the same names with the suffix `Factory`."""
COMMON_OPTIONS = (
    "factory.class",
    "class",
    "interval",
    "scope.delimiter",
    "scope.variables.excludes",
    "scope.variables.additional",
    "filter.includes",
    "filter.excludes",
)


@dataclass(frozen=True)
class Ordered:
    """A reporter that a configuration names, with its checked options."""

    options: ReporterOptions
    kind: type[Reporter]
    millis: int
    delimiter: str
    sieve: Sieve
    traces: bool = False


def read_reporters(configuration: Mapping[str, str]) -> list[Ordered]:
    """Return every reporter of a configuration. Raise ConfigurationError or MissingDependency for wrong ones."""
    delimiter = configuration.get("metrics.scope.delimiter") or "."
    found = [
        _read_reporter(ReporterOptions(name, options, f"{part}.reporter"), part == TRACES, delimiter)
        for part in (METRICS, TRACES)
        for name, options in _options_by_reporter(configuration, part).items()
    ]
    for one in found:
        one.kind().check(one.options)
    return found


def relevant(configuration: Mapping[str, str]) -> dict[str, str]:
    """Return the options of metrics and traces, which decide how jobs are reported."""
    return {name: value for name, value in configuration.items() if name.startswith((f"{METRICS}.", f"{TRACES}."))}


def _options_by_reporter(configuration: Mapping[str, str], part: str) -> dict[str, dict[str, str]]:
    """Return the options of the reporters, by reporter. With `metrics.reporters`, only those that it names."""
    prefix = f"{part}.reporter."
    found: dict[str, dict[str, str]] = {}
    for option, value in configuration.items():
        name, dot, rest = option.removeprefix(prefix).partition(".")
        if option.startswith(prefix) and dot and name:
            found.setdefault(name, {})[rest] = value
    chosen = [name.strip() for name in configuration.get(f"{part}.reporters", "").split(",") if name.strip()]
    missing = [name for name in chosen if name not in found]
    if missing:
        raise ConfigurationError(
            f"option {part}.reporters names '{missing[0]}', which has no options: "
            f"set {prefix}{missing[0]}.factory.class"
        )
    return {name: options for name, options in found.items() if name in chosen or not chosen}


def _read_reporter(options: ReporterOptions, traces: bool, delimiter: str) -> Ordered:
    kind = _class_of(options)
    _warn_of_unknown(options, kind)
    millis = options.millis("interval", DEFAULT_MILLIS)
    if millis <= 0:
        raise ConfigurationError(f"option {options.full_name('interval')} must be at least 1 ms")
    own_delimiter = options.values.get("scope.delimiter") or delimiter
    return Ordered(options, kind, millis, own_delimiter, sieve_of(options), traces)


def _warn_of_unknown(options: ReporterOptions, kind: type[Reporter]) -> None:
    if not kind.OPTIONS:
        return
    for option in options.values:
        if option not in COMMON_OPTIONS and option not in kind.OPTIONS:
            known = ", ".join((*COMMON_OPTIONS, *kind.OPTIONS))
            log.warning("option %s is not known; known options are %s", options.full_name(option), known)


# --- from a name to a class ---
def _class_of(options: ReporterOptions) -> type[Reporter]:
    """Return the class that `factory.class` names. Without that option, the reporter's own name is its kind."""
    given = options.text("factory.class") or options.text("class") or options.name
    word = given.lower()
    short = _SAME.get(word, word if word in BUILT_IN else _FLINKS.get(given.removesuffix("Factory"), ""))
    found = _load(BUILT_IN[short] if short else given, options)
    if not (isinstance(found, type) and issubclass(found, Reporter)):
        raise ConfigurationError(
            f"reporter '{options.name}': '{given}' is not a subclass of penstock.reporters.Reporter"
        )
    return found


def _load(given: str, options: ReporterOptions) -> object:
    """Load the class that a name stands for: `module:Class`, or an entry point."""
    offered = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    try:
        if given in offered:
            return offered[given].load()
        module, colon, name = given.partition(":")
        if colon:
            return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"reporter '{options.name}': '{given}' cannot be loaded: {error}") from None
    known = ", ".join([*BUILT_IN, *sorted(offered)])
    raise ConfigurationError(
        f"reporter '{options.name}': there is no '{given}'. {options.full_name('factory.class')} takes {known}, "
        "Flink's names for these, or module:Class"
    )
