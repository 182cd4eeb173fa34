"""Builders of operators that depend on an order of rows: Top-N, deduplication, ORDER BY, LIMIT, OVER."""

from __future__ import annotations

from penstock.errors import TableException
from penstock.table.builders.builder import Build, Builder, label_of
from penstock.table.builders.physical import Physical
from penstock.table.logical.nodes import PROCTIME, ROWTIME, Over, Sort
from penstock.table.logical.rex import OverSpec
from penstock.table.operators.over.over_aggregate import StreamingOver
from penstock.table.operators.over.over_partitions import ChangingOver, OverAtEnd
from penstock.table.operators.rank.deduplicate import KeepFirst, KeepLast
from penstock.table.operators.rank.limit import Limit
from penstock.table.operators.rank.sort import SortAtEnd, TemporalSort
from penstock.table.operators.rank.top_n import TopN as TopNOperator
from penstock.table.operators.rank.top_n import TopNSpec
from penstock.table.operators.window.window_top_n import WindowTopN
from penstock.table.physical.physical_nodes import Deduplicate, TopN
from penstock.table.rules.upsert_keys import upsert_keys
from penstock.table.rules.window_columns import END, START, window_bounds
from penstock.table.types.arrow_forms import arrow_schema


def top_n(builder: Builder, relation: TopN) -> Physical:
    """Build Top-N, within windows if their bounds are in PARTITION BY."""
    input = builder.build(relation.input)
    windows = window_bounds(relation.input)
    roles = {} if windows is None else dict(windows.roles)
    found = {roles[position] for position in relation.partition if position in roles}
    if windows is not None and {START, END} <= found and not input.changelog:
        return _window_top_n(builder, relation, input)
    has_keys = any(key >= set(relation.partition) for key in upsert_keys(relation.input))
    spec = TopNSpec(relation.order, relation.first, relation.last, relation.rank_column, input.changelog, has_keys)
    changelog = not builder.batch
    operator = TopNOperator(relation.partition, spec, arrow_schema(relation.columns, changelog), builder.ttl)
    stream = builder.then_by_key(input, relation.partition, relation, "Rank", operator)
    key = _rank_key(relation, input)
    return Physical(stream, relation.columns, changelog, label_of(relation, "Rank"), (input,), key)


def _rank_key(relation: TopN, input: Physical) -> tuple[int, ...] | None:
    if relation.rank_column:
        return (*relation.partition, len(relation.columns) - 1)
    return input.upsert_key


def _window_top_n(builder: Builder, relation: TopN, input: Physical) -> Physical:
    windows = window_bounds(relation.input)
    assert windows is not None
    roles = dict(windows.roles)
    plain = [position for position in relation.partition if position not in roles]
    end = windows.of(END)
    assert end is not None
    spec = TopNSpec(relation.order, relation.first, relation.last, relation.rank_column, False)
    bounds = [position for position in relation.partition if position in roles]
    operator = WindowTopN(plain, bounds, end, spec, arrow_schema(relation.columns))
    operator.processing_time, operator.shifted = windows.processing_time, windows.shifted
    operator.zone = builder.zone
    stream = builder.then_by_key(input, plain, relation, "Window Rank", operator)
    return Physical(stream, relation.columns, False, label_of(relation, "WindowRank"), (input,))


def deduplicate(builder: Builder, relation: Deduplicate) -> Physical:
    """Build a deduplication, or a Top-N of one row for windows and changelogs."""
    windows = window_bounds(relation.input)
    roles = {} if windows is None else dict(windows.roles)
    from penstock.table.logical.rex import SortKey

    order = (SortKey(relation.time, relation.keep_last, not relation.keep_last),)
    as_top = TopN(relation.columns, relation.input, relation.partition, order, 1, 1, relation.rank_column)
    if {START, END} <= {roles[position] for position in relation.partition if position in roles}:
        return top_n(builder, as_top)
    input = builder.build(relation.input)
    if input.changelog:
        return top_n(builder, as_top)
    time = None if relation.input.columns[relation.time].time == PROCTIME else relation.time
    changelog = relation.keep_last
    kind = KeepLast if relation.keep_last else KeepFirst
    schema = arrow_schema(relation.columns, changelog)
    operator = kind(relation.partition, time, schema, relation.rank_column, builder.ttl)
    operator.every_version = relation.every_version
    stream = builder.then_by_key(input, relation.partition, relation, "Deduplicate", operator)
    label = label_of(relation, "Deduplicate")
    return Physical(stream, relation.columns, changelog, label, (input,), relation.partition)


def sort(builder: Builder, relation: Sort) -> Physical:
    """Build ORDER BY and LIMIT."""
    if builder.batch:
        return _sort_at_end(builder, relation)
    if relation.limit is None and relation.offset == 0:
        return _temporal_sort(builder, relation)
    if relation.limit is None:
        raise TableException("FETCH is missed, which on streaming table is not supported: OFFSET needs a LIMIT there")
    input = builder.build(relation.input)
    if not relation.keys and not input.changelog:
        operator = Limit(relation.offset, relation.limit, arrow_schema(relation.columns))
        stream = builder.then_by_key(input, (), relation, "Limit", operator)
        return Physical(stream, relation.columns, False, label_of(relation, "Limit"), (input,), input.upsert_key)
    last = None if relation.limit is None else relation.offset + relation.limit
    spec = TopNSpec(relation.keys, relation.offset + 1, last, False, input.changelog)
    top = TopNOperator((), spec, arrow_schema(relation.columns, True), builder.ttl)
    stream = builder.then_by_key(input, (), relation, "Sort Limit", top)
    return Physical(stream, relation.columns, True, label_of(relation, "SortLimit"), (input,), input.upsert_key)


def _sort_at_end(builder: Builder, relation: Sort) -> Physical:
    input = builder.build(relation.input)
    operator = SortAtEnd(relation.keys, relation.offset, relation.limit, arrow_schema(relation.columns))
    stream = builder.then_by_key(input, (), relation, "Sort", operator)
    return Physical(stream, relation.columns, False, label_of(relation, "Sort"), (input,))


def _temporal_sort(builder: Builder, relation: Sort) -> Physical:
    input = builder.build(relation.input)
    first = relation.keys[0] if relation.keys else None
    column = None if first is None else relation.input.columns[first.index]
    if first is None or column is None or column.time is None or first.descending or input.changelog:
        raise TableException("Sort on a non-time-attribute field is not supported.")
    if column.time == PROCTIME:
        return Physical(input.stream, relation.columns, False, label_of(relation, "TemporalSort"), (input,))
    operator = TemporalSort(first.index, relation.keys[1:], arrow_schema(relation.columns))
    stream = builder.then_by_key(input, (), relation, "Temporal Sort", operator)
    return Physical(stream, relation.columns, False, label_of(relation, "TemporalSort"), (input,))


# --- OVER ---
_AT_END_ONLY = {"NTILE", "PERCENT_RANK", "CUME_DIST"}
_WITHOUT_FRAME = {"ROW_NUMBER", "RANK", "DENSE_RANK", "LAG"}


def over(builder: Builder, relation: Over) -> Physical:
    """Build the windows of OVER, one operator for each."""
    if not builder.batch:
        _check_same_window(relation)
    physical = builder.build(relation.input)
    count = len(relation.input.columns)
    for window in relation.windows:
        count += len(window.calls)
        part = Over(relation.columns[:count], relation.input, (window,))
        physical = _over_at_end(builder, part, physical) if builder.batch else _streaming(builder, part, physical)
    return physical


def _over_at_end(builder: Builder, relation: Over, input: Physical) -> Physical:
    window = relation.windows[0]
    operator = OverAtEnd(window, input.columns, arrow_schema(relation.columns))
    stream = builder.then_by_key(input, window.partition, relation, "Over Aggregate", operator)
    return Physical(stream, relation.columns, False, label_of(relation, "OverAggregate"), (input,))


def _streaming(builder: Builder, relation: Over, input: Physical) -> Physical:
    window = relation.windows[0]
    _check_frame(window)
    first = None if not window.order else input.columns[window.order[0].index]
    if first is None or first.time is None:
        _check_changing(window)
        return _changing(builder, relation, input)
    if len(window.order) > 1 or window.order[0].descending or input.changelog:
        raise TableException(
            "OVER windows' ordering in stream mode must be defined on a time attribute, ascending, and on nothing "
            "else, over rows that stay"
        )
    time = window.order[0].index if first.time == ROWTIME else None
    operator = StreamingOver(window, time, input.columns, arrow_schema(relation.columns), builder.ttl)
    stream = builder.then_by_key(input, window.partition, relation, "Over Aggregate", operator)
    return Physical(stream, relation.columns, False, label_of(relation, "OverAggregate"), (input,))


def _changing(builder: Builder, relation: Over, input: Physical) -> Physical:
    """Build an OVER window that is not ordered by time: a row may change the values of rows behind it."""
    window = relation.windows[0]
    schema = arrow_schema(relation.columns, True)
    operator = ChangingOver(window, input.columns, input.changelog, schema, builder.ttl)
    stream = builder.then_by_key(input, window.partition, relation, "Over Aggregate", operator)
    return Physical(stream, relation.columns, True, label_of(relation, "OverAggregate"), (input,))


def _check_same_window(relation: Over) -> None:
    """Refuse aggregates over different windows. Functions without a frame go with any frame."""
    framed = {window.frame for window in relation.windows for call in window.calls if not _is_unframed(call.function)}
    if len({(window.partition, window.order) for window in relation.windows}) > 1 or len(framed) > 1:
        raise TableException(
            "Over Agg: Unsupported use of OVER windows. All aggregates must be computed on the same window in "
            "streaming mode; compute the others in a query around"
        )


def _is_unframed(function: str) -> bool:
    return function in _WITHOUT_FRAME


def _check_changing(window: OverSpec) -> None:
    if len(window.order) > 1:
        raise TableException("The window can only be ordered by a single column in streaming mode.")
    if window.frame.start is not None:
        raise TableException("Non-time attribute sort is not supported for bounded OVER window.")


def _check_frame(window: OverSpec) -> None:
    if not window.order:
        raise TableException(
            "Over Agg: The window rank function without order by. Please re-check the over window statement."
        )
    if window.order[0].descending:
        raise TableException("The window can only be ordered in ASCENDING mode.")
    if any(call.function == "LEAD" for call in window.calls):
        raise TableException("LEAD looks at rows that have not come yet: it is not supported in streaming mode")
    if window.frame.end != 0:
        raise TableException("OVER windows that do not end at the current row are not supported in streaming mode yet.")
    for call in window.calls:
        if call.function in _AT_END_ONLY:
            raise TableException(f"{call.function} needs all rows of its partition: it is not supported in stream mode")


BUILDERS: dict[type, Build] = {TopN: top_n, Deduplicate: deduplicate, Sort: sort, Over: over}
