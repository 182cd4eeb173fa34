"""Rules for MATCH_RECOGNIZE, LATERAL and UNNEST."""

from __future__ import annotations

from penstock.errors import TableException
from penstock.table.logical.nodes import PROCTIME, Correlate, Match
from penstock.table.logical.row_patterns import RowPattern
from penstock.table.physical import order_nodes as nodes
from penstock.table.physical.physical_node import PhysicalNode
from penstock.table.rules.implementation.chooser import Chooser, Rule


def choose_correlate(chooser: Chooser, relation: Correlate) -> PhysicalNode:
    """Choose the node of LATERAL or UNNEST."""
    input = chooser.choose(relation.input)
    return nodes.Correlate(relation, (input,), input.changelog)


def choose_match(chooser: Chooser, relation: Match) -> PhysicalNode:
    """Choose the node of MATCH_RECOGNIZE."""
    input = chooser.choose(relation.input)
    if input.changelog:
        raise TableException("Match Recognize doesn't support consuming update and delete changes")
    _check_pattern(relation.spec.pattern)
    time = relation.spec.order[0].index
    timed = relation.input.columns[time].time != PROCTIME
    return nodes.Match(relation, (input,), False, time if timed else None)


def _check_pattern(pattern: RowPattern) -> None:
    """Refuse quantifiers that Flink refuses."""
    elements = pattern.elements()
    last = elements[-1]
    if any((one.low, one.high, one.greedy) == (0, 1, False) for one in elements):
        raise TableException("Reluctant optional variables are not supported yet.")
    if last.greedy and last.low != last.high and (last.low, last.high) != (0, 1):
        raise TableException("Greedy quantifiers are not allowed as the last element of a Pattern yet.")


RULES: dict[type, Rule] = {Correlate: choose_correlate, Match: choose_match}
