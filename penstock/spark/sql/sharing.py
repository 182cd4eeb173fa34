"""The relations that the queries of a statement set share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.table.logical.nodes import Relation, Values, walk_plan
from penstock.table.rules.implementation.chooser import sharing_key


def common(queries: Sequence[Relation]) -> list[Relation]:
    """Return the relations that several queries use and that would be computed more than once, inner ones first.

    A relation that only a shared relation uses is left out: it is computed once together with that relation.
    """
    found = _Uses()
    for number, query in enumerate(queries):
        found.follow(query, ("query", number), number)
    return [relation for key, relation in found.relations.items() if found.is_common(key)]


class _Uses:
    """The users of each relation. Equal relations count as one."""

    def __init__(self) -> None:
        self.relations: dict[Any, Relation] = {}
        self._used_by: dict[Any, set[Any]] = {}
        self._queries: dict[Any, set[int]] = {}

    def follow(self, relation: Relation, user: Any, query: int) -> None:
        """Note that `user` uses a relation, and that the relation uses its inputs."""
        key = sharing_key(relation)
        self._used_by.setdefault(key, set()).add(user)
        queries = self._queries.setdefault(key, set())
        if query not in queries:
            queries.add(query)
            for place, part in enumerate(relation.inputs()):
                self.follow(part, (key, place), query)
        self.relations.setdefault(key, relation)

    def is_common(self, key: Any) -> bool:
        """Return True if several queries and several users need a relation. Literal rows are never worth sharing."""
        several = len(self._queries[key]) > 1 and len(self._used_by[key]) > 1
        return several and not isinstance(self.relations[key], Values)


def sharing(queries: Sequence[Relation], one: int) -> set[int]:
    """Return the numbers of the queries that share relations with query `one`, directly or through other queries."""
    parts = [{sharing_key(part) for part in walk_plan(query) if not isinstance(part, Values)} for query in queries]
    found, grown = {one}, True
    while grown:
        known = set().union(*(parts[number] for number in found))
        more = {number for number, own in enumerate(parts) if own & known}
        grown = not more <= found
        found |= more
    return found
