"""Functions of OVER windows that depend on the position of a row: ranks, LAG, LEAD and others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.table.logical.nodes import Columns
from penstock.table.logical.rex import AggregateCall
from penstock.table.operators.aggregate.functions.fold import Fold
from penstock.table.operators.aggregate.functions.fold_choice import fold_for

Places = Sequence[Any]


def over_folds(calls: Sequence[AggregateCall], columns: Columns, leaving: bool = True) -> list[Fold]:
    """Return the folds of an OVER window.

    `leaving` is True if rows leave its frames, so that folds must remove them.
    """
    return [_fold(call, columns, leaving) for call in calls]


def _fold(call: AggregateCall, columns: Columns, leaving: bool) -> Fold:
    types = [columns[index].type for index in call.args]
    if call.function in {"LAG", "LEAD"}:
        return Lag(call, types)
    if call.function in _RANKS:
        return RowNumber(call, types)
    return fold_for(call, types, signed=leaving or call.function not in _WITH_VALUES)


_WITH_VALUES = {"MIN", "MAX", "FIRST_VALUE", "LAST_VALUE"}
"""Functions that keep all values if rows may leave the frame, and one value otherwise."""


class RowNumber(Fold):
    """ROW_NUMBER: the number of rows that have come, in order."""

    def new(self) -> int:
        return 0

    def add(self, accumulator: int, args: tuple[Any, ...], sign: int) -> int:
        return accumulator + 1 if sign > 0 else accumulator

    def value(self, accumulator: int) -> int:
        return accumulator


class Lag(Fold):
    """LAG: the value some rows before. The accumulator has the last values, including the current one."""

    @property
    def offset(self) -> int:
        """Return the number of rows between the current row and the value."""
        return int(self.call.literals[0]) if self.call.literals else 1

    @property
    def default(self) -> Any:
        """Return the value for rows that have too few rows before them."""
        return self.call.literals[1] if len(self.call.literals) > 1 else None

    def new(self) -> list[Any]:
        return []

    def add(self, accumulator: list[Any], args: tuple[Any, ...], sign: int) -> list[Any]:
        return [*accumulator, args[0]][-self.offset - 1 :] if sign > 0 else accumulator

    def value(self, accumulator: list[Any]) -> Any:
        return accumulator[0] if len(accumulator) > self.offset else self.default


# --- all rows of a partition at once ---
def ranks_of(call: AggregateCall, places: Places, args: Sequence[Any], first: str) -> list[Any] | None:
    """Return the values of a function that needs the whole partition, in order, or None for an aggregate over frames.

    `places` are the sort values of the rows, `args` the arguments of the call, `first` the first function of the
    window.
    """
    if call.function == first == "CUME_DIST":
        return _cume_dist_of_peers(places)
    if call.function in {"LAG", "LEAD"}:
        return _shift_values(call, args)
    compute = _RANKS.get(call.function)
    return None if compute is None else compute(call, places)


def _shift_values(call: AggregateCall, args: Sequence[Any]) -> list[Any]:
    offset = int(call.literals[0]) if call.literals else 1
    default = call.literals[1] if len(call.literals) > 1 else None
    step = -offset if call.function == "LAG" else offset
    return [args[index + step][0] if 0 <= index + step < len(args) else default for index in range(len(args))]


def _row_number(call: AggregateCall, places: Places) -> list[Any]:
    return list(range(1, len(places) + 1))


def _rank(call: AggregateCall, places: Places) -> list[Any]:
    ranks: list[int] = []
    for index, place in enumerate(places):
        ranks.append(ranks[-1] if index and place == places[index - 1] else index + 1)
    return ranks


def _dense_rank(call: AggregateCall, places: Places) -> list[Any]:
    ranks: list[int] = []
    for index, place in enumerate(places):
        same = index and place == places[index - 1]
        ranks.append(ranks[-1] if same else (ranks[-1] if ranks else 0) + 1)
    return ranks


def _percent_rank(call: AggregateCall, places: Places) -> list[Any]:
    count = len(places)
    return [0.0 if count == 1 else (rank - 1) / (count - 1) for rank in _rank(call, places)]


def _cume_dist_of_peers(places: Places) -> list[Any]:
    ends = {place: index + 1 for index, place in enumerate(places)}
    return [ends[place] / len(places) for place in places]


def _cume_dist(call: AggregateCall, places: Places) -> list[Any]:
    """Return the share of rows up to each row.

    Equal rows share a value only if CUME_DIST comes first in the window, as in Flink.
    """
    return [(index + 1) / len(places) for index in range(len(places))]


def _ntile(call: AggregateCall, places: Places) -> list[Any]:
    tiles, count = int(call.literals[0]), len(places)
    size, larger = divmod(count, tiles)
    border = larger * (size + 1)
    return [
        index // (size + 1) + 1 if index < border else larger + (index - border) // max(size, 1) + 1
        for index in range(count)
    ]


_RANKS: dict[str, Callable[[AggregateCall, Places], list[Any]]] = {
    "ROW_NUMBER": _row_number,
    "RANK": _rank,
    "DENSE_RANK": _dense_rank,
    "PERCENT_RANK": _percent_rank,
    "CUME_DIST": _cume_dist,
    "NTILE": _ntile,
}
