"""Builders of functions of several rows or tables: LATERAL, UNNEST, flat_aggregate, MATCH_RECOGNIZE."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.api.functions.key_selectors import ColumnKeys
from penstock.cep.cep_operator import PatternOperator, PatternSpec
from penstock.cep.pattern import Pattern
from penstock.cep.skipping import AfterMatchSkipStrategy
from penstock.common.time import Time
from penstock.errors import MalformedPatternException, TableException
from penstock.table.builders.builder import Build, Builder, label_of
from penstock.table.builders.physical import Physical
from penstock.table.logical.nodes import PROCTIME, Correlate, Match, MatchSpec, TableAggregate
from penstock.table.logical.rex import InputRef, Rex, shift_refs
from penstock.table.operators.aggregate.functions.user_aggregates import UserAggregate
from penstock.table.operators.aggregate.table_aggregate import TableAggregate as TableAggregateOperator
from penstock.table.operators.aggregate.table_aggregate import WindowTableAggregate as WindowTableAggregateOperator
from penstock.table.operators.base.sort_order import order_of
from penstock.table.operators.io.calc import Calc as CalcOperator
from penstock.table.operators.io.correlate import Correlate as CorrelateOperator
from penstock.table.operators.match.match_operator import (
    BatchesOfRows,
    Define,
    EventsOfBatches,
    Measures,
    Seen,
    Variables,
)
from penstock.table.operators.window.window_aggregate import WindowKeys
from penstock.table.physical.physical_nodes import WindowTableAggregate
from penstock.table.rules.window_columns import window_bounds
from penstock.table.types.arrow_forms import arrow_schema


def correlate(builder: Builder, relation: Correlate) -> Physical:
    """Build LATERAL or UNNEST."""
    input = builder.build(relation.input)
    schema = arrow_schema(relation.columns, input.changelog)
    operator = CorrelateOperator(
        relation.call, relation.outer, relation.condition, relation.ordinality, schema, input.changelog
    )
    operator.zone = builder.zone
    stream = builder.then(input, relation, "Correlate", operator)
    return Physical(stream, relation.columns, input.changelog, label_of(relation, "Correlate"), (input,))


def table_aggregate(builder: Builder, relation: TableAggregate) -> Physical:
    """Build flat_aggregate over groups."""
    input = builder.build(relation.input)
    types = [relation.input.columns[index].type for index in relation.call.args]
    results = [column.type for column in relation.columns[len(relation.keys) :]]
    changelog = not builder.batch
    schema = arrow_schema(relation.columns, changelog)
    operator = TableAggregateOperator(
        relation.keys, relation.call, (types, results), input.changelog, schema, builder.ttl
    )
    stream = builder.then_by_key(input, relation.keys, relation, "Table Aggregate", operator)
    return Physical(stream, relation.columns, changelog, label_of(relation, "GroupTableAggregate"), (input,))


def window_table_aggregate(builder: Builder, relation: WindowTableAggregate) -> Physical:
    """Build flat_aggregate over windows."""
    input = builder.build(relation.input)
    width, count = len(relation.input.columns), len(relation.keys)
    keys = (*relation.keys, width - 3, width - 2, width - 1)
    windows = window_bounds(relation.input)
    assert windows is not None
    split = WindowKeys(
        tuple(range(count)),
        (count, count + 1, count + 2),
        count + 1,
        windows.processing_time,
        windows.shifted,
    )
    types = [relation.input.columns[index].type for index in relation.call.args]
    made = len(relation.columns) - count - len(relation.properties)
    results = [column.type for column in relation.columns[count : count + made]]
    fold = UserAggregate(relation.call, types)
    schema = arrow_schema(relation.columns)
    operator = WindowTableAggregateOperator(keys, split, fold, input.changelog, schema)
    operator.zone, operator.result_types = builder.zone, tuple(results)
    operator.properties = tuple({"start": 0, "end": 1}.get(name, 2) for name in relation.properties)
    stream = builder.then_by_key(input, relation.keys, relation, "Window Table Aggregate", operator)
    label = label_of(relation, "GroupWindowTableAggregate")
    return Physical(stream, relation.columns, False, label, (input,))


# --- MATCH_RECOGNIZE ---
def match(builder: Builder, relation: Match) -> Physical:
    """Build MATCH_RECOGNIZE: rows become events, events become matches, and matches become rows."""
    input = builder.build(relation.input)
    if input.changelog:
        raise TableException("Match Recognize doesn't support consuming update and delete changes")
    spec = relation.spec
    time = spec.order[0].index
    timed = relation.input.columns[time].time != PROCTIME
    seen = Seen(arrow_schema(relation.input.columns), time if timed else None)
    variables = Variables(tuple(variables_of(spec.pattern)), dict(spec.subsets))
    over_takes = [seen.over_takes(rex) for _, rex in spec.measures]
    events = builder.then(input, relation, "Events", EventsOfBatches(seen.columns, time if timed else None))
    measures = Measures(spec.partition, seen, variables)
    pattern = PatternSpec(_pattern(spec, seen, variables), timed, _comparator(spec))
    operator = PatternOperator(pattern, measures, ColumnKeys(spec.partition))
    before = Physical(events, relation.input.columns, False)
    matches = builder.then_by_key(before, spec.partition, relation, "Match", operator)
    return _with_measures(builder, relation, input, Physical(matches, (), False), (seen, over_takes))


def _with_measures(
    builder: Builder, relation: Match, input: Physical, matches: Physical, measured: tuple[Seen, list[Rex]]
) -> Physical:
    """Add the operators that convert matches to batches and compute the measures."""
    seen, over_takes = measured
    keys = [relation.input.columns[position] for position in relation.spec.partition]
    schema = pa.schema([*arrow_schema(tuple(keys)), *seen.schema()])
    rows = builder.then(matches, relation, "Matched Rows", BatchesOfRows(schema))
    exprs: list[Rex] = [InputRef(column.type, index) for index, column in enumerate(keys)]
    exprs += [shift_refs(rex, len(keys)) for rex in over_takes]
    calc = CalcOperator(exprs, None, arrow_schema(relation.columns), False)
    calc.zone = builder.zone
    stream = builder.then(Physical(rows, (), False), relation, "Measures", calc)
    return Physical(stream, relation.columns, False, label_of(relation, "Match"), (input,))


def variables_of(tree: Any) -> list[str]:
    """Return the variables of a pattern, in order."""
    return [tree[1]] if tree[0] == "var" else [name for part in tree[1:] for name in variables_of(part)]


def _pattern(spec: MatchSpec, seen: Seen, variables: Variables) -> Pattern:
    defines = {name: Define(name, rex, seen, variables) for name, rex in spec.defines}
    _refuse_reluctant_option(spec.pattern)
    _refuse_greedy_end(spec.pattern)
    try:
        whole = _add_elements(spec.pattern, None, _skip(spec.skip), defines)
    except MalformedPatternException as error:
        raise TableException(f"PATTERN: {error}") from error
    return whole if spec.within is None else whole.within(Time.milliseconds(spec.within))


def _refuse_reluctant_option(tree: Any) -> None:
    if tree[0] == "var" and tree[2:] == (0, 1, False):
        raise TableException("Reluctant optional variables are not supported yet.")
    for part in tree[1:] if tree[0] == "seq" else ():
        _refuse_reluctant_option(part)


def _refuse_greedy_end(tree: Any) -> None:
    last = tree
    while last[0] == "seq":
        last = last[-1]
    if last[4] and last[2] != last[3] and last[2:4] != (0, 1):
        raise TableException("Greedy quantifiers are not allowed as the last element of a Pattern yet.")


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


BUILDERS: dict[type, Build] = {
    Correlate: correlate,
    TableAggregate: table_aggregate,
    WindowTableAggregate: window_table_aggregate,
    Match: match,
}
