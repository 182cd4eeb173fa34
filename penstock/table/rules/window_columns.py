"""The columns of a relation that are bounds of windows. Operators above can wait until the windows end."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.table.logical.kinds import JoinKind, WindowKind
from penstock.table.logical.nodes import (
    PROCTIME,
    Aggregate,
    Expand,
    Filter,
    Join,
    Project,
    Relation,
    SetOperation,
    Sort,
    WindowTable,
)
from penstock.table.logical.optimised_nodes import Calc, Deduplicate, TopN
from penstock.table.logical.rex import InputRef
from penstock.table.types.data_types import LocalZonedTimestampType

START, END, TIME = "start", "end", "time"


@dataclass(frozen=True)
class Windowed:
    """The window bounds among the columns of a relation, with their positions and roles."""

    roles: tuple[tuple[int, str], ...]
    spec: tuple[WindowKind, int, int, int]
    """Kind, size, slide and offset."""
    processing_time: bool = False
    shifted: bool = False
    """True if bounds are times on the clock of the session's zone."""

    def of(self, role: str) -> int | None:
        """Return the position of a bound, or None."""
        return next((position for position, own in self.roles if own == role), None)

    def move(self, positions: dict[int, int]) -> Windowed | None:
        """Return the bounds at the new positions of their columns, or None if no bound remains."""
        roles = tuple((positions[position], role) for position, role in self.roles if position in positions)
        return Windowed(roles, self.spec, self.processing_time, self.shifted) if roles else None


def window_bounds(relation: Relation) -> Windowed | None:
    """Return the window bounds among the columns of a relation, or None."""
    match relation:
        case WindowTable():
            return _table(relation)
        case Calc() | Project():
            return _through(relation.input, dict(enumerate(relation.exprs)))
        case Filter() | Expand() | Sort() | TopN() | Deduplicate():
            return window_bounds(relation.input)
        case Aggregate():
            below = window_bounds(relation.input)
            return None if below is None else below.move({key: at for at, key in enumerate(relation.keys)})
        case Join():
            return _join(relation)
        case SetOperation():
            found = {window_bounds(part) for part in relation.parts}
            return found.pop() if len(found) == 1 else None
    return None


def _table(relation: WindowTable) -> Windowed:
    width = len(relation.input.columns)
    time = relation.input.columns[relation.time]
    roles = ((width, START), (width + 1, END), (width + 2, TIME))
    spec = (relation.kind, relation.size, relation.slide, relation.offset)
    return Windowed(roles, spec, time.time == PROCTIME, isinstance(time.type, LocalZonedTimestampType))


def _through(input: Relation, exprs: dict[int, object]) -> Windowed | None:
    below = window_bounds(input)
    if below is None:
        return None
    roles = dict(below.roles)
    found = tuple(
        (index, roles[expr.index])
        for index, expr in exprs.items()
        if isinstance(expr, InputRef) and expr.index in roles
    )
    return Windowed(found, below.spec, below.processing_time, below.shifted) if found else None


def _join(relation: Join) -> Windowed | None:
    """Return the bounds of a window join: both sides have the same windows.

    Only an inner or LEFT join keeps the left ones.
    """
    left, right = window_bounds(relation.left), window_bounds(relation.right)
    if left is None or right is None or left.spec != right.spec:
        return None
    return None if relation.kind in {JoinKind.RIGHT, JoinKind.FULL} else left
