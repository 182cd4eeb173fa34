"""All options `table.*` of Flink 2.3: their values and effects. `docs/sql/options.md` has the reasons."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.table.options.option_values import MEMORY, NAME, NUMBER, TEXT, TIME, TRUTH, ZONE, Values, whole, words

HAS_EFFECT, IRRELEVANT, REFUSED = "has its effect", "is irrelevant", "is refused"


@dataclass(frozen=True)
class Option:
    """An option. `refusal` is the reason why values other than the default are refused; empty if all are accepted."""

    values: Values
    default: str
    kind: str = IRRELEVANT
    refusal: str = ""
    also: tuple[str, ...] = ()
    """Further values that are accepted despite a refusal, because they ask for nothing that is missing."""

    def complaint(self, key: str, value: str) -> str | None:
        """Return the error for a value; None if it is allowed."""
        if not self.values.is_right(value):
            return f"'{key}' is {self.values.allowed}, not '{value}'"
        taken = (self.default, *self.also)
        if not self.refusal or value.strip().upper() in {word.upper() for word in taken}:
            return None
        return f"'{key}' = '{value}' is not supported: {self.refusal}; allowed is {' or '.join(map(repr, taken))}"


def _effect(values: Values, default: str) -> Option:
    return Option(values, default, HAS_EFFECT)


def _refuse(values: Values, default: str, why: str, *also: str) -> Option:
    return Option(values, default, REFUSED, why, also)


_ORDERED, _RETRY = words("ORDERED", "ALLOW_UNORDERED"), words("NO_RETRY", "FIXED_DELAY")
_NO_EMIT = "a window gives its result once, when it ends"

_CATALOGS = {
    "builtin-catalog-name": _effect(NAME, "default_catalog"),
    "builtin-database-name": _effect(NAME, "default_database"),
    "catalog-modification.listeners": _refuse(TEXT, "", "listeners are classes of Java"),
    "catalog-store.kind": _refuse(NAME, "generic_in_memory", "catalogs live as long as their environment"),
    "secret-store.kind": _refuse(NAME, "generic_in_memory", "connections and their secrets are not offered"),
}
_QUERIES = {
    "column-expansion-strategy": _refuse(TEXT, "", "SELECT * gives all columns"),
    "display.max-column-width": _effect(whole(1), "30"),
    "dml-sync": _effect(TRUTH, "false"),
    "dynamic-table-options.enabled": _effect(TRUTH, "true"),
    "generated-code.max-length": Option(whole(1), "4000"),
    "generated-code.max-members": Option(whole(1), "10000"),
    "legacy-nested-row-nullability": _refuse(TRUTH, "false", "the types of nested rows are those of Flink 2"),
    "local-time-zone": _effect(ZONE, "UTC"),
    "plan.compile.catalog-objects": Option(words("ALL", "SCHEMA", "IDENTIFIER"), "ALL"),
    "plan.force-recompile": Option(TRUTH, "false"),
    "plan.restore.catalog-objects": Option(words("ALL", "ALL_ENFORCED", "IDENTIFIER"), "ALL"),
    "resources.download-dir": Option(TEXT, "/tmp"),
    "rtas-ctas.atomicity-enabled": Option(TRUTH, "false"),
    "sql-dialect": _refuse(TEXT, "default", "Hive's dialect is not offered"),
}
_ASYNC = {
    "async-lookup.buffer-capacity": Option(whole(1), "100"),
    "async-lookup.key-ordered-enabled": Option(TRUTH, "false"),
    "async-lookup.output-mode": Option(_ORDERED, "ORDERED"),
    "async-lookup.timeout": Option(TIME, "3 min"),
    "async-ml-predict.max-concurrent-operations": Option(whole(1), "10"),
    "async-ml-predict.output-mode": Option(_ORDERED, "ORDERED"),
    "async-ml-predict.timeout": Option(TIME, "3 min"),
    "async-scalar.buffer-capacity": _effect(whole(1), "10"),
    "async-scalar.max-attempts": _effect(whole(0), "3"),
    "async-scalar.max-concurrent-operations": _effect(whole(1), "10"),
    "async-scalar.retry-delay": _effect(TIME, "100 ms"),
    "async-scalar.retry-strategy": _effect(_RETRY, "FIXED_DELAY"),
    "async-scalar.timeout": _effect(TIME, "3 min"),
    "async-state.enabled": Option(TRUTH, "false"),
    "async-table.max-concurrent-operations": Option(whole(1), "10"),
    "async-table.max-retries": Option(whole(1), "3"),
    "async-table.retry-delay": Option(TIME, "100 ms"),
    "async-table.retry-strategy": Option(_RETRY, "FIXED_DELAY"),
    "async-table.timeout": Option(TIME, "3 min"),
    "async-vector-search.max-concurrent-operations": Option(whole(1), "10"),
    "async-vector-search.output-mode": Option(_ORDERED, "ORDERED"),
    "async-vector-search.timeout": Option(TIME, "3 min"),
}
_SOURCES_AND_SINKS = {
    "sink.keyed-shuffle": _effect(words("NONE", "AUTO", "FORCE"), "AUTO"),
    "sink.nested-constraint-enforcer": _effect(words("IGNORE", "ROWS", "ROWS_AND_COLLECTIONS"), "IGNORE"),
    "sink.not-null-enforcer": _effect(words("ERROR", "DROP"), "ERROR"),
    "sink.require-on-conflict": _effect(TRUTH, "true"),
    "sink.rowtime-inserter": Option(words("ENABLED", "DISABLED"), "ENABLED"),
    "sink.type-length-enforcer": _effect(words("IGNORE", "TRIM_PAD", "ERROR"), "IGNORE"),
    "sink.upsert-materialize": _effect(words("NONE", "AUTO", "FORCE"), "AUTO"),
    "sink.upsert-materialize-strategy.adaptive.threshold.high": Option(whole(), ""),
    "sink.upsert-materialize-strategy.adaptive.threshold.low": Option(whole(), ""),
    "sink.upsert-materialize-strategy.type": Option(words("LEGACY", "MAP", "VALUE", "ADAPTIVE"), "LEGACY"),
    "source.cdc-events-duplicate": _effect(TRUTH, "false"),
    "source.idle-timeout": _effect(TIME, "0 s"),
}
_STREAMS = {
    "deduplicate.insert-update-after-sensitive-enabled": Option(TRUTH, "true"),
    "deduplicate.mini-batch.compact-changes-enabled": Option(TRUTH, "false"),
    "delta-join.cache-enabled": Option(TRUTH, "true"),
    "delta-join.left.cache-size": Option(whole(), "10000"),
    "delta-join.right.cache-size": Option(whole(), "10000"),
    "emit.allow-lateness": _refuse(TIME, "0 s", "rows behind the end of their window are late"),
    "emit.early-fire.delay": _refuse(TIME, "0 s", _NO_EMIT),
    "emit.early-fire.enabled": _refuse(TRUTH, "false", _NO_EMIT),
    "emit.late-fire.delay": _refuse(TIME, "0 s", _NO_EMIT),
    "emit.late-fire.enabled": _refuse(TRUTH, "false", _NO_EMIT),
    "interval-join.min-cleanup-interval": Option(TIME, "0 s"),
    "mini-batch.allow-latency": _effect(TIME, "0 s"),
    "mini-batch.enabled": _effect(TRUTH, "false"),
    "mini-batch.size": _effect(whole(-1), "-1"),
    "rank.topn-cache-size": Option(whole(), "10000"),
    "state.ttl": _effect(TIME, "0 s"),
    "uid.format": Option(TEXT, "<id>_<transformation>"),
    "uid.generation": Option(words("PLAN_ONLY", "ALWAYS", "DISABLED"), "PLAN_ONLY"),
    "unbounded-over.version": Option(whole(1), "2"),
}
_OPERATORS = {
    "disabled-operators": Option(TEXT, ""),
    "dynamic-filtering.threshold": Option(MEMORY, "8 mb"),
    "legacy-cast-behaviour": _refuse(words("ENABLED", "DISABLED"), "DISABLED", "a CAST is that of Flink 2"),
    "local-hash-agg.adaptive.distinct-value-rate-threshold": Option(NUMBER, "0.5"),
    "local-hash-agg.adaptive.enabled": Option(TRUTH, "true"),
    "local-hash-agg.adaptive.sampling-threshold": Option(whole(), "500000"),
    "operator-fusion-codegen.enabled": Option(TRUTH, "false"),
    "resource.default-parallelism": _effect(whole(-1), "-1"),
    "resource.external-buffer-memory": Option(MEMORY, "10 mb"),
    "resource.hash-agg.memory": Option(MEMORY, "128 mb"),
    "resource.hash-join.memory": Option(MEMORY, "128 mb"),
    "resource.sort.memory": Option(MEMORY, "128 mb"),
    "simplify-operator-name-enabled": Option(TRUTH, "true"),
    "sort.async-merge-enabled": Option(TRUTH, "true"),
    "sort.default-limit": _effect(whole(-1), "-1"),
    "sort.max-num-file-handles": Option(whole(2), "128"),
    "spill-compression.block-size": Option(MEMORY, "64 kb"),
    "spill-compression.enabled": Option(TRUTH, "true"),
    "window-agg.buffer-size-limit": Option(whole(1), "100000"),
}
_OPTIMISER = {
    "adaptive-broadcast-join.strategy": Option(words("AUTO", "RUNTIME_ONLY", "NONE"), "AUTO"),
    "agg-phase-strategy": Option(words("AUTO", "ONE_PHASE", "TWO_PHASE"), "AUTO"),
    "bushy-join-reorder-threshold": Option(whole(), "12"),
    "delta-join.strategy": Option(words("AUTO", "FORCE", "NONE"), "AUTO"),
    "distinct-agg.split.bucket-num": Option(whole(1), "1024"),
    "distinct-agg.split.enabled": Option(TRUTH, "false"),
    "dynamic-filtering.enabled": Option(TRUTH, "true"),
    "incremental-agg-enabled": Option(TRUTH, "true"),
    "join-reorder-enabled": Option(TRUTH, "false"),
    "join.broadcast-threshold": Option(whole(-1), "1048576"),
    "multi-join.enabled": Option(TRUTH, "false"),
    "multiple-input-enabled": Option(TRUTH, "true"),
    "non-deterministic-update.strategy": _effect(words("TRY_RESOLVE", "IGNORE"), "IGNORE"),
    "ptf.max-tables": Option(whole(), "20"),
    "reuse-optimize-block-with-digest-enabled": Option(TRUTH, "false"),
    "reuse-sink-enabled": Option(TRUTH, "true"),
    "reuse-source-enabled": Option(TRUTH, "true"),
    "reuse-sub-plan-enabled": Option(TRUTH, "true"),
    "runtime-filter.enabled": Option(TRUTH, "false"),
    "runtime-filter.max-build-data-size": Option(MEMORY, "150 mb"),
    "runtime-filter.min-filter-ratio": Option(NUMBER, "0.5"),
    "runtime-filter.min-probe-data-size": Option(MEMORY, "10 gb"),
    "skewed-join-optimization.skewed-factor": Option(NUMBER, "4.0"),
    "skewed-join-optimization.skewed-threshold": Option(MEMORY, "256 mb"),
    "skewed-join-optimization.strategy": Option(words("AUTO", "FORCED", "NONE"), "AUTO"),
    "source.report-statistics-enabled": Option(TRUTH, "true"),
    "sql2rel.project-merge.enabled": Option(TRUTH, "false"),
    "union-all-as-breakpoint-enabled": Option(TRUTH, "true"),
}
_EXECUTION = {**_ASYNC, **_SOURCES_AND_SINKS, **_STREAMS, **_OPERATORS}
KNOWN: dict[str, Option] = {
    **{f"table.{name}": option for name, option in {**_CATALOGS, **_QUERIES}.items()},
    **{f"table.exec.{name}": option for name, option in _EXECUTION.items()},
    **{f"table.optimizer.{name}": option for name, option in _OPTIMISER.items()},
}
"""Flink's options by their names."""
OWN: dict[str, Option] = {
    "table.display.eager": _effect(TRUTH, "false"),
    "table.display.max-rows": _effect(whole(1), "20"),
    "table.exec.batch.engine": _effect(words("spark", "penstock"), "spark"),
    "table.exec.batch.staging-directory": _effect(TEXT, ""),
}
"""Options that Flink does not have."""

ALL = {**KNOWN, **OWN}
"""Every option `table.*`."""


@dataclass(frozen=True)
class ListedOption:
    """A row of the list of all options of Penstock."""

    name: str
    default: str | None
    no_effect: str = ""
    others: tuple[str, ...] = ()


def _list_option(name: str, option: Option) -> ListedOption:
    same_rows = "each of its values gives the same rows" if option.kind == IRRELEVANT else ""
    return ListedOption(name, option.default or None, same_rows)


OPTIONS = [_list_option(name, option) for name, option in ALL.items()]
"""Every option `table.*`, in the form of the list of all options."""
