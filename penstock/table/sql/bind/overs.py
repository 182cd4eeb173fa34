"""OVER: the windows of a SELECT as one node, with the expressions that it reads computed before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.table.logical.nodes import Column, Over, Relation
from penstock.table.logical.rex import AggregateCall, OverSpec, Rex, SortKey, rewritten
from penstock.table.sql.bind.naming import position, projection, uniquely
from penstock.table.sql.bind.placeholders import Aggregated, Keyed, Spanned


def bind_spans(relation: Relation, spans: Sequence[Spanned]) -> tuple[Relation, Callable[[Rex], Rex]]:
    """Return the relation with a column for each OVER function, and a function for expressions.

    The function replaces the OVER functions in an expression by these columns.
    """
    width = len(relation.columns)
    exprs: list[Rex] = [relation.ref(index) for index in range(width)]
    windows: dict[tuple[object, ...], list[Spanned]] = {}
    for span in spans:
        windows.setdefault((span.partition, span.order, span.frame), []).append(span)
    specs = [_spec(members, exprs) for members in windows.values()]
    extras = ["$w"] * (len(exprs) - width)
    below = projection(relation, exprs, [*relation.names(), *extras]) if extras else relation
    calls = [call for spec in specs for call in spec.calls]
    names = uniquely([*below.names(), *(f"w{index}$o" for index in range(len(calls)))])[len(below.columns) :]
    added = (Column(name, call.type) for name, call in zip(names, calls, strict=True))
    plan = Over((*below.columns, *added), below, tuple(specs))
    ordered = [span for members in windows.values() for span in members]
    refs: dict[Rex, Rex] = {span: plan.ref(len(below.columns) + index) for index, span in enumerate(ordered)}
    return plan, lambda rex: rewritten(rex, refs.get)


def _spec(members: Sequence[Spanned], exprs: list[Rex]) -> OverSpec:
    first = members[0]
    partition = tuple(position(exprs, rex) for rex in first.partition)
    order = tuple(_key(one, exprs) for one in first.order)
    return OverSpec(partition, order, first.frame, tuple(_call(one.call, exprs) for one in members))


def _key(one: Keyed, exprs: list[Rex]) -> SortKey:
    return SortKey(position(exprs, one.value), one.descending, one.nulls_first)


def _call(call: Aggregated, exprs: list[Rex]) -> AggregateCall:
    args = tuple(position(exprs, arg) for arg in call.args)
    condition = None if call.filter is None else position(exprs, call.filter)
    order = tuple(_key(one, exprs) for one in call.order)
    return AggregateCall(
        call.function, args, call.type, "", call.distinct, condition, call.literals, order, call.ignore_nulls, call.udf
    )
