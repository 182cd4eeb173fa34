"""The options of metrics: the measurements of slots, and the formats of scopes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.common.configuration import parse_duration
from penstock.engine.records.latency import GRANULARITIES
from penstock.engine.state.rocksdb_figures import FIGURES, OPTION_PREFIX
from penstock.metrics.scopes import DELIMITER_OPTION, EARLIER_NAMES, FORMAT_OPTIONS
from penstock.service.launch.options import Apply, Option, Parser, choice, positive, some_text, truth

if TYPE_CHECKING:
    from penstock.service.launch.execution_settings import EnvironmentSettings


def _measure(name: str, parse: Parser[Any]) -> Apply:
    def apply(settings: EnvironmentSettings, value: str) -> None:
        settings.measuring = replace(settings.measuring, **{name: parse(value)})

    return apply


def _rocksdb(figure: str) -> Apply:
    """Return a function that sets whether slots report one of RocksDB's figures."""

    def apply(settings: EnvironmentSettings, value: str) -> None:
        others = tuple(name for name in settings.measuring.rocksdb if name != figure)
        settings.measuring = replace(settings.measuring, rocksdb=(*others, figure) if truth(value) else others)

    return apply


def _scope(option: str, default: str) -> Option:
    """Return the option of a scope's format. Reporters read the format; only an empty text is refused here."""
    others = (EARLIER_NAMES[option],) if option in EARLIER_NAMES else ()
    return Option(option, lambda _, value: some_text(value), default, others)


_LATENCY = [
    Option(
        "metrics.latency.interval",
        lambda s, v: s.config.set_latency_tracking_interval(parse_duration(v)),
        "0 ms",
    ),
    Option(
        "metrics.latency.granularity",
        _measure("latency_granularity", choice({name: name for name in GRANULARITIES})),
        "operator",
    ),
    Option("metrics.latency.history-size", _measure("latency_history", positive), "128"),
    Option("penstock.metrics.enabled", _measure("enabled", truth), "true", ("python.metric.enabled",)),
]

OPTIONS = [
    *_LATENCY,
    *(_scope(option, default) for option, default in FORMAT_OPTIONS.values()),
    _scope(DELIMITER_OPTION, "."),
    *(Option(f"{OPTION_PREFIX}{figure}", _rocksdb(figure), "false") for figure in FIGURES),
]
"""Every option of metrics that an environment reads."""
