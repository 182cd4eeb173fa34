"""Rules for MATCH_RECOGNIZE, LATERAL and UNNEST."""

from __future__ import annotations

from typing import Any

from penstock.errors import TableException
from penstock.table.logical.nodes import PROCTIME, Correlate, Match
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
    _refuse_reluctant_option(relation.spec.pattern)
    _refuse_greedy_end(relation.spec.pattern)
    time = relation.spec.order[0].index
    timed = relation.input.columns[time].time != PROCTIME
    return nodes.Match(relation, (input,), False, time if timed else None)


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


RULES: dict[type, Rule] = {Correlate: choose_correlate, Match: choose_match}
