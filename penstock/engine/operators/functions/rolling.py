"""Rolling aggregation on keyed streams: reduce, and sum, min, max, min_by, max_by as reduce functions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from penstock.api.functions.element_functions import Function
from penstock.api.functions.key_selectors import tuple_position
from penstock.api.state.descriptors import ValueStateDescriptor
from penstock.common.types import Row, make_row
from penstock.engine.operators.function_operator import FunctionOperator
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import MAX_TIMESTAMP, Chunk, Timestamps, Values
from penstock.engine.records.failures import USER_ERRORS
from penstock.engine.state.key_groups import short_repr
from penstock.errors import RecordError

_ABSENT = object()


class ReduceOperator(FunctionOperator):
    """Folds each record into the value of its key and emits the value.

    BATCH mode emits only the last value of a key.
    """

    method = "reduce"

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        assert self.key_selector is not None
        self.table = self.keyed.table(ValueStateDescriptor("_reduce_state"))
        # Only a function object can hold state of its own. For a lambda the operator sets no current key.
        has_state = isinstance(self.function, Function)
        self._key_of = self.keyed.scope.entering(self.key_selector) if has_state else self.key_selector

    def chunk(self, chunk: Chunk) -> None:
        """Fold a chunk. Built-in aggregations take columns as they are, where possible."""
        rolled = None if chunk.columns is None else self._fold_columns(chunk.columns)
        if rolled is None:
            self.records(chunk.values, chunk.timestamps)
        else:
            self.emit_chunk(Chunk.of(rolled))

    def _fold_columns(self, columns: Columns) -> Columns | None:
        if not isinstance(self.function, Accumulate | Choose) or self.context.batch:
            return None
        from penstock.engine.operators.functions import column_folds as folds

        assert self.key_selector is not None
        keys = folds.distinct_keys(columns, self.key_selector)
        if keys is None:
            return None
        entries, mark = self.table.entries, self.table.changed.add
        groups, held = folds.Groups.of(keys.codes()), [entries.get(key, folds.ABSENT) for key in keys.distinct]
        try:
            rolled = folds.fold_rows(self.function, columns, groups, held)
        except USER_ERRORS:
            return None  # the rows tell which record it was
        if rolled is not None:
            for key, row in zip(keys.distinct, folds.rows_at(rolled, groups.last_rows()), strict=True):
                entries[key] = row
                mark(key)
        return rolled

    def records(self, values: Values, timestamps: Timestamps) -> None:
        feed = iter(values)
        try:
            reduced = self._fold(feed)
        except USER_ERRORS as error:
            raise self.failure(error, values, feed) from error
        if not self.context.batch:
            self.emit(reduced, timestamps)

    def _fold(self, feed: Any) -> Values:
        entries, mark, key_of, reduce = self.table.entries, self.table.changed.add, self._key_of, self.call()
        reduced = []
        for value in feed:
            key = key_of(value)
            held = entries.get(key, _ABSENT)
            if held is not _ABSENT:
                value = reduce(held, value)
            entries[key] = value
            mark(key)
            reduced.append(value)
        return reduced

    def finish_key(self, key: Any) -> None:
        """Emit the value of a key that is complete in BATCH mode."""
        self.emit([self.table.entries[key]], [MAX_TIMESTAMP])
        super().finish_key(key)


@dataclasses.dataclass(frozen=True)
class Field:
    """A field of a record: a position or name in a tuple, list, row, dict or dataclass, or the record itself."""

    position: int | str

    def _position_in(self, record: Any) -> Any:
        """Return the position in a plain tuple or list. A name may be as in Scala ('_1') or Java ('f0')."""
        if isinstance(self.position, str) and type(record) in (tuple, list):
            return tuple_position(self.position)
        return self.position

    def get(self, record: Any) -> Any:
        """Return the value of the field in a record."""
        if isinstance(record, (tuple, list, Row, dict)):
            return self._item(record)
        if isinstance(self.position, str) and hasattr(record, self.position):
            return getattr(record, self.position)
        if dataclasses.is_dataclass(record) and isinstance(self.position, int):
            return getattr(record, dataclasses.fields(record)[self.position].name)
        if self.position == 0:
            return record
        raise RecordError(f"{short_repr(record)} has no field {self.position!r}")

    def _item(self, record: Any) -> Any:
        try:
            if isinstance(self.position, str) and hasattr(record, "_replace"):
                return getattr(record, self.position)
            return record[self._position_in(record)]
        except (IndexError, KeyError, TypeError, AttributeError, ValueError):
            raise RecordError(f"{short_repr(record)} has no field {self.position!r}") from None

    def with_value(self, record: Any, value: Any) -> Any:
        """Return a copy of the record with another value in this field."""
        position = self._position_in(record)
        if isinstance(record, tuple):
            if hasattr(record, "_replace"):
                name = position if isinstance(position, str) else record._fields[position]  # type: ignore[attr-defined]
                return record._replace(**{name: value})
            assert isinstance(position, int)
            return (*record[:position], value, *record[position:][1:])
        if isinstance(record, Row):
            return _with_field(record, position, value)
        if isinstance(record, (list, dict)):
            copy: Any = record.copy()
            copy[position] = value
            return copy
        if dataclasses.is_dataclass(record) and not isinstance(record, type):
            name = position if isinstance(position, str) else dataclasses.fields(record)[position].name
            return dataclasses.replace(record, **{name: value})
        return value


def _with_field(row: Row, position: int | str, value: Any) -> Row:
    values = list(row)
    values[position if isinstance(position, int) else row._position(position)] = value
    return make_row(row._names, tuple(values), row._kind)


@dataclasses.dataclass(frozen=True)
class Accumulate:
    """The function of sum, min and max over a field. The other fields keep the values of the key's first record."""

    field: Field
    combine: Callable[[Any, Any], Any]

    def __call__(self, held: Any, value: Any) -> Any:
        return self.field.with_value(held, self.combine(self.field.get(held), self.field.get(value)))


@dataclasses.dataclass(frozen=True)
class Choose:
    """The function of min_by and max_by: the whole record with the extreme value.

    Of equal ones it keeps the first, or the last if `first` is False.
    """

    field: Field
    largest: bool
    first: bool = True

    def __call__(self, held: Any, value: Any) -> Any:
        old, new = self.field.get(held), self.field.get(value)
        if old == new:
            return held if self.first else value
        return value if (new > old) is self.largest else held


def add(left: Any, right: Any) -> Any:
    """Add two values. This is the combine function of sum."""
    return left + right
