"""Which columns of a relation are the bounds of windows, so that operators above can wait for the windows to end."""

from __future__ import annotations

from dataclasses import dataclass

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
from penstock.table.logical.rex import InputRef
from penstock.table.physical.physical_nodes import Calc, Deduplicate, TopN
from penstock.table.types.data_types import LocalZonedTimestampType

START, END, TIME = "start", "end", "time"


@dataclass(frozen=True)
class Windowed:
    """The bounds among the columns of a relation: position and role."""

    roles: tuple[tuple[int, str], ...]
    spec: tuple[str, int, int, int]
    """Kind, size, slide and offset."""
    processing_time: bool = False
    shifted: bool = False
    """Whether bounds are times of the session's clock."""

    def of(self, role: str) -> int | None:
        """The position of a bound."""
        return next((position for position, own in self.roles if own == role), None)

    def move(self, positions: dict[int, int]) -> Windowed | None:
        """The same after columns have moved; None if no window can be told from what is left."""
        roles = tuple((positions[position], role) for position, role in self.roles if position in positions)
        return Windowed(roles, self.spec, self.processing_time, self.shifted) if roles else None


def window_bounds(relation: Relation) -> Windowed | None:
    """The window bounds among the columns of a relation."""
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
    """Of a window join, both sides have the same windows; of an outer one, only the side that is always there."""
    left, right = window_bounds(relation.left), window_bounds(relation.right)
    if left is None or right is None or left.spec != right.spec:
        return None
    return None if relation.kind in {"RIGHT", "FULL"} else left
