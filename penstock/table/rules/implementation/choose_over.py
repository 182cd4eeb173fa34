"""Rules for the windows of OVER."""

from __future__ import annotations

from penstock.errors import TableException
from penstock.table.logical.nodes import ROWTIME, Over
from penstock.table.logical.rex import OverSpec
from penstock.table.physical import order_nodes as nodes
from penstock.table.physical.physical_node import PhysicalNode
from penstock.table.rules.implementation.chooser import Chooser, Rule

_AT_END_ONLY = {"NTILE", "PERCENT_RANK", "CUME_DIST"}
_WITHOUT_FRAME = {"ROW_NUMBER", "RANK", "DENSE_RANK", "LAG"}


def choose_over(chooser: Chooser, relation: Over) -> PhysicalNode:
    """Choose the nodes of the windows of OVER, one for each."""
    batch = chooser.settings.batch
    if not batch:
        _check_same_window(relation)
    node = chooser.choose(relation.input)
    count = len(relation.input.columns)
    for window in relation.windows:
        count += len(window.calls)
        part = Over(relation.columns[:count], relation.input, (window,))
        node = nodes.OverAtEnd(part, (node,), False) if batch else _choose_streaming(chooser, part, node)
    return node


def _choose_streaming(chooser: Chooser, relation: Over, input: PhysicalNode) -> PhysicalNode:
    window, ttl = relation.windows[0], chooser.settings.ttl
    _check_frame(window)
    first = None if not window.order else input.columns[window.order[0].index]
    if first is None or first.time is None:
        _check_changing(window)
        return nodes.ChangingOver(relation, (input,), True, ttl)
    if len(window.order) > 1 or window.order[0].descending or input.changelog:
        raise TableException(
            "OVER windows' ordering in stream mode must be defined on a time attribute, ascending, and on nothing "
            "else, over rows that stay"
        )
    time = window.order[0].index if first.time == ROWTIME else None
    return nodes.OverAggregate(relation, (input,), False, time, ttl)


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


RULES: dict[type, Rule] = {Over: choose_over}
