"""Transformations of two sets: joins, outer joins, co-groups and crosses, from the keys to the function."""

from __future__ import annotations

from typing import Any, Self

from penstock.dataset.data_set import DataSet
from penstock.dataset.functions import FlatJoinFunction
from penstock.dataset.operators.dataset_operator import DataSetOperator
from penstock.dataset.operators.group_operators import ElementSort
from penstock.dataset.operators.pair_operators import CoGroupElements, ProjectedPair, SortMergeJoin
from penstock.dataset.operators.record_operators import CrossElements, HashJoin, pair
from penstock.dataset.plan.checks import check_function, check_positions, check_type, is_generator
from penstock.dataset.plan.element_kinds import Kind, TupleKind, pick_fields
from penstock.dataset.plan.enums import JoinHint, Order
from penstock.dataset.plan.keys import Key, key_of_fields
from penstock.dataset.plan.sorting import Sorts, custom, sort_of, with_sort
from penstock.dataset.plan.steps import Ref, Refs, Step
from penstock.errors import ProgramError
from penstock.graph.partitioning import ByKey, Partitioning

FIRST, SECOND = 0, 1
_BROADCASTS = {JoinHint.BROADCAST_HASH_FIRST: FIRST, JoinHint.BROADCAST_HASH_SECOND: SECOND}


class KeyedPair:
    """Two sets that wait for their keys."""

    method = "join"

    def __init__(self, first: DataSet, second: DataSet) -> None:
        check_type(self.method, "other", second, DataSet)
        self._sides = first, second
        self._keys: list[Key] = []

    def where(self, *keys: Any) -> Self:
        """Set the key of the first set: fields, or one function."""
        self._keys = [key_of_fields(keys, self._sides[FIRST].kind, "where")]
        return self

    def equal_to(self, *keys: Any) -> Any:
        """Set the key of the second set: fields, or one function."""
        if not self._keys:
            raise ProgramError(f"{self.method}: call where(...) before equal_to(...)")
        self._keys = [self._keys[FIRST], key_of_fields(keys, self._sides[SECOND].kind, "equal_to")]
        self._keys[FIRST].check_matches(self._keys[SECOND], self.method)
        for side, key in zip(self._sides, self._keys, strict=True):
            side.check_key(key, self.method)
        return self._make((self._keys[FIRST], self._keys[SECOND]))

    def _make(self, keys: tuple[Key, Key]) -> Any:
        raise NotImplementedError


class Join(KeyedPair):
    """An inner join whose keys are not set yet."""

    def __init__(self, first: DataSet, second: DataSet, hint: JoinHint) -> None:
        super().__init__(first, second)
        check_type(self.method, "strategy", hint, JoinHint)
        self._hint = hint

    def _make(self, keys: tuple[Key, Key]) -> JoinOperator:
        return JoinOperator(self._sides, keys, self._hint)


class OuterJoin(KeyedPair):
    """An outer join that waits for its keys."""

    def __init__(self, first: DataSet, second: DataSet, hint: JoinHint, method: str, keeps: tuple[bool, bool]) -> None:
        self.method = method
        super().__init__(first, second)
        check_type(method, "strategy", hint, JoinHint)
        self._hint = hint
        side = _BROADCASTS.get(hint)
        if side is not None and keeps[side]:
            # Every task has the whole side, and could not know whether another task found a partner.
            raise ProgramError(f"{method} keeps elements without a partner from the side that {hint.name} broadcasts")
        self._keeps = keeps

    def _make(self, keys: tuple[Key, Key]) -> OuterJoinOperator:
        return OuterJoinOperator(self._sides, keys, self._hint, self._keeps)


class PairOperator(DataSet):
    """A set that is made of pairs of elements by a function."""

    def __init__(self, sides: tuple[DataSet, DataSet], function: Any, method: str, kind: Kind) -> None:
        self._sides = sides
        first = sides[FIRST]
        super().__init__(first.env, (Ref(self._step(function, method)),), kind)

    def _step(self, function: Any, method: str) -> Step:
        raise NotImplementedError


class ProjectingOperator(PairOperator):
    """A set of pairs, from which fields can be picked instead."""

    def __init__(self, sides: tuple[DataSet, DataSet], fields: tuple[tuple[int, int | None], ...] = ()) -> None:
        self._fields = fields
        if fields:
            super().__init__(sides, ProjectedPair(fields), "", self._result_kind(sides))
        else:
            super().__init__(sides, pair, "", TupleKind((sides[FIRST].kind, sides[SECOND].kind)))

    def _result_kind(self, sides: tuple[DataSet, DataSet]) -> Kind:
        kinds: list[Kind] = []
        for side, position in self._fields:
            kind = sides[side].kind
            if position is None:
                kinds.append(kind)
                continue
            picked = pick_fields(kind, (position,), "project")
            kinds.append(picked.fields[0] if isinstance(picked, TupleKind) else None)
        return TupleKind(tuple(kinds))

    def project_first(self, *fields: int) -> Self:
        """Put fields of the first element into the result; without positions the whole element."""
        return self._project(FIRST, fields)

    def project_second(self, *fields: int) -> Self:
        """Put fields of the second element into the result; without positions the whole element."""
        return self._project(SECOND, fields)

    def _project(self, side: int, fields: tuple[int, ...]) -> Self:
        if fields:
            check_positions("project_first" if side == FIRST else "project_second", fields)
        picked: list[tuple[int, int | None]] = [(side, field) for field in fields] or [(side, None)]
        return self._with_fields((*self._fields, *picked))

    def _with_fields(self, fields: tuple[tuple[int, int | None], ...]) -> Self:
        raise NotImplementedError


class JoinOperator(ProjectingOperator):
    """An inner join: pairs of elements with equal keys."""

    def __init__(
        self,
        sides: tuple[DataSet, DataSet],
        keys: tuple[Key, Key],
        hint: JoinHint,
        how: tuple[Partitioning, Partitioning] | None = None,
        fields: tuple[tuple[int, int | None], ...] = (),
    ) -> None:
        self._keys, self._hint, self._how = keys, hint, how
        super().__init__(sides, fields)

    def _step(self, function: Any, method: str) -> Step:
        return join_step(self._sides, self._keys, self._hint, (False, False), self._how, function, method)

    def with_(self, function: Any) -> DataSet:
        """Join each pair with a function. One that yields may give any number of results."""
        check_function("join", function, "join")
        return DataSet(self.env, (Ref(self._step(function, "join")),))

    def with_partitioner(self, partitioner: Any) -> JoinOperator:
        """Choose the tasks of keys by a partitioner, instead of by a hash."""
        first, second = (custom("with_partitioner", partitioner, key) for key in self._keys)
        return JoinOperator(self._sides, self._keys, self._hint, (first, second), self._fields)

    def _with_fields(self, fields: tuple[tuple[int, int | None], ...]) -> JoinOperator:
        return JoinOperator(self._sides, self._keys, self._hint, self._how, fields)


class OuterJoinOperator:
    """An outer join that waits for its function."""

    def __init__(
        self,
        sides: tuple[DataSet, DataSet],
        keys: tuple[Key, Key],
        hint: JoinHint,
        keeps: tuple[bool, bool],
        how: tuple[Partitioning, Partitioning] | None = None,
    ) -> None:
        self._sides, self._keys, self._hint, self._keeps, self._how = sides, keys, hint, keeps, how

    def with_(self, function: Any) -> DataSet:
        """Join each pair with a function, which gets None for a missing side."""
        check_function("outer join", function, "join")
        step = join_step(self._sides, self._keys, self._hint, self._keeps, self._how, function, "join")
        return DataSet(self._sides[FIRST].env, (Ref(step),))

    def with_partitioner(self, partitioner: Any) -> OuterJoinOperator:
        """Choose the tasks of keys by a partitioner, instead of by a hash."""
        first, second = (custom("with_partitioner", partitioner, key) for key in self._keys)
        return OuterJoinOperator(self._sides, self._keys, self._hint, self._keeps, (first, second))


def join_step(
    sides: tuple[DataSet, DataSet],
    keys: tuple[Key, Key],
    hint: JoinHint,
    keeps: tuple[bool, bool],
    how: tuple[Partitioning, Partitioning] | None,
    function: Any,
    method: str,
) -> Step:
    """Return the step of a join by the strategy of a hint."""
    is_flat = isinstance(function, FlatJoinFunction) or is_generator(function, method)
    small = _BROADCASTS.get(hint)
    if small is not None and how is None:
        large = 1 - small
        selectors = keys[large].selector, keys[small].selector
        operator = HashJoin(function, method, selectors, large == FIRST, keeps[large], is_flat)
        step = Step("Join", operator, (sides[large].refs,))
        step.add_set(HashJoin.OTHER, sides[small].refs)
        return step
    sorts = ElementSort(keys[FIRST].selector), ElementSort(keys[SECOND].selector)
    joining = SortMergeJoin(function, method, sorts, keeps, is_flat)
    first, second = by_key(sides, keys, how)
    return Step("Join", joining, (second, first))


def by_key(
    sides: tuple[DataSet, DataSet], keys: tuple[Key, Key], how: tuple[Partitioning, Partitioning] | None
) -> tuple[Refs, Refs]:
    """Distribute two sets, so that equal keys meet."""
    first, second = how or (ByKey(keys[FIRST].selector), ByKey(keys[SECOND].selector))
    return distribute(sides[FIRST].refs, first), distribute(sides[SECOND].refs, second)


def distribute(refs: Refs, partitioning: Partitioning) -> Refs:
    """Distribute elements."""
    return tuple(Ref(ref.step, partitioning) for ref in refs)


# --- co-groups ---
class CoGrouping(KeyedPair):
    """A co-group whose keys are not complete yet."""

    method = "co_group"

    def _make(self, keys: tuple[Key, Key]) -> CoGroupOperator:
        return CoGroupOperator(self._sides, keys)


class CoGroupOperator:
    """A co-group with keys. `with_` adds the function."""

    def __init__(
        self,
        sides: tuple[DataSet, DataSet],
        keys: tuple[Key, Key],
        sorts: tuple[Sorts, Sorts] = ((), ()),
        how: tuple[Partitioning, Partitioning] | None = None,
    ) -> None:
        self._sides, self._keys, self._sorts, self._how = sides, keys, sorts, how

    def sort_first_group(self, field: Any, order: Order) -> CoGroupOperator:
        """Sort the elements of the first set that have a key."""
        key = key_of_fields((field,), self._sides[FIRST].kind, "sort_first_group")
        sorts = with_sort(self._sorts[FIRST], key, order, "sort_first_group"), self._sorts[SECOND]
        return CoGroupOperator(self._sides, self._keys, sorts, self._how)

    def sort_second_group(self, field: Any, order: Order) -> CoGroupOperator:
        """Sort the elements of the second set that have a key."""
        key = key_of_fields((field,), self._sides[SECOND].kind, "sort_second_group")
        sorts = self._sorts[FIRST], with_sort(self._sorts[SECOND], key, order, "sort_second_group")
        return CoGroupOperator(self._sides, self._keys, sorts, self._how)

    def with_partitioner(self, partitioner: Any) -> CoGroupOperator:
        """Choose the tasks of keys by a partitioner, instead of by a hash."""
        first, second = (custom("with_partitioner", partitioner, key) for key in self._keys)
        return CoGroupOperator(self._sides, self._keys, self._sorts, (first, second))

    def with_(self, function: Any) -> DataSet:
        """Call a function for each key of either set, with the elements of both."""
        check_function("co_group", function, "co_group")
        sorts = [
            ElementSort(key.selector, *sort_of(sort)) if sort else ElementSort(key.selector)
            for key, sort in zip(self._keys, self._sorts, strict=True)
        ]
        step = Step(
            "CoGroup", CoGroupElements(function, "co_group", *sorts), by_key(self._sides, self._keys, self._how)
        )
        return DataSet(self._sides[FIRST].env, (Ref(step),))


# --- crosses ---
class Cross(ProjectingOperator):
    """All pairs of two sets."""

    def __init__(
        self,
        sides: tuple[DataSet, DataSet],
        broadcasts_first: bool,
        fields: tuple[tuple[int, int | None], ...] = (),
    ) -> None:
        self._broadcasts_first = broadcasts_first
        super().__init__(sides, fields)

    def _step(self, function: Any, method: str) -> Step:
        first, second = self._sides
        large, small = (second, first) if self._broadcasts_first else (first, second)
        operator: DataSetOperator = CrossElements(function, method, not self._broadcasts_first)
        step = Step("Cross", operator, (large.refs,))
        step.add_set(CrossElements.OTHER, small.refs)
        return step

    def with_(self, function: Any) -> DataSet:
        """Combine each pair with a function."""
        check_function("cross", function, "cross")
        return DataSet(self.env, (Ref(self._step(function, "cross")),))

    def _with_fields(self, fields: tuple[tuple[int, int | None], ...]) -> Cross:
        return Cross(self._sides, self._broadcasts_first, fields)


def make_cross(first: DataSet, second: DataSet, broadcasts_first: bool) -> Cross:
    """Return all pairs of two sets, one of which goes to every task."""
    check_type("cross", "other", second, DataSet)
    return Cross((first, second), broadcasts_first)


__all__ = ["CoGroupOperator", "CoGrouping", "Cross", "Join", "JoinOperator", "OuterJoin", "OuterJoinOperator"]
