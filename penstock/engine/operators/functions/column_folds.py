"""The functions sum, min, max, min_by and max_by over columns.

Rows are grouped once for each chunk, and Python sees each group once. Results are those of the same functions on rows,
to the last digit. Where they might not be, the functions here return None, and the operator goes through the rows: for
a field that is no number or has gaps, for NaN and -0.0 (whose place depends on the order of records), and for sums that
no column of the field's type can hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from penstock.common.basic_types import DoubleTypeInfo, FloatTypeInfo, IntegerTypeInfo
from penstock.engine.operators.functions.rolling import Accumulate, Choose, add
from penstock.engine.records.columns import Columns, Keys
from penstock.errors import PenstockError
from penstock.formats.format_libraries import pyarrow

Numbers = Any
"""A numpy array of int64 or float64."""
Fold = Accumulate | Choose
_NUMBERS = (IntegerTypeInfo, FloatTypeInfo, DoubleTypeInfo)
ABSENT: Any = object()
"""Stands for the value of a key that has none yet."""
_SAFE = float(2**62)
"""The limit below which sums of whole numbers are exact."""


class Groups(NamedTuple):
    """Rows by group. Groups are numbered in the order of their first rows."""

    order: Any
    """The positions of all rows, group after group, each group in the order of rows."""
    starts: Any
    """The start of each group in `order`."""
    sizes: Any

    @classmethod
    def of(cls, codes: Any) -> Groups:
        """Group rows by the group number of each row."""
        sizes = np.bincount(codes)
        return cls(np.argsort(codes, kind="stable"), np.cumsum(sizes) - sizes, sizes)

    def first_rows(self) -> Any:
        """Return the position of the first row of each group."""
        return self.order[self.starts]

    def last_rows(self) -> Any:
        """Return the position of the last row of each group."""
        return self.order[self.starts + self.sizes - 1]

    def longer(self) -> list[tuple[int, int]]:
        """Return (begin, end) in `order` of each group with more than one row."""
        many = self.sizes > 1
        begins = self.starts[many]
        return list(zip(begins.tolist(), (begins + self.sizes[many]).tolist(), strict=True))


# --- what can be folded in columns ---
def distinct_keys(columns: Columns, selector: Callable[[Any], Any]) -> Keys | None:
    """Return the distinct keys of the rows.

    The result is None if the keys are not in columns, or if two of them are equal (0.0 and -0.0).
    """
    try:
        keys = columns.keys(selector)
        return keys if keys is not None and len(set(keys.distinct)) == len(keys.distinct) else None
    except (PenstockError, TypeError):
        return None


def numbers_in(columns: Columns, fold: Fold) -> Numbers | None:
    """Return the field of a fold as numbers, or None if its values must be looked at one by one."""
    index = columns.column_at(fold.field.position)
    if index is None or not _is_number(columns, index):
        return None
    column, types = columns.batch.column(index), pyarrow().types
    if column.null_count or (types.is_float32(column.type) and is_sum(fold)):
        return None
    if types.is_signed_integer(column.type):
        return column.to_numpy(zero_copy_only=False).astype(np.int64)
    numbers = column.to_numpy(zero_copy_only=False).astype(np.float64)
    return None if not is_sum(fold) and _strange(numbers) else numbers


def _strange(numbers: Numbers) -> bool:
    """Return True if a number is NaN or -0.0."""
    return bool((np.isnan(numbers) | ((numbers == 0) & np.signbit(numbers))).any())


def _is_number(columns: Columns, index: int) -> bool:
    types, kind, declared = pyarrow().types, columns.batch.schema.field(index).type, columns.row_type
    if declared is not None and not isinstance(declared.field_types[index], _NUMBERS):
        return False
    return bool(types.is_signed_integer(kind) or types.is_float32(kind) or types.is_float64(kind))


def is_sum(fold: Fold) -> bool:
    """Return True if the fold is a sum."""
    return isinstance(fold, Accumulate) and fold.combine is add


def numbers_of_groups(fold: Fold, held: Sequence[Any], numbers: Numbers) -> list[Any] | None:
    """Return the current number of each group, or ABSENT for a group without one.

    Return None if a number has an unexpected type.
    """
    wanted = int if numbers.dtype == np.int64 else float
    found = [ABSENT if one is ABSENT else fold.field.get(one) for one in held]
    there = [one for one in found if one is not ABSENT]
    if not all(type(one) is wanted for one in there):
        return None
    return None if wanted is float and not is_sum(fold) and _strange(np.array(there, np.float64)) else found


# --- one result for each group ---
def fold_groups(
    fold: Fold, columns: Columns, numbers: Numbers, groups: Groups, held: Sequence[Any]
) -> list[Any] | None:
    """Return the value of each group after its rows, or None if the rows must be looked at."""
    before = numbers_of_groups(fold, held, numbers)
    if before is None:
        return None
    if isinstance(fold, Choose):
        best = rows_at(columns, groups.order[_best(fold, numbers[groups.order], groups)])
        return [row if one is ABSENT else fold(one, row) for one, row in zip(held, best, strict=True)]
    after = _accumulate(fold, numbers[groups.order], groups, before)
    if after is None:
        return None
    new = [index for index, one in enumerate(held) if one is ABSENT]
    first, replaced, results = iter(rows_at(columns, groups.first_rows()[new])), fold.field.with_value, list[Any]()
    for one, number, size in zip(held, after, groups.sizes.tolist(), strict=True):
        base = next(first) if one is ABSENT else one
        results.append(base if one is ABSENT and size == 1 else replaced(base, number))
    return results


def rows_at(columns: Columns, positions: Any) -> list[Any]:
    """Return the rows at these positions as rows."""
    return columns.take(pyarrow().array(positions)).rows() if len(positions) else []


def _accumulate(fold: Accumulate, numbers: Numbers, groups: Groups, before: list[Any]) -> list[Any] | None:
    if not is_sum(fold):
        extreme = _EXTREMES[fold.combine].reduceat(numbers, groups.starts).tolist()
        return [new if old is ABSENT else fold.combine(old, new) for old, new in zip(before, extreme, strict=True)]
    if numbers.dtype == np.int64:
        if not _is_exact(numbers):
            return None
        sums = np.add.reduceat(numbers, groups.starts).tolist()
        return [new if old is ABSENT else old + new for old, new in zip(before, sums, strict=True)]
    running = _running(fold, numbers, groups, before)
    return None if running is None else running[groups.starts + groups.sizes - 1].tolist()


def _is_exact(numbers: Numbers) -> bool:
    return float(np.abs(numbers.astype(np.float64)).sum()) < _SAFE


def _best(fold: Choose, numbers: Numbers, groups: Groups) -> Any:
    """Return the position of the best row of each group in the order of groups."""
    extreme = (np.maximum if fold.largest else np.minimum).reduceat(numbers, groups.starts)
    best = np.flatnonzero(numbers == np.repeat(extreme, groups.sizes))
    number = np.searchsorted(groups.starts, best, side="right") - 1
    first = np.r_[True, number[1:] != number[:-1]]
    return best[first] if fold.first else best[np.r_[first[1:], True]]


# --- one result for each row ---
def _running(fold: Accumulate, numbers: Numbers, groups: Groups, before: list[Any]) -> Numbers | None:
    """Return, by row in the order of groups, the result of the group up to this row.

    Numbers are added in the order in which rows would add them.
    """
    ongoing = [index for index, old in enumerate(before) if old is not ABSENT]
    running, heads = numbers.copy(), groups.starts[ongoing]
    combine = np.add if is_sum(fold) else _EXTREMES[fold.combine]
    olds = [before[index] for index in ongoing]
    if running.dtype == np.int64:
        if is_sum(fold) and not (_is_exact(numbers) and all(abs(old) < _SAFE for old in olds)):
            return None
        if any(abs(old) >= 2 * _SAFE for old in olds):
            return None
    running[heads] = combine(np.array(olds, running.dtype), running[heads])
    for begin, end in groups.longer():
        combine.accumulate(running[begin:end], out=running[begin:end])
    return running


def fold_rows(fold: Fold, columns: Columns, groups: Groups, held: Sequence[Any]) -> Columns | None:
    """Return, by row, the value of the group after this row. The result is None if the rows must be looked at."""
    numbers = numbers_in(columns, fold)
    before = None if numbers is None else numbers_of_groups(fold, held, numbers)
    earlier = None if before is None else _as_columns([one for one in held if one is not ABSENT], columns)
    if numbers is None or before is None or earlier is None:
        return None
    known = np.array([one is not ABSENT for one in held])
    which = np.where(known, np.cumsum(known) - 1, -1)  # position of each group's value among the earlier rows
    sorted_numbers = numbers[groups.order]
    if isinstance(fold, Choose):
        source = _chosen(fold, sorted_numbers, groups, before, which, len(earlier))
        return None if source is None else _take_rows(columns, earlier, _in_row_order(source, groups))
    running = _running(fold, sorted_numbers, groups, before)
    if running is None:
        return None
    base = np.where(known, which, len(earlier) + groups.first_rows())
    result = _take_rows(columns, earlier, _in_row_order(np.repeat(base, groups.sizes), groups))
    return _with_field(result, fold.field.position, _in_row_order(running, groups))


def _chosen(fold: Choose, numbers: Numbers, groups: Groups, before: list[Any], earlier: Any, shift: int) -> Any | None:
    """Return, for each row, the number of the best row of its group up to this row.

    Rows are in the order of groups. Numbers count the earlier rows first, and then the rows of the batch.
    """
    extremes = _running(Accumulate(fold.field, max if fold.largest else min), numbers, groups, before)
    if extremes is None:
        return None
    previous = np.r_[numbers[:1], extremes[:-1]]
    ongoing = earlier >= 0
    previous[groups.starts[ongoing]] = [old for old in before if old is not ABSENT]
    beats = np.greater if fold.largest else np.less
    better = beats(numbers, previous) if fold.first else ~beats(previous, numbers)
    source = groups.order + shift
    heads = groups.starts[ongoing]
    source[heads] = np.where(better[heads], source[heads], earlier[ongoing])
    better[groups.starts] = True
    return source[np.maximum.accumulate(np.where(better, np.arange(len(numbers)), 0))]


_EXTREMES: dict[Any, Any] = {min: np.minimum, max: np.maximum}


def _in_row_order(by_group: Any, groups: Groups) -> Any:
    result = np.empty_like(by_group)
    result[groups.order] = by_group
    return result


def _as_columns(rows: list[Any], like: Columns) -> Columns | None:
    """Return rows from the state as columns of the same types, or None if they have other types."""
    arrow, schema = pyarrow(), like.batch.schema
    if not rows:
        return like.slice(0, 0)
    try:
        made = Columns.of_rows(rows, None, like.own_row_type())
        if not made.batch.schema.equals(schema):
            arrays = [column.cast(field.type) for column, field in zip(made.batch.columns, schema, strict=True)]
            made = Columns(arrow.RecordBatch.from_arrays(arrays, schema=schema))
    except (PenstockError, arrow.ArrowException, ValueError, TypeError):
        return None
    return made


def _take_rows(columns: Columns, earlier: Columns, positions: Any) -> Columns:
    """Return the rows at these positions among the earlier rows and then the columns.

    They get the timestamps of the columns.
    """
    arrow, schema, wanted = pyarrow(), columns.batch.schema, pyarrow().array(positions)
    pairs = zip(earlier.batch.columns, columns.batch.columns, strict=True)
    arrays = [arrow.concat_arrays([old, new]).take(wanted) for old, new in pairs]
    return Columns(arrow.RecordBatch.from_arrays(arrays, schema=schema), columns.times, columns.row_type)


def _with_field(columns: Columns, position: int | str, numbers: Numbers) -> Columns | None:
    """Return columns with other numbers in a field, or None if its type cannot hold them."""
    arrow, batch, index = pyarrow(), columns.batch, columns.column_at(position)
    assert index is not None
    field = batch.schema.field(index)
    try:
        column = arrow.array(numbers).cast(field.type)
    except arrow.ArrowException:
        return None
    if not np.array_equal(column.to_numpy(), numbers, equal_nan=True):
        return None
    arrays = [*batch.columns[:index], column, *batch.columns[index + 1 :]]
    return Columns(arrow.RecordBatch.from_arrays(arrays, schema=batch.schema), columns.times, columns.row_type)
