"""Builders of MATCH_RECOGNIZE, LATERAL and UNNEST."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.api.functions.key_selectors import ColumnKeys
from penstock.cep.cep_operator import PatternOperator, PatternSpec
from penstock.cep.pattern import Pattern
from penstock.cep.skipping import AfterMatchSkipStrategy
from penstock.common.time import Time
from penstock.datastream.data_stream import DataStream
from penstock.errors import MalformedPatternException, TableException
from penstock.table.builders.builder import Build, Builder
from penstock.table.logical.nodes import MatchSpec
from penstock.table.logical.rex import InputRef, Rex, shift_refs
from penstock.table.logical.row_patterns import PatternVariable
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.sort_order import order_of
from penstock.table.operators.io.calc import Calc
from penstock.table.operators.io.correlate import Correlate
from penstock.table.operators.match.match_operator import (
    BatchesOfRows,
    Define,
    EventsOfBatches,
    Measures,
    Seen,
    Variables,
)
from penstock.table.physical import order_nodes as nodes
from penstock.table.types.arrow_forms import arrow_schema


def build_correlate(builder: Builder, node: nodes.Correlate, input: DataStream) -> DataStream:
    """Build LATERAL or UNNEST."""
    one = node.relation
    operator = Correlate(
        one.call, one.outer, one.condition, one.ordinality, builder.form(node), node.changelog, builder.settings.zone
    )
    return builder.then(input, one, "Correlate", operator)


# --- MATCH_RECOGNIZE ---
def build_match(builder: Builder, node: nodes.Match, input: DataStream) -> DataStream:
    """Build MATCH_RECOGNIZE: rows become events, events become matches, and matches become rows."""
    relation, spec = node.relation, node.relation.spec
    seen = Seen(arrow_schema(relation.input.columns), node.time)
    variables = Variables(tuple(element.name for element in spec.pattern.elements()), dict(spec.subsets))
    over_takes = [seen.over_takes(rex) for _, rex in spec.measures]
    events = builder.then(input, relation, "Events", EventsOfBatches(OutputForm(seen.columns), node.time))
    measures = Measures(spec.partition, seen, variables)
    pattern = PatternSpec(_pattern(spec, seen, variables), node.time is not None, _comparator(spec))
    operator = PatternOperator(pattern, measures, ColumnKeys(spec.partition))
    matches = builder.then_by_key(events, spec.partition, relation, "Match", operator)
    return _with_measures(builder, node, matches, seen, over_takes)


def _with_measures(
    builder: Builder, node: nodes.Match, matches: DataStream, seen: Seen, over_takes: list[Rex]
) -> DataStream:
    """Add the operators that convert matches to batches and compute the measures."""
    relation = node.relation
    keys = [relation.input.columns[position] for position in relation.spec.partition]
    schema = pa.schema([*arrow_schema(tuple(keys)), *seen.schema()])
    rows = builder.then(matches, relation, "Matched Rows", BatchesOfRows(schema))
    exprs: list[Rex] = [InputRef(column.type, index) for index, column in enumerate(keys)]
    exprs += [shift_refs(rex, len(keys)) for rex in over_takes]
    return builder.then(rows, relation, "Measures", Calc(exprs, None, builder.form(node), False, builder.settings.zone))


def _pattern(spec: MatchSpec, seen: Seen, variables: Variables) -> Pattern:
    defines = {name: Define(name, rex, seen, variables) for name, rex in spec.defines}
    try:
        whole = _pattern_of(spec.pattern.elements(), _skip(spec.skip), defines)
    except MalformedPatternException as error:
        raise TableException(f"PATTERN: {error}") from error
    return whole if spec.within is None else whole.within(Time.milliseconds(spec.within))


def _skip(skip: tuple[str, str | None]) -> AfterMatchSkipStrategy:
    kind, variable = skip
    if kind == "PAST LAST ROW":
        return AfterMatchSkipStrategy.skip_past_last_event()
    if kind == "TO NEXT ROW":
        return AfterMatchSkipStrategy.skip_to_next()
    assert variable is not None
    to = AfterMatchSkipStrategy.skip_to_first if kind == "TO FIRST" else AfterMatchSkipStrategy.skip_to_last
    return to(variable).throw_exception_on_miss()


def _pattern_of(
    elements: Sequence[PatternVariable], skip: AfterMatchSkipStrategy, defines: dict[str, Define]
) -> Pattern:
    """Return a pattern of elements. Every row must directly follow the one before it."""
    whole: Pattern | None = None
    for one in elements:
        element = Pattern.begin(one.name, skip) if whole is None else whole.next(one.name)
        if one.name in defines:
            element = element.where(defines[one.name])
        whole = _repeat(element, one)
    assert whole is not None
    return whole


def _repeat(element: Pattern, variable: PatternVariable) -> Pattern:
    low, high, greedy = variable.low, variable.high, variable.greedy
    if (low, high) == (1, 1):
        return element
    if (low, high) == (0, 1):
        return element.optional()
    if high is None:
        element = element.one_or_more() if low <= 1 else element.times_or_more(low)
        element = element.optional().consecutive() if low == 0 else element.consecutive()
    else:
        element = element.times(low, high).consecutive()
    return element.greedy() if greedy and low != high else element


def _comparator(spec: MatchSpec) -> Any:
    """Return a comparator of rows with the same time by the rest of the order, or None if time is the only key."""
    if len(spec.order) < 2:
        return None
    return RowComparator(spec.order[1:])


class RowComparator:
    """Compares rows by sort keys."""

    def __init__(self, keys: Any) -> None:
        self.keys = keys

    def __call__(self, one: Any, other: Any) -> int:
        order = order_of(self.keys)
        first, second = order(one), order(other)
        return (first > second) - (first < second)


BUILDERS: dict[type, Build] = {nodes.Correlate: build_correlate, nodes.Match: build_match}
