"""Constraints of a table on the rows that are written into it: NOT NULL and the lengths of types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import RecordError
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import adds
from penstock.table.operators.base.table_operator import TableOperator
from penstock.table.operators.base.update_pairs import with_pairs_of_rows
from penstock.table.types import data_types as t

NOT_NULL = "table.exec.sink.not-null-enforcer"
LENGTHS = "table.exec.sink.type-length-enforcer"
NESTED = "table.exec.sink.nested-constraint-enforcer"
_TEXTS, _BYTES = (t.CharType, t.VarCharType), (t.BinaryType, t.VarBinaryType)


@dataclass(frozen=True)
class Rules:
    """The constraints that are enforced, and the way to enforce them."""

    drops: bool = False
    """True if a row with a NULL in a NOT NULL column is dropped. Otherwise it is an error."""
    lengths: str = "IGNORE"
    """IGNORE, TRIM_PAD or ERROR."""
    nested: str = "IGNORE"
    """The nested values that are checked: IGNORE, ROWS or ROWS_AND_COLLECTIONS."""

    def concern(self, kind: t.DataType) -> bool:
        """Return True if a value of this type can break a rule."""
        return not kind.is_nullable or self._fits(kind) or any(map(self.concern, self._parts(kind)))

    def _fits(self, kind: t.DataType) -> bool:
        sized = isinstance(kind, (*_TEXTS, *_BYTES)) and kind.length < t.LONGEST
        return sized and self.lengths != "IGNORE"

    def _parts(self, kind: t.DataType) -> Sequence[t.DataType]:
        match kind:
            case t.RowType() if self.nested != "IGNORE":
                return kind.field_types()
            case t.ArrayType() if self.nested == "ROWS_AND_COLLECTIONS":
                return [kind.element_type]
            case t.MapType() if self.nested == "ROWS_AND_COLLECTIONS":
                return [kind.key_type, kind.value_type]
        return ()


class ConstraintEnforcer(TableOperator):
    """Enforces the constraints of a table on the rows that are written into it.

    A retraction may have NULL in any column, because some sources know only the key of the row.
    """

    def __init__(self, kinds: Sequence[tuple[str, t.DataType]], form: OutputForm, changelog: bool, rules: Rules):
        super().__init__(form)
        self.kinds = tuple(kinds)
        self.changelog = changelog
        self.rules = rules

    def batch(self, batch: pa.RecordBatch) -> None:
        count = batch.num_rows
        added = adds(batch).to_numpy(zero_copy_only=False) if self.changelog else np.ones(count, bool)
        check = _Check(self.rules, added, np.zeros(count, bool))
        arrays = list(batch.columns)
        for index, (name, kind) in enumerate(self.kinds):
            if self.rules.concern(kind):
                place = _Place(np.arange(count), np.ones(count, bool), partial(_column_name, name))
                arrays[index] = check.enforce(arrays[index], kind, place)
        enforced = pa.RecordBatch.from_arrays(arrays, schema=batch.schema)
        if check.is_dropped.any():
            enforced = enforced.filter(pa.array(~check.is_dropped))
            if self.changelog:
                enforced = with_pairs_of_rows(enforced, np.flatnonzero(~check.is_dropped))
        self.send(enforced)


@dataclass(frozen=True)
class _Place:
    """The rows of a batch that the elements of an array belong to."""

    rows: npt.NDArray[np.int64]
    """For each element, the number of its row."""
    present: npt.NDArray[np.bool_]
    """For each element, False if it belongs to a nested row that is NULL itself."""
    name: Callable[[int], str]
    """A function from the position of an element in the array to its name."""


def _column_name(name: str, at: int) -> str:
    return name


def _field_name(place: _Place, name: str, at: int) -> str:
    return f"{place.name(at)}.{name}"


_Part = tuple[pa.Array, t.DataType, str]
"""The elements, keys or values of all rows, their type, and `key` or `value`."""


@dataclass
class _Check:
    """The constraints of one batch. `is_dropped` marks the rows that are dropped."""

    rules: Rules
    is_added: npt.NDArray[np.bool_]
    is_dropped: npt.NDArray[np.bool_]

    def enforce(self, array: pa.Array, kind: t.DataType, place: _Place) -> pa.Array:
        """Return the array with lengths that fit. A value that breaks a rule fails the job or drops its row."""
        if not kind.is_nullable and array.null_count:
            self._refuse_nulls(array, place)
        if self.rules._fits(kind):
            array = self._check_length(array, kind, place)
        if not any(map(self.rules.concern, self.rules._parts(kind))):
            return array
        match kind:
            case t.RowType():
                return self._check_row(array, kind, place)
            case t.ArrayType():
                self._check_elements(array, [(array.values, kind.element_type, "")], place)
            case t.MapType():
                parts = [(array.keys, kind.key_type, "key"), (array.items, kind.value_type, "value")]
                self._check_elements(array, parts, place)
        return array

    def _refuse_nulls(self, array: pa.Array, place: _Place) -> None:
        missing = array.is_null().to_numpy(zero_copy_only=False) & place.present & self.is_added[place.rows]
        if self.rules.drops:
            self.is_dropped[place.rows[missing]] = True
            return
        for position in np.flatnonzero(missing)[:1]:
            raise RecordError(
                f"column '{place.name(int(position))}' is NOT NULL, but the row to write has a NULL there; with "
                f"'{NOT_NULL}' = 'DROP' such rows are dropped"
            )

    # --- lengths ---
    def _check_length(self, array: pa.Array, kind: t.DataType, place: _Place) -> pa.Array:
        assert isinstance(kind, (t.CharType, t.VarCharType, t.BinaryType, t.VarBinaryType))
        lengths = pc.fill_null(pc.utf8_length(array) if isinstance(kind, _TEXTS) else pc.binary_length(array), 0)
        found = lengths.to_numpy(zero_copy_only=False)
        wrong = found != kind.length if isinstance(kind, t.CharType | t.BinaryType) else found > kind.length
        wrong &= array.is_valid().to_numpy(zero_copy_only=False)
        if not wrong.any():
            return array
        if self.rules.lengths == "TRIM_PAD":
            return _fit_length(array, kind)
        for position in np.flatnonzero(wrong & place.present & self.is_added[place.rows])[:1]:
            raise RecordError(
                f"column '{place.name(int(position))}' is {kind.summary()}, but the value to write has the length "
                f"{found[position]}; '{LENGTHS}' = 'TRIM_PAD' cuts and pads values, 'IGNORE' writes them as they are"
            )
        return array

    # --- nested values ---
    def _check_row(self, array: pa.StructArray, kind: t.RowType, place: _Place) -> pa.Array:
        inside = place.present & array.is_valid().to_numpy(zero_copy_only=False)
        parts = []
        for index, field in enumerate(kind.fields):
            there = _Place(place.rows, inside, partial(_field_name, place, field.name))
            parts.append(self.enforce(array.field(index), field.data_type, there))
        return pa.StructArray.from_arrays(parts, fields=list(array.type), mask=array.is_null())

    def _check_elements(self, array: pa.Array, parts: Sequence[_Part], place: _Place) -> None:
        """Check the elements of arrays, or the keys and values of maps."""
        offsets = array.offsets.to_numpy()
        start, counts = int(offsets[0]), np.diff(offsets)
        owners = np.repeat(np.arange(len(array)), counts)
        present = (place.present & array.is_valid().to_numpy(zero_copy_only=False))[owners]

        def name(word: str, at: int) -> str:
            owner = int(owners[at])
            return f"{place.name(owner)}[{word or at + start - int(offsets[owner])}]"

        for values, kind, word in parts:
            there = _Place(place.rows[owners], present, partial(name, word))
            self.enforce(values.slice(start, len(owners)), kind, there)


def _fit_length(array: pa.Array, kind: t.CharType | t.VarCharType | t.BinaryType | t.VarBinaryType) -> pa.Array:
    """Truncate values to their length. Pad CHAR and BINARY to it."""
    if isinstance(kind, _TEXTS):
        cut = pc.utf8_slice_codeunits(array, 0, kind.length)
        return pc.utf8_rpad(cut, kind.length, " ") if isinstance(kind, t.CharType) else cut
    cut = pc.binary_slice(array, 0, kind.length)
    if not isinstance(kind, t.BinaryType):
        return cut
    return pa.array([value and value.ljust(kind.length, b"\0") for value in cut.to_pylist()], array.type)
