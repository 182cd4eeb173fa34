"""The parts of a join condition: equal keys, bounds on time, and the rest."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from penstock.table.functions import constant, resolve
from penstock.table.logical.building import identity, project
from penstock.table.logical.kinds import JoinKind
from penstock.table.logical.nodes import ROWTIME, Join, Project, Relation
from penstock.table.logical.rex import Call, InputRef, Literal, Rex, conjunction, conjuncts, refs, rewritten, shift_refs
from penstock.table.types.data_types import DayTimeIntervalType

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass
class JoinKeys:
    """The parts of a condition. Positions on the right count from the first column of the right side."""

    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    null_safe: list[bool] = field(default_factory=list)
    """For each pair of keys, True if NULL equals NULL."""
    rest: list[Rex] = field(default_factory=list)

    def residual(self) -> Rex | None:
        """Return the condition on rows with equal keys, or None."""
        return conjunction(self.rest)


def join_keys(join: Join) -> JoinKeys:
    """Return the keys of a join, and the remaining condition on rows with equal keys."""
    found, width = JoinKeys(), len(join.left.columns)
    if join.null_aware and _can_be_null(join):
        assert join.condition is not None
        found.rest = [resolve("IS NOT FALSE", (join.condition,))]
        return found
    for part in conjuncts(join.condition):
        pair = _equal_columns(part, width)
        if pair is None:
            found.rest.append(part)
        else:
            found.left.append(pair[0])
            found.right.append(pair[1] - width)
            found.null_safe.append(isinstance(part, Call) and part.function == "IS NOT DISTINCT FROM")
    return found


def _can_be_null(join: Join) -> bool:
    return any(
        arg.type.is_nullable for part in conjuncts(join.condition) if isinstance(part, Call) for arg in part.args
    )


def _equal_columns(part: Rex, width: int) -> tuple[int, int] | None:
    if not isinstance(part, Call) or part.function not in {"=", "IS NOT DISTINCT FROM"} or len(part.args) != 2:
        return None
    one, other = part.args
    if not isinstance(one, InputRef) or not isinstance(other, InputRef):
        return None
    low, high = sorted((one.index, other.index))
    return (low, high) if low < width <= high else None


# --- keys that are expressions ---
def with_computed_keys(join: Join) -> Relation:
    """Return a join whose sides compute the keys that are expressions, so that rows can be partitioned by them."""
    width, extra = len(join.left.columns), ([], [])  # type: tuple[int, tuple[list[Rex], list[Rex]]]
    parts: list[Rex] = []
    for part in conjuncts(join.condition):
        sides = _sides_of(part, width)
        if sides is None or join.null_aware or not _is_computable(part, sides, join):
            parts.append(part)
        else:
            assert isinstance(part, Call)
            placed = [_place(rex, side, join, extra) for rex, side in zip(part.args, sides, strict=True)]
            parts.append(replace(part, args=tuple(placed)))
    if not extra[0] and not extra[1]:
        return join
    left, right = _widen(join.left, extra[0]), _widen(join.right, [shift_refs(rex, -width) for rex in extra[1]])
    return _narrow(join, left, right, [_move(part, width, len(extra[0])) for part in parts])


class _Placed(InputRef):
    """A computed key. Its index counts from 0 on its side, after the columns."""


def _sides_of(part: Rex, width: int) -> tuple[int, int] | None:
    """Return the sides of an equality between the two sides, one of which is an expression. Return None otherwise."""
    if not isinstance(part, Call) or part.function not in {"=", "IS NOT DISTINCT FROM"} or len(part.args) != 2:
        return None
    if all(isinstance(arg, InputRef) for arg in part.args):
        return None
    sides = []
    for arg in part.args:
        used = refs(arg)
        if not used or (min(used) < width <= max(used)):
            return None
        sides.append(0 if max(used) < width else 1)
    return (sides[0], sides[1]) if sides[0] != sides[1] else None


def _is_computable(part: Rex, sides: tuple[int, int], join: Join) -> bool:
    """Return True if keys may be computed. Keys of versions and of lookups must be columns."""
    if join.temporal is None:
        return True
    assert isinstance(part, Call)
    return is_rowtime(join.left, join.temporal) and isinstance(part.args[sides.index(1)], InputRef)


def _place(rex: Rex, side: int, join: Join, extra: tuple[list[Rex], list[Rex]]) -> Rex:
    if isinstance(rex, InputRef):
        return rex
    extra[side].append(rex)
    width = len(join.left.columns), len(join.right.columns)
    return _Placed(rex.type, width[side] + len(extra[side]) - 1 + (width[0] << 32 if side else 0))


def _move(rex: Rex, width: int, more: int) -> Rex:
    """Return a condition of the widened join. Columns of the right follow the computed keys of the left."""

    def move(one: Rex) -> Rex | None:
        if isinstance(one, _Placed):
            right = one.index >= 1 << 32
            index = one.index % (1 << 32)
            return InputRef(one.type, width + more + index if right else index)
        if isinstance(one, InputRef) and one.index >= width:
            return InputRef(one.type, one.index + more)
        return None

    return rewritten(rex, move)


def _widen(side: Relation, extra: list[Rex]) -> Relation:
    if not extra:
        return side
    names = [*side.names(), *(f"$key{number}" for number in range(len(extra)))]
    return project(side, [*identity(side), *extra], names)


def _narrow(join: Join, left: Relation, right: Relation, parts: list[Rex]) -> Relation:
    only_left = join.kind in {JoinKind.SEMI, JoinKind.ANTI}
    width, count = len(join.left.columns), len(join.columns)
    columns = join.columns[:width] + left.columns[width:]
    if not only_left:
        columns += join.columns[width:] + right.columns[len(join.right.columns) :]
    wide = replace(join, columns=columns, left=left, right=right, condition=conjunction(parts))
    kept = [*range(width), *([] if only_left else range(len(left.columns), len(left.columns) + count - width))]
    return Project(join.columns, wide, tuple(wide.ref(index) for index in kept))


# --- bounds on time ---
@dataclass(frozen=True)
class TimeBounds:
    """The bounds of an interval join: the right time is from the left time plus `lower` to the left time plus `upper`.

    Bounds are in milliseconds.
    """

    left: int
    right: int
    """Positions of the times on their sides."""
    lower: int
    upper: int


def time_bounds(join: Join, rest: list[Rex]) -> tuple[TimeBounds, list[Rex]] | None:
    """Return the bounds in conditions, and the remaining conditions, or None unless time is bounded on both sides."""
    width = len(join.left.columns)
    times = {index for index, column in enumerate(join.left.columns + join.right.columns) if column.time is not None}
    lower: int | None = None
    upper: int | None = None
    pair: tuple[int, int] | None = None
    left_over: list[Rex] = []
    for part in [one for condition in rest for one in _comparisons(condition)]:
        bound = _time_bound(part, width, times)
        if bound is None or (pair is not None and bound[0] != pair):
            left_over.append(part)
            continue
        pair, low, high = bound
        lower = low if lower is None else lower if low is None else max(lower, low)
        upper = high if upper is None else upper if high is None else min(upper, high)
    if pair is None or lower is None or upper is None:
        return None
    return TimeBounds(pair[0], pair[1] - width, lower, upper), left_over


def _comparisons(rex: Rex) -> list[Rex]:
    if isinstance(rex, Call) and rex.function == "BETWEEN" and len(rex.args) == 3:
        value, low, high = rex.args
        return [replace(rex, function=">=", args=(value, low)), replace(rex, function="<=", args=(value, high))]
    return [rex]


def _time_bound(rex: Rex, width: int, times: set[int]) -> tuple[tuple[int, int], int | None, int | None] | None:
    """Return the bound of a comparison on (right - left) as ((left, right), lower, upper), or None.

    `left` and `right` are the positions of the times.
    """
    if not isinstance(rex, Call) or rex.function not in _MIRRORED or len(rex.args) != 2:
        return None
    one, other = _linear(rex.args[0]), _linear(rex.args[1])
    if one is None or other is None or not {one[0], other[0]} <= times:
        return None
    operator, (first, plus), (second, more) = rex.function, one, other
    if first < width <= second:
        first, plus, second, more, operator = second, more, first, plus, _MIRRORED[operator]
    if not second < width <= first:
        return None
    # right + plus <operator> left + more
    apart = more - plus
    pair = (second, first)
    match operator:
        case "<":
            return pair, None, apart - 1
        case "<=":
            return pair, None, apart
        case ">":
            return pair, apart + 1, None
        case ">=":
            return pair, apart, None
    return pair, apart, apart


def _linear(rex: Rex) -> tuple[int, int] | None:
    """Return a time column and the milliseconds added to it, or None for other expressions."""
    if isinstance(rex, InputRef):
        return rex.index, 0
    if not isinstance(rex, Call):
        return None
    if rex.function == "CAST":
        return _linear(rex.args[0])
    if rex.function in {"+", "-", "MOMENT +", "MOMENT -"} and len(rex.args) == 2:
        plus = rex.function.endswith("+")
        column, amount = _linear(rex.args[0]), _interval(rex.args[1])
        if column is None and plus:
            column, amount = _linear(rex.args[1]), _interval(rex.args[0])
        if column is not None and amount is not None:
            return column[0], column[1] + (amount if plus else -amount)
    return None


def _interval(rex: Rex) -> int | None:
    known: Literal | None = constant(rex)
    return known.value if known is not None and isinstance(known.type, DayTimeIntervalType) else None


def is_rowtime(relation: Relation, position: int) -> bool:
    """Return True if a column is an event-time attribute."""
    return relation.columns[position].time == ROWTIME
