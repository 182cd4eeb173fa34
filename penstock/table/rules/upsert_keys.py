"""The columns that make a row of a changelog unique at any moment, in the order of its changes.

The rules are those of Flink's planner (FlinkRelMdUpsertKeys): after an exchange, only a key that contains the columns
of the exchange counts, because changes of other keys may overtake each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from penstock.table.logical.kinds import JoinKind
from penstock.table.logical.nodes import (
    PROCTIME,
    Aggregate,
    Expand,
    Filter,
    Join,
    Over,
    Project,
    Relation,
    Scan,
    SetOperation,
    Sort,
    StreamScan,
    Watermark,
)
from penstock.table.logical.optimised_nodes import Calc, Deduplicate, TopN
from penstock.table.logical.rex import Call, InputRef, Rex
from penstock.table.rules.join_conditions import join_keys
from penstock.table.rules.window_columns import END, START, window_bounds
from penstock.table.types import data_types as t

Key = frozenset[int]
_WHOLE = (t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType)
_TEXT = (t.CharType, t.VarCharType)


def smallest_key(relation: Relation) -> tuple[int, ...] | None:
    """Return the key with the fewest columns, and among them the first columns, or None if there is no key."""
    found = [tuple(sorted(key)) for key in upsert_keys(relation)]
    return min(found, key=lambda key: (len(key), key), default=None)


def upsert_keys(relation: Relation) -> list[Key]:
    """Return sets of columns, each of which is a key. The list is empty if nothing is known."""
    return list(dict.fromkeys(_keys(relation)))


def _keys(relation: Relation) -> Iterable[Key]:
    match relation:
        case Scan() | StreamScan():
            return _of_source(relation)
        case Watermark(input=below) | Filter(input=below):
            return upsert_keys(below)
        case Calc(input=below, exprs=exprs) | Project(input=below, exprs=exprs):
            return _project_keys(upsert_keys(below), exprs)
        case Expand():
            kept = [key for key in upsert_keys(relation.input) if not key & set(relation.keys)]
            return [key | {len(relation.columns) - 1} for key in kept]
        case Aggregate():
            return _of_aggregate(relation)
        case Deduplicate(partition=partition):
            return [frozenset(partition)]
        case TopN():
            return _of_top_n(relation)
        case Sort(input=below):
            return _containing(upsert_keys(below), {key.index for key in relation.keys})
        case Over(input=below):
            parts = {column for window in relation.windows for column in window.partition}
            return _containing(upsert_keys(below), parts)
        case Join():
            return _of_join(relation)
        case SetOperation() if not relation.all:
            return [frozenset(range(len(relation.columns)))]
    return []


def _containing(keys: Iterable[Key], columns: Iterable[int]) -> list[Key]:
    wanted = frozenset(columns)
    return [key for key in keys if key >= wanted]


def _of_source(relation: Scan | StreamScan) -> list[Key]:
    if isinstance(relation, StreamScan):
        key = relation.primary_key or relation.upsert_key
        return [frozenset(key)] if key else []
    names, declared = relation.names(), relation.table.schema.primary_key
    return [frozenset(map(names.index, declared))] if declared and set(declared) <= set(names) else []


def _project_keys(keys: Sequence[Key], exprs: Sequence[Rex]) -> list[Key]:
    """Return the keys whose columns all remain. A column that occurs several times gives several keys."""
    places: dict[int, list[int]] = {}
    for place, expr in enumerate(exprs):
        column = same_column(expr)
        if column is not None:
            places.setdefault(column, []).append(place)
    return [frozenset(chosen) for key in keys if key <= set(places) for chosen in product(*(places[c] for c in key))]


def same_column(expr: Rex) -> int | None:
    """Return the column that an expression equals, or converts without making different values equal.

    Return None otherwise.
    """
    while isinstance(expr, Call) and expr.function == "CAST":
        expr, kind = expr.args[0], expr.type
        if isinstance(expr, Call) and expr.function == "CAST" and _goes_back(expr, kind):
            expr = expr.args[0]
        elif not _keeps_apart(expr.type, kind):
            return None
    return expr.index if isinstance(expr, InputRef) else None


def _goes_back(cast: Call, kind: t.DataType) -> bool:
    """Return True if a second cast restores the value from before the first one."""
    before = cast.args[0].type
    return before.nullable() == kind.nullable() and _keeps_apart(before, cast.type)


def _keeps_apart(one: t.DataType, other: t.DataType) -> bool:
    """Return True if a cast never makes two values equal."""
    if one.nullable() == other.nullable():
        return True
    if isinstance(one, _WHOLE) and isinstance(other, _WHOLE):
        return _WHOLE.index(type(one)) <= _WHOLE.index(type(other))
    if isinstance(one, _TEXT) and isinstance(other, t.VarCharType):
        return other.length >= one.length
    return isinstance(one, _WHOLE) and isinstance(other, t.VarCharType) and other.length >= 20


def _of_aggregate(relation: Aggregate) -> list[Key]:
    """Return the keys of groups. For a window, either bound is enough."""
    every = range(len(relation.keys))
    windows = window_bounds(relation.input)
    roles = {} if windows is None else dict(windows.roles)
    bounds = {place: roles[relation.keys[place]] for place in every if relation.keys[place] in roles}
    if not {START, END} <= set(bounds.values()):
        return [frozenset(every)]
    plain = frozenset(every) - set(bounds)
    return [plain | {bound} for bound in bounds]


def _of_top_n(relation: TopN) -> list[Key]:
    own = _containing(upsert_keys(relation.input), relation.partition)
    if relation.first == relation.last and relation.function == "ROW_NUMBER":
        return [frozenset(relation.partition), *own]
    if relation.rank_column and relation.function == "ROW_NUMBER":
        return [frozenset((*relation.partition, len(relation.columns) - 1)), *own]
    return own


def _of_join(relation: Join) -> list[Key]:
    keys = join_keys(relation)
    left, right = upsert_keys(relation.left), upsert_keys(relation.right)
    left_unique = any(key <= set(keys.left) for key in left)
    right_unique = any(key <= set(keys.right) for key in right)
    if not _looks_up(relation):
        left, right = _containing(left, keys.left), _containing(right, keys.right)
    if relation.kind in {JoinKind.SEMI, JoinKind.ANTI}:
        return left
    width = len(relation.left.columns)
    moved = [frozenset(column + width for column in key) for key in right]
    found = [one | other for one in left for other in moved]
    if relation.kind == JoinKind.FULL:
        found = [key for key in found if _is_never_null(relation, key)]
    if right_unique and relation.kind in {JoinKind.INNER, JoinKind.LEFT}:
        found += left
    if left_unique and relation.kind in {JoinKind.INNER, JoinKind.RIGHT}:
        found += moved
    return found


def _is_never_null(relation: Join, key: Key) -> bool:
    """Return True if a column of a key is NOT NULL in its input.

    Rows without a match on either side could all have NULL as their key otherwise.
    """
    inputs = (*relation.left.columns, *relation.right.columns)
    return any(not inputs[column].type.is_nullable for column in key)


def _looks_up(relation: Join) -> bool:
    """Return True if rows look up an external system, and are not partitioned."""
    return relation.temporal is not None and relation.left.columns[relation.temporal].time == PROCTIME
