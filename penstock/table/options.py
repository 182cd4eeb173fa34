"""The options `table.*`: which there are, what is checked of them, and what they mean for a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches

from penstock.common.configuration import parse_duration
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.errors import ConfigurationError, ValidationException

MINI_BATCH = "table.exec.mini-batch.enabled"
LATENCY = "table.exec.mini-batch.allow-latency"
SIZE = "table.exec.mini-batch.size"
PARALLELISM = "table.exec.resource.default-parallelism"
ENGINE = "table.exec.batch.engine"
HINTED_OPTIONS = "table.dynamic-table-options.enabled"
NOT_NULL = "table.exec.sink.not-null-enforcer"
STAGING = "table.exec.batch.staging-directory"
OWN = frozenset([ENGINE, STAGING])
"""Those that Flink does not have."""
KNOWN = frozenset(
    [
        "table.builtin-catalog-name",
        "table.builtin-database-name",
        "table.catalog-modification.listeners",
        "table.column-expansion-strategy",
        "table.display.max-column-width",
        "table.dml-sync",
        "table.dynamic-table-options.enabled",
        "table.exec.async-lookup.buffer-capacity",
        "table.exec.async-lookup.key-ordered-enabled",
        "table.exec.async-lookup.output-mode",
        "table.exec.async-lookup.timeout",
        "table.exec.async-ml-predict.max-concurrent-operations",
        "table.exec.async-ml-predict.output-mode",
        "table.exec.async-ml-predict.timeout",
        "table.exec.async-scalar.buffer-capacity",
        "table.exec.async-scalar.max-attempts",
        "table.exec.async-scalar.max-concurrent-operations",
        "table.exec.async-scalar.retry-delay",
        "table.exec.async-scalar.retry-strategy",
        "table.exec.async-scalar.timeout",
        "table.exec.async-state.enabled",
        "table.exec.async-table.max-concurrent-operations",
        "table.exec.async-table.max-retries",
        "table.exec.async-table.retry-delay",
        "table.exec.async-table.retry-strategy",
        "table.exec.async-table.timeout",
        "table.exec.async-vector-search.max-concurrent-operations",
        "table.exec.async-vector-search.output-mode",
        "table.exec.async-vector-search.timeout",
        "table.exec.deduplicate.insert-update-after-sensitive-enabled",
        "table.exec.deduplicate.mini-batch.compact-changes-enabled",
        "table.exec.delta-join.cache-enabled",
        "table.exec.delta-join.left.cache-size",
        "table.exec.delta-join.right.cache-size",
        "table.exec.disabled-operators",
        "table.exec.interval-join.min-cleanup-interval",
        "table.exec.legacy-cast-behaviour",
        "table.exec.local-hash-agg.adaptive.distinct-value-rate-threshold",
        "table.exec.local-hash-agg.adaptive.enabled",
        "table.exec.local-hash-agg.adaptive.sampling-threshold",
        "table.exec.mini-batch.allow-latency",
        "table.exec.mini-batch.enabled",
        "table.exec.mini-batch.size",
        "table.exec.operator-fusion-codegen.enabled",
        "table.exec.rank.topn-cache-size",
        "table.exec.resource.default-parallelism",
        "table.exec.resource.external-buffer-memory",
        "table.exec.resource.hash-agg.memory",
        "table.exec.resource.hash-join.memory",
        "table.exec.resource.sort.memory",
        "table.exec.simplify-operator-name-enabled",
        "table.exec.sink.keyed-shuffle",
        "table.exec.sink.nested-constraint-enforcer",
        "table.exec.sink.not-null-enforcer",
        "table.exec.sink.require-on-conflict",
        "table.exec.sink.rowtime-inserter",
        "table.exec.sink.type-length-enforcer",
        "table.exec.sink.upsert-materialize",
        "table.exec.sink.upsert-materialize-strategy.adaptive.threshold.high",
        "table.exec.sink.upsert-materialize-strategy.adaptive.threshold.low",
        "table.exec.sink.upsert-materialize-strategy.type",
        "table.exec.sort.async-merge-enabled",
        "table.exec.sort.default-limit",
        "table.exec.sort.max-num-file-handles",
        "table.exec.source.cdc-events-duplicate",
        "table.exec.source.idle-timeout",
        "table.exec.spill-compression.block-size",
        "table.exec.spill-compression.enabled",
        "table.exec.state.ttl",
        "table.exec.uid.format",
        "table.exec.uid.generation",
        "table.exec.unbounded-over.version",
        "table.exec.window-agg.buffer-size-limit",
        "table.generated-code.max-length",
        "table.generated-code.max-members",
        "table.legacy-nested-row-nullability",
        "table.local-time-zone",
        "table.optimizer.adaptive-broadcast-join.strategy",
        "table.optimizer.agg-phase-strategy",
        "table.optimizer.bushy-join-reorder-threshold",
        "table.optimizer.delta-join.strategy",
        "table.optimizer.distinct-agg.split.bucket-num",
        "table.optimizer.distinct-agg.split.enabled",
        "table.optimizer.dynamic-filtering.enabled",
        "table.optimizer.incremental-agg-enabled",
        "table.optimizer.join-reorder-enabled",
        "table.optimizer.join.broadcast-threshold",
        "table.optimizer.multi-join.enabled",
        "table.optimizer.multiple-input-enabled",
        "table.optimizer.non-deterministic-update.strategy",
        "table.optimizer.ptf.max-tables",
        "table.optimizer.reuse-optimize-block-with-digest-enabled",
        "table.optimizer.reuse-sink-enabled",
        "table.optimizer.reuse-source-enabled",
        "table.optimizer.reuse-sub-plan-enabled",
        "table.optimizer.runtime-filter.enabled",
        "table.optimizer.runtime-filter.max-build-data-size",
        "table.optimizer.runtime-filter.min-filter-ratio",
        "table.optimizer.runtime-filter.min-probe-data-size",
        "table.optimizer.skewed-join-optimization.skewed-factor",
        "table.optimizer.skewed-join-optimization.skewed-threshold",
        "table.optimizer.skewed-join-optimization.strategy",
        "table.optimizer.source.report-statistics-enabled",
        "table.optimizer.sql2rel.project-merge.enabled",
        "table.optimizer.union-all-as-breakpoint-enabled",
        "table.plan.compile.catalog-objects",
        "table.plan.force-recompile",
        "table.plan.restore.catalog-objects",
        "table.resources.download-dir",
        "table.rtas-ctas.atomicity-enabled",
        "table.sql-dialect",
    ]
)
"""All that Flink knows. Most have no effect: there is nothing here that they could change."""


# --- single options ---
def check(key: str, value: str) -> None:
    """Refuse a value that an option cannot have, and a name that is nearly one."""
    if not key.startswith("table."):
        return
    known = KNOWN | OWN
    if key not in known and (close := get_close_matches(key, known, 1, 0.8)):
        raise ValidationException(f"there is no option '{key}'; did you mean '{close[0]}'?")
    checked = _CHECKS.get(key)
    if checked is not None and (wanted := checked(value)) is not None:
        raise ValidationException(f"'{key}' is {wanted}, not '{value}'")


def _truth(value: str) -> str | None:
    return None if value.strip().lower() in {"true", "false"} else "true or false"


def _time(value: str) -> str | None:
    try:
        return None if parse_duration(value) >= 0 else "a time of at least zero"
    except (ConfigurationError, ValueError):
        return "a time such as '5 s'"


def _whole(least: int) -> Callable[[str], str | None]:
    def wrong(value: str) -> str | None:
        try:
            return None if int(value) >= least else f"a whole number of at least {least}"
        except ValueError:
            return "a whole number"

    return wrong


def _zone(value: str) -> str | None:
    from penstock.connectors.files.buckets import time_zone

    try:
        time_zone(value)
    except ValueError:
        return "a time zone such as 'UTC', 'Europe/Oslo' or 'GMT-08:00'"
    return None


def _dialect(value: str) -> str | None:
    return None if value.strip().lower() == "default" else "default (Hive's is not offered)"


def _engine(value: str) -> str | None:
    return None if value in {"spark", "penstock"} else "'spark' or 'penstock'"


def _enforcer(value: str) -> str | None:
    return None if value.strip().upper() in {"ERROR", "DROP"} else "ERROR or DROP"


_CHECKS: Mapping[str, Callable[[str], str | None]] = {
    ENGINE: _engine,
    MINI_BATCH: _truth,
    LATENCY: _time,
    SIZE: _whole(-1),
    PARALLELISM: _whole(-1),
    HINTED_OPTIONS: _truth,
    NOT_NULL: _enforcer,
    "table.dml-sync": _truth,
    "table.exec.state.ttl": _time,
    "table.exec.source.idle-timeout": _time,
    "table.local-time-zone": _zone,
    "table.sql-dialect": _dialect,
}
"""Each gives None for a value that is right, and what is allowed for another one."""


# --- what they mean ---
def apply(options: Mapping[str, str], env: StreamExecutionEnvironment) -> None:
    """Check all options of a query, and set up the job that runs it."""
    for key, value in options.items():
        check(key, value)
    parallelism = int(options.get(PARALLELISM, "-1"))
    if parallelism > 0:
        env.set_parallelism(parallelism)
    if options.get(MINI_BATCH, "").strip().lower() == "true":
        _mini_batch(options, env)


def _mini_batch(options: Mapping[str, str], env: StreamExecutionEnvironment) -> None:
    """An epoch is a mini-batch: it gathers input no longer than is allowed, and reads no more rows than its size."""
    latency = parse_duration(options.get(LATENCY, "0 ms"))
    if latency <= 0:
        raise ValidationException(f"'{LATENCY}' must be longer than zero if '{MINI_BATCH}' is true")
    size = int(options.get(SIZE, "-1"))
    if size <= 0:
        raise ValidationException(f"'{SIZE}' must be above zero if '{MINI_BATCH}' is true")
    gathering = env.get_buffer_timeout()
    if gathering < 0 or gathering > latency:
        env.set_buffer_timeout(latency)
    env._settings.max_records = min(env._settings.max_records, size)
