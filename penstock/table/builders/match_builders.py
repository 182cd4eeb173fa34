"""Builders of MATCH_RECOGNIZE, LATERAL and UNNEST."""

from __future__ import annotations

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
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.sorting import order_of
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
    variables = Variables(tuple(variables_of(spec.pattern)), dict(spec.subsets))
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


def variables_of(tree: Any) -> list[str]:
    """Return the variables of a pattern, in order."""
    return [tree[1]] if tree[0] == "var" else [name for part in tree[1:] for name in variables_of(part)]


def _pattern(spec: MatchSpec, seen: Seen, variables: Variables) -> Pattern:
    defines = {name: Define(name, rex, seen, variables) for name, rex in spec.defines}
    try:
        whole = _add_elements(spec.pattern, None, _skip(spec.skip), defines)
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


def _add_elements(
    tree: Any, before: Pattern | None, skip: AfterMatchSkipStrategy, defines: dict[str, Define]
) -> Pattern:
    """Add the elements of a tree to a pattern. Every row must directly follow the one before it."""
    if tree[0] == "seq":
        for part in tree[1:]:
            before = _add_elements(part, before, skip, defines)
        assert before is not None
        return before
    _, what, low, high, greedy = tree
    element = Pattern.begin(what, skip) if before is None else before.next(what)
    if what in defines:
        element = element.where(defines[what])
    return _repeat(element, low, high, greedy)


def _repeat(element: Pattern, low: int, high: int | None, greedy: bool) -> Pattern:
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
