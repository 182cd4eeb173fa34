"""The options of metrics: the measurements of slots, and the formats of scopes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.base.options.option import Apply, Option, call, keep
from penstock.base.options.parsers import parse_duration, positive, some_text, truth, words
from penstock.engine.records.latency import GRANULARITIES
from penstock.engine.state.rocksdb_figures import FIGURES, OPTION_PREFIX
from penstock.metrics.scopes import DELIMITER_OPTION, EARLIER_NAMES, FORMAT_OPTIONS

if TYPE_CHECKING:
    from penstock.service.launch.execution_settings import EnvironmentSettings


def _rocksdb(figure: str) -> Apply:
    """Return a function that sets whether slots report one of RocksDB's figures."""

    def apply(settings: EnvironmentSettings, reported: bool) -> None:
        others = tuple(name for name in settings.measuring.rocksdb if name != figure)
        settings.measuring = replace(settings.measuring, rocksdb=(*others, figure) if reported else others)

    return apply


def _scope(option: str, default: str) -> Option[str]:
    """Return the option of a scope's format. Reporters read the format; only an empty text is refused here."""
    others = (EARLIER_NAMES[option],) if option in EARLIER_NAMES else ()
    return Option(option, some_text, default, others)


_LATENCY: list[Option[Any]] = [
    Option("metrics.latency.interval", parse_duration, "0 ms", apply=call("config.set_latency_tracking_interval")),
    Option(
        "metrics.latency.granularity",
        words(*GRANULARITIES),
        "operator",
        apply=keep("measuring.latency_granularity"),
    ),
    Option("metrics.latency.history-size", positive, "128", apply=keep("measuring.latency_history")),
    Option("penstock.metrics.enabled", truth, "true", ("python.metric.enabled",), apply=keep("measuring.enabled")),
]

OPTIONS: list[Option[Any]] = [
    *_LATENCY,
    *(_scope(option, default) for option, default in FORMAT_OPTIONS.values()),
    _scope(DELIMITER_OPTION, "."),
    *(Option(f"{OPTION_PREFIX}{figure}", truth, "false", apply=_rocksdb(figure)) for figure in FIGURES),
]
"""Every option of metrics that an environment reads."""
