"""All options `table.*` of Flink 2.3: their values and effects. `docs/sql/options.md` has the reasons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.base.options.option import Effect, Option, Parser
from penstock.table.options.option_values import MEMORY, NAME, NUMBER, TEXT, TIME, TRUTH, ZONE, whole, words

_SAME_ROWS = "each of its values gives the same rows"


def _effect(name: str, parse: Parser[Any], default: str) -> Option[Any]:
    return Option(name, parse, default)


def _irrelevant(name: str, parse: Parser[Any], default: str) -> Option[Any]:
    return Option(name, parse, default, effect=Effect.IRRELEVANT, note=_SAME_ROWS)


def _refuse(name: str, parse: Parser[Any], default: str, why: str) -> Option[Any]:
    return Option(name, parse, default, effect=Effect.REFUSED, note=why)


def complaint(option: Option[Any], value: str) -> str | None:
    """Return the error for a value of an option; None if it is allowed."""
    try:
        option.parse(value)
    except ValueError as error:
        return f"'{option.name}' cannot be '{value}': {error}"
    if option.effect is not Effect.REFUSED or value.strip().upper() == (option.default or "").upper():
        return None
    return f"'{option.name}' = '{value}' is not supported: {option.note}; allowed is '{option.default}'"


_ORDERED, _RETRY = words("ORDERED", "ALLOW_UNORDERED"), words("NO_RETRY", "FIXED_DELAY")
_NO_EMIT = "a window gives its result once, when it ends"

_CATALOGS = [
    _effect("builtin-catalog-name", NAME, "default_catalog"),
    _effect("builtin-database-name", NAME, "default_database"),
    _refuse("catalog-modification.listeners", TEXT, "", "listeners are classes of Java"),
    _refuse("catalog-store.kind", NAME, "generic_in_memory", "catalogs live as long as their environment"),
    _refuse("secret-store.kind", NAME, "generic_in_memory", "connections and their secrets are not offered"),
]
_QUERIES = [
    _refuse("column-expansion-strategy", TEXT, "", "SELECT * gives all columns"),
    _effect("display.max-column-width", whole(1), "30"),
    _effect("dml-sync", TRUTH, "false"),
    _effect("dynamic-table-options.enabled", TRUTH, "true"),
    _irrelevant("generated-code.max-length", whole(1), "4000"),
    _irrelevant("generated-code.max-members", whole(1), "10000"),
    _refuse("legacy-nested-row-nullability", TRUTH, "false", "the types of nested rows are those of Flink 2"),
    _effect("local-time-zone", ZONE, "UTC"),
    _irrelevant("plan.compile.catalog-objects", words("ALL", "SCHEMA", "IDENTIFIER"), "ALL"),
    _irrelevant("plan.force-recompile", TRUTH, "false"),
    _irrelevant("plan.restore.catalog-objects", words("ALL", "ALL_ENFORCED", "IDENTIFIER"), "ALL"),
    _irrelevant("resources.download-dir", TEXT, "/tmp"),
    _irrelevant("rtas-ctas.atomicity-enabled", TRUTH, "false"),
    _refuse("sql-dialect", TEXT, "default", "Hive's dialect is not offered"),
]
_ASYNC = [
    _irrelevant("async-lookup.buffer-capacity", whole(1), "100"),
    _irrelevant("async-lookup.key-ordered-enabled", TRUTH, "false"),
    _irrelevant("async-lookup.output-mode", _ORDERED, "ORDERED"),
    _irrelevant("async-lookup.timeout", TIME, "3 min"),
    _irrelevant("async-ml-predict.max-concurrent-operations", whole(1), "10"),
    _irrelevant("async-ml-predict.output-mode", _ORDERED, "ORDERED"),
    _irrelevant("async-ml-predict.timeout", TIME, "3 min"),
    _effect("async-scalar.buffer-capacity", whole(1), "10"),
    _effect("async-scalar.max-attempts", whole(0), "3"),
    _effect("async-scalar.max-concurrent-operations", whole(1), "10"),
    _effect("async-scalar.retry-delay", TIME, "100 ms"),
    _effect("async-scalar.retry-strategy", _RETRY, "FIXED_DELAY"),
    _effect("async-scalar.timeout", TIME, "3 min"),
    _irrelevant("async-state.enabled", TRUTH, "false"),
    _irrelevant("async-table.max-concurrent-operations", whole(1), "10"),
    _irrelevant("async-table.max-retries", whole(1), "3"),
    _irrelevant("async-table.retry-delay", TIME, "100 ms"),
    _irrelevant("async-table.retry-strategy", _RETRY, "FIXED_DELAY"),
    _irrelevant("async-table.timeout", TIME, "3 min"),
    _irrelevant("async-vector-search.max-concurrent-operations", whole(1), "10"),
    _irrelevant("async-vector-search.output-mode", _ORDERED, "ORDERED"),
    _irrelevant("async-vector-search.timeout", TIME, "3 min"),
]
_SOURCES_AND_SINKS = [
    _effect("sink.keyed-shuffle", words("NONE", "AUTO", "FORCE"), "AUTO"),
    _effect("sink.nested-constraint-enforcer", words("IGNORE", "ROWS", "ROWS_AND_COLLECTIONS"), "IGNORE"),
    _effect("sink.not-null-enforcer", words("ERROR", "DROP"), "ERROR"),
    _effect("sink.require-on-conflict", TRUTH, "true"),
    _irrelevant("sink.rowtime-inserter", words("ENABLED", "DISABLED"), "ENABLED"),
    _effect("sink.type-length-enforcer", words("IGNORE", "TRIM_PAD", "ERROR"), "IGNORE"),
    _effect("sink.upsert-materialize", words("NONE", "AUTO", "FORCE"), "AUTO"),
    _irrelevant("sink.upsert-materialize-strategy.adaptive.threshold.high", whole(), ""),
    _irrelevant("sink.upsert-materialize-strategy.adaptive.threshold.low", whole(), ""),
    _irrelevant("sink.upsert-materialize-strategy.type", words("LEGACY", "MAP", "VALUE", "ADAPTIVE"), "LEGACY"),
    _effect("source.cdc-events-duplicate", TRUTH, "false"),
    _effect("source.idle-timeout", TIME, "0 s"),
]
_STREAMS = [
    _irrelevant("deduplicate.insert-update-after-sensitive-enabled", TRUTH, "true"),
    _irrelevant("deduplicate.mini-batch.compact-changes-enabled", TRUTH, "false"),
    _irrelevant("delta-join.cache-enabled", TRUTH, "true"),
    _irrelevant("delta-join.left.cache-size", whole(), "10000"),
    _irrelevant("delta-join.right.cache-size", whole(), "10000"),
    _refuse("emit.allow-lateness", TIME, "0 s", "rows behind the end of their window are late"),
    _refuse("emit.early-fire.delay", TIME, "0 s", _NO_EMIT),
    _refuse("emit.early-fire.enabled", TRUTH, "false", _NO_EMIT),
    _refuse("emit.late-fire.delay", TIME, "0 s", _NO_EMIT),
    _refuse("emit.late-fire.enabled", TRUTH, "false", _NO_EMIT),
    _irrelevant("interval-join.min-cleanup-interval", TIME, "0 s"),
    _effect("mini-batch.allow-latency", TIME, "0 s"),
    _effect("mini-batch.enabled", TRUTH, "false"),
    _effect("mini-batch.size", whole(-1), "-1"),
    _irrelevant("rank.topn-cache-size", whole(), "10000"),
    _effect("state.ttl", TIME, "0 s"),
    _irrelevant("uid.format", TEXT, "<id>_<transformation>"),
    _irrelevant("uid.generation", words("PLAN_ONLY", "ALWAYS", "DISABLED"), "PLAN_ONLY"),
    _irrelevant("unbounded-over.version", whole(1), "2"),
]
_OPERATORS = [
    _irrelevant("disabled-operators", TEXT, ""),
    _irrelevant("dynamic-filtering.threshold", MEMORY, "8 mb"),
    _refuse("legacy-cast-behaviour", words("ENABLED", "DISABLED"), "DISABLED", "a CAST is that of Flink 2"),
    _irrelevant("local-hash-agg.adaptive.distinct-value-rate-threshold", NUMBER, "0.5"),
    _irrelevant("local-hash-agg.adaptive.enabled", TRUTH, "true"),
    _irrelevant("local-hash-agg.adaptive.sampling-threshold", whole(), "500000"),
    _irrelevant("operator-fusion-codegen.enabled", TRUTH, "false"),
    _effect("resource.default-parallelism", whole(-1), "-1"),
    _irrelevant("resource.external-buffer-memory", MEMORY, "10 mb"),
    _irrelevant("resource.hash-agg.memory", MEMORY, "128 mb"),
    _irrelevant("resource.hash-join.memory", MEMORY, "128 mb"),
    _irrelevant("resource.sort.memory", MEMORY, "128 mb"),
    _irrelevant("simplify-operator-name-enabled", TRUTH, "true"),
    _irrelevant("sort.async-merge-enabled", TRUTH, "true"),
    _effect("sort.default-limit", whole(-1), "-1"),
    _irrelevant("sort.max-num-file-handles", whole(2), "128"),
    _irrelevant("spill-compression.block-size", MEMORY, "64 kb"),
    _irrelevant("spill-compression.enabled", TRUTH, "true"),
    _irrelevant("window-agg.buffer-size-limit", whole(1), "100000"),
]
_OPTIMISER = [
    _irrelevant("adaptive-broadcast-join.strategy", words("AUTO", "RUNTIME_ONLY", "NONE"), "AUTO"),
    _irrelevant("agg-phase-strategy", words("AUTO", "ONE_PHASE", "TWO_PHASE"), "AUTO"),
    _irrelevant("bushy-join-reorder-threshold", whole(), "12"),
    _irrelevant("delta-join.strategy", words("AUTO", "FORCE", "NONE"), "AUTO"),
    _irrelevant("distinct-agg.split.bucket-num", whole(1), "1024"),
    _irrelevant("distinct-agg.split.enabled", TRUTH, "false"),
    _irrelevant("dynamic-filtering.enabled", TRUTH, "true"),
    _irrelevant("incremental-agg-enabled", TRUTH, "true"),
    _irrelevant("join-reorder-enabled", TRUTH, "false"),
    _irrelevant("join.broadcast-threshold", whole(-1), "1048576"),
    _irrelevant("multi-join.enabled", TRUTH, "false"),
    _irrelevant("multiple-input-enabled", TRUTH, "true"),
    _effect("non-deterministic-update.strategy", words("TRY_RESOLVE", "IGNORE"), "IGNORE"),
    _irrelevant("ptf.max-tables", whole(), "20"),
    _irrelevant("reuse-optimize-block-with-digest-enabled", TRUTH, "false"),
    _irrelevant("reuse-sink-enabled", TRUTH, "true"),
    _irrelevant("reuse-source-enabled", TRUTH, "true"),
    _irrelevant("reuse-sub-plan-enabled", TRUTH, "true"),
    _irrelevant("runtime-filter.enabled", TRUTH, "false"),
    _irrelevant("runtime-filter.max-build-data-size", MEMORY, "150 mb"),
    _irrelevant("runtime-filter.min-filter-ratio", NUMBER, "0.5"),
    _irrelevant("runtime-filter.min-probe-data-size", MEMORY, "10 gb"),
    _irrelevant("skewed-join-optimization.skewed-factor", NUMBER, "4.0"),
    _irrelevant("skewed-join-optimization.skewed-threshold", MEMORY, "256 mb"),
    _irrelevant("skewed-join-optimization.strategy", words("AUTO", "FORCED", "NONE"), "AUTO"),
    _irrelevant("source.report-statistics-enabled", TRUTH, "true"),
    _irrelevant("sql2rel.project-merge.enabled", TRUTH, "false"),
    _irrelevant("union-all-as-breakpoint-enabled", TRUTH, "true"),
]
_EXECUTION = [*_ASYNC, *_SOURCES_AND_SINKS, *_STREAMS, *_OPERATORS]


def _with_prefix(prefix: str, options: list[Option[Any]]) -> dict[str, Option[Any]]:
    return {f"{prefix}{option.name}": replace(option, name=f"{prefix}{option.name}") for option in options}


KNOWN: dict[str, Option[Any]] = {
    **_with_prefix("table.", [*_CATALOGS, *_QUERIES]),
    **_with_prefix("table.exec.", _EXECUTION),
    **_with_prefix("table.optimizer.", _OPTIMISER),
}
"""Flink's options by their names."""
OWN: dict[str, Option[Any]] = {
    option.name: option
    for option in [
        _effect("table.display.eager", TRUTH, "false"),
        _effect("table.display.max-rows", whole(1), "20"),
        _effect("table.exec.batch.engine", words("spark", "penstock"), "spark"),
        _effect("table.exec.batch.staging-directory", TEXT, ""),
    ]
}
"""Options that Flink does not have."""

ALL = {**KNOWN, **OWN}
"""Every option `table.*`."""
OPTIONS = list(ALL.values())
"""The same as a list."""
