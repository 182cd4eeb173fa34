"""GROUP BY: keys, grouping sets and group windows, and the aggregates over them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from penstock.table.logical.kinds import WindowKind
from penstock.table.logical.nodes import PROCTIME, ROWTIME, Aggregate, Column, Columns, Expand, GroupWindow, Relation
from penstock.table.logical.rex import AggregateCall, InputRef, Literal, Rex, SortKey, Subquery, rewritten
from penstock.table.sql.bind.bind_expressions import ExpressionBinder
from penstock.table.sql.bind.naming import position, projection, uniquely
from penstock.table.sql.bind.placeholders import Aggregated, Grouping, Spanned, WindowProperty
from penstock.table.sql.bind.window_table_functions import interval_of
from penstock.table.sql.parse.problems import invalid, not_supported
from penstock.table.sql.parse.syntax import Group, Invoke, Node
from penstock.table.sql.parse.tokens import Position
from penstock.table.sql.subqueries.correlation import with_outer
from penstock.table.types.data_types import BigIntType, LocalZonedTimestampType, TimestampType

Lift = Callable[[Rex], Rex]
_GROUP_WINDOWS = {"TUMBLE": 2, "HOP": 3, "SESSION": 2}
"""The older window functions of GROUP BY, with the number of their arguments."""


@dataclass(frozen=True)
class Window:
    """A group window: the time column, and sizes in milliseconds."""

    kind: WindowKind
    args: tuple[Rex, ...]
    """The time attribute and the intervals. They identify functions of the same window."""
    size: int
    slide: int


@dataclass
class Groups:
    """The keys, grouping sets and window of a GROUP BY."""

    keys: list[Rex]
    sets: list[tuple[int, ...]]
    """The keys of every grouping set."""
    window: Window | None = None


# --- the keys of GROUP BY ---
def group_keys(binder: ExpressionBinder, groups: Sequence[Group] | None) -> Groups | None:
    """Return the keys of a GROUP BY clause, or None without one."""
    if groups is None:
        return None
    made = _Keys(binder)
    alternatives = [made.sets(group) for group in groups]
    sets = [tuple(sorted(set().union(*choice))) for choice in itertools.product(*alternatives)]
    return Groups(made.keys, list(dict.fromkeys(sets)), made.window)


@dataclass
class _Keys:
    binder: ExpressionBinder
    keys: list[Rex] = field(default_factory=list)
    window: Window | None = None

    def sets(self, group: Group) -> list[set[int]]:
        if group.kind == "SETS":
            return [one for member in group.members for one in self.sets(member)]
        if group.kind == "":
            return [self._indices(group.members)]
        members = [self._indices(member) for member in group.members]
        if group.kind == "ROLLUP":
            return [_union(members[:count]) for count in range(len(members), -1, -1)]
        chosen = itertools.product((True, False), repeat=len(members))
        return [_union(list(itertools.compress(members, choice))) for choice in chosen]

    def _indices(self, nodes: Sequence[Node]) -> set[int]:
        return {index for node in nodes if (index := self._index(node)) is not None}

    def _index(self, node: Node) -> int | None:
        if isinstance(node, Invoke) and node.name.upper() in _GROUP_WINDOWS and not node.path:
            self._set_window(node)
            return None
        return position(self.keys, self.binder.bind(node))

    def _set_window(self, node: Invoke) -> None:
        kind = node.name.upper()
        if self.window is not None:
            raise not_supported(node.at, "a query can have one group window only")
        if len(node.args) != _GROUP_WINDOWS[kind]:
            raise invalid(node.at, f"{kind} in GROUP BY takes {_GROUP_WINDOWS[kind]} arguments: the time and intervals")
        args = self.binder.all(node.args)
        spans = [interval_of(one, node.args[index + 1].at) for index, one in enumerate(args[1:])]
        if not isinstance(args[0], InputRef) or not isinstance(args[0].type, TimestampType | LocalZonedTimestampType):
            raise invalid(node.at, f"{kind} needs a time attribute, not {args[0]}")
        size, slide = (spans[1], spans[0]) if kind == "HOP" else (spans[0], 0)
        self.window = Window(WindowKind(kind), args, size, slide)


def _union(sets: Sequence[set[int]]) -> set[int]:
    return set().union(*sets)


# --- the plan ---
def bind_groups(
    binder: ExpressionBinder,
    relation: Relation,
    groups: Groups,
    aggregates: Sequence[Aggregated],
    properties: Sequence[WindowProperty],
) -> tuple[Relation, Lift]:
    """Return the aggregate, and a function for the expressions above it.

    The function turns an expression over the input of the aggregate into one over its output.
    """
    expands = groups.sets != [tuple(range(len(groups.keys)))]
    exprs = list(groups.keys)
    base = len(exprs) if expands else 0
    calls = [_prepare(one, exprs, base) for one in aggregates]
    if groups.window is not None:
        return _group_window(binder, relation, groups, exprs, (aggregates, calls, properties))
    below = _below(relation, exprs, len(groups.keys))
    keys = tuple(range(len(groups.keys)))
    if expands:
        below, keys = _expand(below, groups), (*keys, len(exprs))
    names = uniquely([*(below.columns[index].name for index in keys), *(f"$a{n}" for n in range(len(calls)))])
    key_columns = [replace(below.columns[index], name=name) for index, name in zip(keys, names, strict=False)]
    columns = (*key_columns, *_call_columns(calls, names[len(keys) :]))
    plan = Aggregate(columns, below, keys, _name_calls(calls, names[len(keys) :]))
    refs: dict[Rex, Rex] = {key: plan.ref(index) for index, key in enumerate(groups.keys)}
    refs |= {one: plan.ref(len(keys) + index) for index, one in enumerate(aggregates)}
    return plan, _Lifting(binder, groups, refs, plan.ref(len(groups.keys)) if expands else None).lift


def _prepare(call: Aggregated, exprs: list[Rex], base: int) -> AggregateCall:
    """Return the call over columns. The expressions of its arguments are added to `exprs`.

    With grouping sets, an argument never shares a column with a key, because the columns of keys become NULL.
    """

    def column(rex: Rex) -> int:
        rest = exprs[base:]
        index = base + position(rest, rex)
        exprs[base:] = rest
        return index

    args = tuple(column(arg) for arg in call.args)
    condition = None if call.filter is None else column(call.filter)
    order = tuple(SortKey(column(one.value), one.descending, one.nulls_first) for one in call.order)
    return AggregateCall(
        call.function, args, call.type, "", call.distinct, condition, call.literals, order, call.ignore_nulls, call.udf
    )


def _below(relation: Relation, exprs: Sequence[Rex], keys: int) -> Relation:
    """Return the rows with keys and arguments as columns. Without any they remain unchanged: a batch needs a column."""
    if not exprs:
        return relation
    names = [_column_name(rex, relation, f"$k{n}" if n < keys else f"$f{n}") for n, rex in enumerate(exprs)]
    return projection(relation, exprs, names)


def _column_name(rex: Rex, relation: Relation, otherwise: str) -> str:
    return relation.columns[rex.index].name if isinstance(rex, InputRef) else otherwise


def _call_columns(calls: Sequence[AggregateCall], names: Sequence[str]) -> Columns:
    return tuple(Column(name, call.type) for call, name in zip(calls, names, strict=True))


def _name_calls(calls: Sequence[AggregateCall], names: Sequence[str]) -> tuple[AggregateCall, ...]:
    return tuple(replace(call, name=name) for call, name in zip(calls, names, strict=True))


def _expand(below: Relation, groups: Groups) -> Relation:
    """Add the rows of grouping sets. Keys become nullable, and the last column is the id of the set."""
    count = len(groups.keys)
    always = set.intersection(*(set(one) for one in groups.sets))
    columns = tuple(
        replace(column, type=column.type.nullable()) if index < count and index not in always else column
        for index, column in enumerate(below.columns)
    )
    return Expand((*columns, Column("$e", BigIntType(False))), below, tuple(range(count)), tuple(groups.sets))


def _group_window(
    binder: ExpressionBinder,
    relation: Relation,
    groups: Groups,
    exprs: list[Rex],
    wanted: tuple[Sequence[Aggregated], list[AggregateCall], Sequence[WindowProperty]],
) -> tuple[Relation, Lift]:
    window, (aggregates, calls, properties) = groups.window, wanted
    assert window is not None
    if len(groups.sets) != 1:
        raise invalid(binder.places[id(groups.keys[0])][1], "group windows cannot be combined with grouping sets")
    time = position(exprs, window.args[0])
    below = _below(relation, exprs, len(groups.keys))
    keys = tuple(range(len(groups.keys)))
    parts = list(dict.fromkeys(one.property for one in properties))
    offset = len(keys) + len(calls)
    names = uniquely([*(below.columns[index].name for index in keys), *(f"$a{n}" for n in range(len(calls))), *parts])
    columns = (
        *(replace(below.columns[index], name=name) for index, name in zip(keys, names, strict=False)),
        *_call_columns(calls, names[len(keys) : offset]),
        *(_property_column(one, properties, name) for one, name in zip(parts, names[offset:], strict=True)),
    )
    made = _name_calls(calls, names[len(keys) : offset])
    plan = GroupWindow(columns, below, window.kind, time, window.size, window.slide, keys, made, tuple(parts))
    refs: dict[Rex, Rex] = {key: plan.ref(index) for index, key in enumerate(groups.keys)}
    refs |= {one: plan.ref(len(keys) + index) for index, one in enumerate(aggregates)}
    refs |= {one: plan.ref(offset + parts.index(one.property)) for one in properties if _same_window(one, window)}
    return plan, _Lifting(binder, groups, refs, None).lift


def _property_column(name: str, properties: Sequence[WindowProperty], column: str) -> Column:
    kind = next(one.type for one in properties if one.property == name)
    return Column(column, kind, {"rowtime": ROWTIME, "proctime": PROCTIME}.get(name))


def _same_window(one: WindowProperty, window: Window) -> bool:
    return (one.kind, one.args) == (window.kind, window.args)


# --- expressions over the result ---
@dataclass
class _Lifting:
    binder: ExpressionBinder
    groups: Groups
    refs: dict[Rex, Rex]
    """The expression over the result for every key and aggregate."""
    set_id: Rex | None

    def lift(self, rex: Rex) -> Rex:
        return rewritten(rex, self._change)

    def _change(self, rex: Rex) -> Rex | None:
        if rex in self.refs:
            return self.refs[rex]
        if isinstance(rex, Spanned):
            return self._lift_span(rex)
        if isinstance(rex, Grouping):
            return self._grouping(rex)
        if isinstance(rex, Subquery):
            return replace(rex, args=tuple(map(self.lift, rex.args)), plan=with_outer(rex.plan, self._outer))
        if isinstance(rex, WindowProperty):
            raise invalid(self._place(rex), f"there is no {rex.kind} with these arguments in GROUP BY")
        if isinstance(rex, InputRef):
            raise invalid(self._place(rex), f"Expression {self._describe(rex)} is not being grouped")
        return None

    def _outer(self, ref: InputRef) -> Rex:
        """Return the expression for a column that a subquery reads. The column must be a key."""
        return self.lift(ref)

    def _place(self, rex: Rex) -> Position:
        found = self.binder.places.get(id(rex))
        same = (at for one, at in self.binder.places.values() if one == rex)
        return found[1] if found else next(same, Position())

    def _describe(self, rex: InputRef) -> str:
        names = [one.name for one in self.binder.scope.columns if one.value == rex]
        return f"'{names[0]}'" if names else str(rex)

    def _lift_span(self, rex: Spanned) -> Rex:
        call = rex.call
        condition = None if call.filter is None else self.lift(call.filter)
        order = tuple(replace(one, value=self.lift(one.value)) for one in call.order)
        lifted = replace(call, args=tuple(map(self.lift, call.args)), filter=condition, order=order)
        keys = tuple(replace(one, value=self.lift(one.value)) for one in rex.order)
        return replace(rex, call=lifted, partition=tuple(map(self.lift, rex.partition)), order=keys)

    def _grouping(self, rex: Grouping) -> Rex:
        """Return the bits of the keys, the first one highest. All bits are 0 without grouping sets."""
        total: Rex = Literal(BigIntType(False), 0)
        for key in rex.keys:
            if key not in self.groups.keys:
                raise invalid(self._place(key), "the arguments of GROUPING must be keys of GROUP BY")
            total = self._plus(total, self._bit(self.groups.keys.index(key)))
        return total

    def _bit(self, index: int) -> Rex:
        if self.set_id is None:
            return Literal(BigIntType(False), 0)
        resolve = self.binder.functions.resolve
        power = Literal(BigIntType(False), 2 ** (len(self.groups.keys) - 1 - index))
        return resolve("%", (resolve("/", (self.set_id, power)), Literal(BigIntType(False), 2)))

    def _plus(self, total: Rex, bit: Rex) -> Rex:
        if isinstance(total, Literal):
            return bit
        resolve = self.binder.functions.resolve
        return resolve("+", (resolve("*", (total, Literal(BigIntType(False), 2))), bit))
