"""The chooser of physical nodes. A rule for each kind of relation chooses the node that computes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from penstock.errors import TableException
from penstock.table.logical.nodes import Insert, Relation
from penstock.table.logical.optimised_nodes import Calc
from penstock.table.logical.rex import conjuncts
from penstock.table.physical.physical_node import PhysicalNode
from penstock.table.rules.calcs import is_repeatable
from penstock.table.rules.implementation.query_settings import QuerySettings

Rule = Callable[["Chooser", Any], PhysicalNode]


class Chooser:
    """Chooses the nodes of the plans of one program. A relation that occurs twice gets one node."""

    def __init__(self, settings: QuerySettings, rules: Mapping[type, Rule]) -> None:
        self.settings = settings
        self._rules = rules
        self._known: dict[Any, tuple[Relation, PhysicalNode]] = {}

    def choose(self, relation: Relation) -> PhysicalNode:
        """Return the node of a relation, with the nodes of all relations below it."""
        key = sharing_key(relation)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = (relation, self.choose_anew(relation))
        return known[1]

    def choose_anew(self, relation: Relation) -> PhysicalNode:
        """Return a new node of a relation."""
        rule = self._rules.get(type(relation))
        if rule is None:
            raise TableException(f"{type(relation).__name__} cannot be run yet")
        return rule(self, relation)

    def use(self, relation: Relation, node: PhysicalNode) -> None:
        """Use a node for a relation, instead of choosing one."""
        self._known[sharing_key(relation)] = (relation, node)


def sharing_key(relation: Relation) -> Any:
    """Return a key that is equal for relations that can share one operator.

    A relation that cannot be shared has its id as key. Two INSERTs are never shared, even if they write the same rows.
    """
    if isinstance(relation, Insert):
        return id(relation)
    try:
        key = _structure(relation)
        hash(key)
    except (TypeError, _Unshared):
        return id(relation)
    return key


class _Unshared(Exception):
    """The error for a relation that may have another result each time it is computed."""


def _structure(relation: Relation) -> tuple[Any, ...]:
    parts: list[Any] = [type(relation)]
    for part in fields(relation):
        value = getattr(relation, part.name)
        if isinstance(value, Relation):
            parts.append(_structure(value))
        elif part.name == "parts":
            parts.append(tuple(map(_structure, value)))
        elif part.name == "table":
            parts.append((str(value.schema), tuple(sorted(value.options.items())), value.partition_keys))
        elif part.name in {"stream", "rows"}:  # rows may be many
            parts.append(id(value))
        else:
            parts.append(value)
    if isinstance(relation, Calc) and not all(map(is_repeatable, (*relation.exprs, *conjuncts(relation.condition)))):
        raise _Unshared
    return tuple(parts)
