"""Filters move towards the sources, as far as the dropped rows make no difference above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.table.logical.kinds import JoinKind, WindowKind
from penstock.table.logical.nodes import (
    Aggregate,
    Correlate,
    Filter,
    Join,
    Over,
    Project,
    Relation,
    Scan,
    SetOperation,
    WindowTable,
)
from penstock.table.logical.rex import Call, InputRef, Rex, conjunction, conjuncts, refs, rewritten, shift_refs
from penstock.table.rules.calcs import is_plain


def with_filters_down(relation: Relation) -> Relation:
    """Return the same query with its filters as low as possible."""
    return _push(relation, [])


def _push(relation: Relation, conditions: list[Rex]) -> Relation:
    """Return a relation with conditions over its columns. Conditions move below it if they can."""
    match relation:
        case Filter():
            return _push(relation.input, [*conditions, *conjuncts(relation.condition)])
        case Project():
            return _through_project(relation, conditions)
        case SetOperation():
            down, stay = _split(conditions, is_plain)
            return _keep(relation.with_inputs([_push(part, down) for part in relation.parts]), stay)
        case Join():
            return _into_join(relation, conditions)
        case Aggregate() if relation.keys:
            mapping = dict(enumerate(relation.keys))
            return _onto_input(relation, relation.input, conditions, mapping)
        case WindowTable():
            kept = relation.partition if relation.kind == WindowKind.SESSION else range(len(relation.input.columns))
            return _onto_input(relation, relation.input, conditions, {index: index for index in kept})
        case Over():
            common = set.intersection(*(set(window.partition) for window in relation.windows))
            return _onto_input(relation, relation.input, conditions, {index: index for index in common})
        case Correlate():
            width = len(relation.input.columns)
            return _onto_input(relation, relation.input, conditions, {index: index for index in range(width)})
        case Scan():
            return _keep(_of_partitions(relation, conditions), conditions)
    below = relation.with_inputs([_push(part, []) for part in relation.inputs()]) if relation.inputs() else relation
    return _keep(below, conditions)


def _of_partitions(scan: Scan, conditions: Sequence[Rex]) -> Scan:
    """Tell a table which of its partitions are needed. The conditions also remain above it."""
    names = scan.names()
    keys = {names.index(key) for key in getattr(scan.table, "partition_keys", ()) if key in names}
    known = [one for one in conditions if is_plain(one) and refs(one) and refs(one) <= keys]
    return replace(scan, pruning=conjunction(known)) if known else scan


def _keep(relation: Relation, conditions: Sequence[Rex]) -> Relation:
    whole = conjunction(list(conditions))
    return relation if whole is None else Filter(relation.columns, relation, whole)


def _split(conditions: Sequence[Rex], goes: object) -> tuple[list[Rex], list[Rex]]:
    assert callable(goes)
    return [one for one in conditions if goes(one)], [one for one in conditions if not goes(one)]


def _onto_input(relation: Relation, input: Relation, conditions: list[Rex], mapping: dict[int, int]) -> Relation:
    """Move conditions below a relation if they read only columns that come unchanged from its input."""
    down, stay = _split(conditions, lambda one: is_plain(one) and bool(refs(one)) and refs(one) <= set(mapping))
    moved = [_move(one, mapping) for one in down]
    return _keep(relation.with_inputs([_push(input, moved)]), stay)


def _move(rex: Rex, mapping: dict[int, int]) -> Rex:
    return rewritten(rex, lambda one: InputRef(one.type, mapping[one.index]) if isinstance(one, InputRef) else None)


def _through_project(relation: Project, conditions: list[Rex]) -> Relation:
    """Move conditions below a projection, unless they read user functions or expressions whose value changes."""
    exprs = relation.exprs

    def goes(one: Rex) -> bool:
        return is_plain(one) and all(is_plain(exprs[index]) for index in refs(one))

    down, stay = _split(conditions, goes)
    inlined = [rewritten(one, lambda part: exprs[part.index] if isinstance(part, InputRef) else None) for one in down]
    return _keep(relation.with_inputs([_push(relation.input, inlined)]), stay)


# --- joins ---
def _into_join(join: Join, conditions: list[Rex]) -> Relation:
    width = len(join.left.columns)
    one_sided = join.kind in {JoinKind.SEMI, JoinKind.ANTI}
    left: list[Rex] = []
    right: list[Rex] = []
    own: list[Rex] = []
    above: list[Rex] = []
    for condition in conditions:
        side = 0 if one_sided else _side(condition, width)
        if side == 0 and join.kind in {JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI}:
            left.append(condition)
        elif side == 1 and join.kind in {JoinKind.INNER, JoinKind.RIGHT} and join.temporal is None:
            right.append(condition)
        elif _decides_pairs(condition, join):
            own.append(condition)
        else:
            above.append(condition)
    for condition in conjuncts(join.condition):
        side = None if join.null_aware or join.temporal is not None else _side(condition, width)
        if side == 0 and join.kind in {JoinKind.INNER, JoinKind.RIGHT, JoinKind.SEMI}:
            left.append(condition)
        elif side == 1 and join.kind in {JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI}:
            right.append(condition)
        else:
            own.append(condition)
    below = replace(
        join,
        left=_push(join.left, left),
        right=_push(join.right, [shift_refs(one, -width) for one in right]),
        condition=conjunction(own),
        version_key=None,
    )
    return _keep(below, above)


def _decides_pairs(condition: Rex, join: Join) -> bool:
    """Return True if a condition above a join can be a condition of the join."""
    allowed = join.temporal is None or _meets_key(condition, join)
    return join.kind == JoinKind.INNER and is_plain(condition) and allowed


def _meets_key(condition: Rex, join: Join) -> bool:
    """Return True if a condition makes the key of a temporal table function equal to a column of the left."""
    if join.version_key is None or not isinstance(condition, Call) or condition.function != "=":
        return False
    width = len(join.left.columns)
    key = width + join.version_key
    columns = sorted(arg.index for arg in condition.args if isinstance(arg, InputRef))
    return len(columns) == 2 and columns[0] < width and columns[1] == key


def _side(condition: Rex, width: int) -> int | None:
    """Return the only side whose columns a condition reads, or None if it reads both or none, or cannot be moved."""
    used = refs(condition)
    if not used or not is_plain(condition):
        return None
    if max(used) < width:
        return 0
    return 1 if min(used) >= width else None
