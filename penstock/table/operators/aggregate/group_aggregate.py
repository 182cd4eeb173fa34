"""GROUP BY without windows. Every group has a row, which is updated as input arrives."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from operator import itemgetter, ne
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.api.functions.key_selectors import ColumnKeys
from penstock.engine.operators.operator import OperatorContext
from penstock.table.logical.rex import AggregateCall
from penstock.table.operators.aggregate.functions.fold import Fold, VectorFold
from penstock.table.operators.aggregate.functions.members import DistinctMembers, in_members
from penstock.table.operators.aggregate.functions.number_folds import Count
from penstock.table.operators.aggregate.local_aggregate import Groups, group_rows, regroup_parts, signs_of
from penstock.table.operators.base.folding_operator import FoldingOperator
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import (
    DELETE,
    INSERT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    column_of,
    inserts,
    make_batch,
)
from penstock.table.operators.base.query_state import store
from penstock.table.operators.base.table_operator import HoldingLocalOperator, HoldingTableOperator
from penstock.table.types.data_types import BigIntType

FEW = 32
"""Batches of at most this many rows are processed row by row.

Folding them would save little and hide intermediate changes.
"""


def with_counter(folds: Sequence[Fold], signed: bool) -> list[Fold]:
    """Return the folds. If rows can be retracted, the last fold counts the rows of a group."""
    counter = Count(AggregateCall("COUNT", (), BigIntType(False)), (), signed)
    return [*folds, counter] if signed else list(folds)


def one_by_one(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a small batch one by one, so that every change of a group is sent.

    Yield a large batch as it is.
    """
    if batch.num_rows > FEW:
        yield batch
    else:
        for index in range(batch.num_rows):
            yield batch.slice(index, 1)


class LocalAggregate(HoldingLocalOperator):
    """The first phase before the exchange. It sends the keys, then the parts of every fold."""

    def __init__(self, keys: Sequence[int], folds: Sequence[Fold], signed: bool, form: OutputForm) -> None:
        super().__init__(form)
        self.keys = ColumnKeys(tuple(keys))
        self.folds = with_counter(folds, signed)
        self.signed = signed

    def whole(self, batch: pa.RecordBatch) -> None:
        for part in one_by_one(batch):
            self._fold(part)

    def _fold(self, whole: pa.RecordBatch) -> None:
        found = group_rows(whole, self.keys, self.folds, signs_of(whole, self.signed), held=False)
        keys = [whole.column(position).take(found.firsts) for position in self.keys.positions]
        parts = [column.cast(field.type) for column, field in zip(found.columns, self._part_fields(), strict=True)]
        self.send(pa.RecordBatch.from_arrays([*keys, *parts], schema=self.schema))

    def _part_fields(self) -> list[pa.Field]:
        return [self.schema.field(index) for index in range(len(self.keys.positions), len(self.schema))]


def part_schema(keys: Sequence[pa.Field], folds: Sequence[Fold], signed: bool) -> pa.Schema:
    """Return the schema of the first phase's output: keys, then parts."""
    types = [kind for fold in with_counter(folds, signed) if isinstance(fold, VectorFold) for kind in fold.part_types()]
    return pa.schema([*keys, *(pa.field(f"part{index}", kind) for index, kind in enumerate(types))])


class GroupAggregate(FoldingOperator, HoldingTableOperator):
    """State of a key: its accumulators. Input is held back until the end of the epoch.

    The accumulators give the row that was sent last. BATCH mode sends the rows of all groups at the end, and one row if
    there are no keys. The values of DISTINCT have state of their own, see `DistinctMembers`.
    """

    def __init__(
        self,
        keys: Sequence[int],
        folds: Sequence[Fold],
        signed: bool,
        form: OutputForm,
        ttl: int = 0,
        parts_come: bool = False,
    ) -> None:
        """Create an operator. `parts_come` is True if the first phase runs before the exchange."""
        super().__init__(keys, form)
        self.results = in_members(folds)
        self.folds = with_counter(self.results, signed)
        self.signed = signed
        self.ttl = ttl
        self.parts_come = parts_come

    @property
    def key_positions(self) -> tuple[int, ...]:
        """Return the positions of the key columns in the input."""
        selector = self.key_selector
        assert isinstance(selector, ColumnKeys)
        return selector.positions

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._groups = store(self.keyed, "groups", self.ttl)
        self._members = [fold for fold in self.folds if isinstance(fold, DistinctMembers)]
        for members in self._members:
            members.open_state(self.keyed, self.ttl)

    # --- input ---
    def whole(self, batch: pa.RecordBatch) -> None:
        for part in [batch] if self.context.batch else one_by_one(batch):
            self._fold(part)

    def _fold(self, batch: pa.RecordBatch) -> None:
        found, rows = self._group(batch)
        entries = self._groups.get_all(found.keys)
        if rows is None and entries.count(None) == len(entries):
            self._begin(batch, found)
            return
        if not self.folds:
            self._begin_others(batch, found, entries)
            return
        before = self._accumulators(entries)
        tells = not self.context.batch
        old = self._old_values(before, entries) if tells else []
        now = fold_groups(self.folds, before, found, rows)
        self._groups.put_all(found.keys, list(zip(*now, strict=True)))
        gone = [count <= 0 for count in now[-1]] if self.signed else None
        if gone is not None:
            self._forget([key for key, over in zip(found.keys, gone, strict=True) if over])
        if tells:
            new = [fold.values(now[number]) for number, fold in enumerate(self.results)]
            self._tell(batch, found, Changes(entries, old, new, gone))

    def _forget(self, keys: Collection[Any]) -> None:
        """Remove the state of groups that have no rows any more."""
        self._groups.remove_all(keys)
        for fold in self._members:
            fold.forget(keys)

    def _group(self, batch: pa.RecordBatch) -> tuple[Groups, list[Any] | None]:
        if self.parts_come:
            vectors = [fold for fold in self.folds if isinstance(fold, VectorFold)]
            return regroup_parts(batch, len(self.key_positions), vectors), None
        assert isinstance(self.key_selector, ColumnKeys)
        signs = signs_of(batch, self.signed)
        found = group_rows(batch, self.key_selector, self.folds, signs)
        if self._members:
            of_rows = found.of_rows()
            for fold in self._members:
                found.parts[fold.number] = fold.turns(batch, of_rows, found.keys, signs)
        return found, None if found.positions is None else row_folds(self.folds, batch, signs)

    def _accumulators(self, entries: list[Any]) -> list[Sequence[Any]]:
        """Return the accumulators in state, as a column for each fold.

        Accumulators of a VectorFold are never changed in place.
        """
        if None not in entries:
            return [list(map(itemgetter(number), entries)) for number in range(len(self.folds))]
        columns: list[Sequence[Any]] = []
        for number, fold in enumerate(self.folds):
            if isinstance(fold, VectorFold):
                new = fold.new()
                columns.append([new if entry is None else entry[number] for entry in entries])
            else:
                columns.append([fold.new() if entry is None else entry[number] for entry in entries])
        return columns

    def _old_values(self, before: list[Sequence[Any]], entries: list[Any]) -> list[list[Any]]:
        """Return the values that were sent last, before accumulators change. A new group has None."""
        return [
            fold.values(before[number])
            if isinstance(fold, VectorFold)
            else [None if entry is None else fold.value(entry[number]) for entry in entries]
            for number, fold in enumerate(self.results)
        ]

    # --- groups that are all new ---
    def _begin(self, batch: pa.RecordBatch, found: Groups) -> None:
        """Process a batch whose groups are all new: the results of the first phase are the output."""
        count, columns, now = len(found.keys), list[Sequence[Any]](), list[Sequence[Any]]()
        feed = iter(found.columns)
        for fold, parts in zip(self.folds, found.parts, strict=True):
            assert isinstance(fold, VectorFold) and parts is not None
            now.append(fold.begin_all(parts, count))
            columns.append([next(feed) for _ in fold.functions()])
        keys, entries = found.keys, list(zip(*now, strict=True)) if now else [()] * count
        there = [index for index, total in enumerate(now[-1]) if total > 0] if self.signed else range(count)
        if len(there) < count:
            keys, entries = [keys[index] for index in there], [entries[index] for index in there]
            self._forget(set(found.keys).difference(keys))
        self._groups.put_all(keys, entries)
        if self.context.batch or not keys:
            return
        arrays = self._key_columns(batch, found.firsts)
        for fold, own, accumulators in zip(self.results, columns, now, strict=False):
            assert isinstance(fold, VectorFold)
            in_values = isinstance(fold, DistinctMembers)
            arrays.append(fold.column(fold.values(accumulators)) if in_values else fold.result(own))
        if len(there) < count:
            arrays = [array.take(pa.array(there)) for array in arrays]
        if self.changelog:
            arrays.append(inserts(len(keys)))
        self.send(pa.RecordBatch.from_arrays(arrays, schema=self.schema))

    def _begin_others(self, batch: pa.RecordBatch, found: Groups, entries: list[Any]) -> None:
        """Process SELECT DISTINCT.

        Known groups do not change. They are written again only to renew their time to live.
        """
        new = [index for index, entry in enumerate(entries) if entry is None]
        written = found.keys if self.ttl else [found.keys[index] for index in new]
        self._groups.put_all(written, [()] * len(written))
        if not self.context.batch:
            arrays = self._key_columns(batch, found.firsts.take(pa.array(new, pa.int64())))
            self.send(make_batch(arrays, self.schema, len(new)))

    def _key_columns(self, batch: pa.RecordBatch, positions: pa.Array) -> list[pa.Array]:
        wanted = range(len(self.key_positions)) if self.parts_come else self.key_positions
        return [batch.column(position).take(positions) for position in wanted]

    # --- output ---
    def _tell(self, batch: pa.RecordBatch, found: Groups, changes: Changes) -> None:
        rows, kinds = changes.rows_to_send()
        if not len(kinds):
            return
        arrays = self._key_columns(batch, found.firsts.take(pa.array(rows % len(found.keys))))
        picked = pa.array(rows)
        for fold, old, new in zip(self.results, changes.old, changes.new, strict=True):
            arrays.append(fold.column([*old, *new]).take(picked))
        if self.changelog:
            arrays.append(pa.array(kinds, pa.int8()))
        self.send(pa.RecordBatch.from_arrays(arrays, schema=self.schema))

    def at_end(self) -> None:
        super().at_end()
        if not self.context.batch:
            return
        groups = list(self._groups.items())
        if not groups and not self.key_positions:
            groups = [((), [fold.new() for fold in self.folds])]
        if groups:
            arrays = key_columns([key for key, _ in groups], list(self.schema)[: len(self.key_positions)])
            for number, fold in enumerate(self.results):
                arrays.append(fold.column(fold.values([entry[number] for _, entry in groups])))
            self.send(pa.RecordBatch.from_arrays(arrays, schema=self.schema))


class Changes:
    """The changes of some groups: old and new values by call, and flags for groups that are new or gone."""

    def __init__(self, entries: list[Any], old: list[list[Any]], new: list[list[Any]], gone: list[bool] | None) -> None:
        self.entries = entries
        self.old = old
        self.new = new
        self.gone = gone

    def rows_to_send(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return the rows to send, as positions in the old values followed by the new ones, and their kinds."""
        count = len(self.entries)
        fresh = np.fromiter((entry is None for entry in self.entries), bool, count)
        gone = np.zeros(count, bool) if self.gone is None else np.array(self.gone, bool)
        changed = np.zeros(count, bool)
        for old, new in zip(self.old, self.new, strict=True):
            changed |= np.fromiter(map(ne, old, new), bool, count)
        first = np.where(fresh | ~(changed | gone), -1, np.where(gone, DELETE, UPDATE_BEFORE))
        second = np.where(gone | ~(changed | fresh), -1, np.where(fresh, INSERT, UPDATE_AFTER))
        kinds = np.stack([first, second], axis=1).reshape(-1)
        rows = np.stack([np.arange(count), np.arange(count) + count], axis=1).reshape(-1)
        return rows[kinds >= 0], kinds[kinds >= 0]


def key_columns(keys: Sequence[Any], fields: Sequence[pa.Field]) -> list[pa.Array]:
    """Return keys as columns. A key of one column is not a tuple."""
    if len(fields) == 1:
        return [column_of(keys, fields[0].type)]
    by_column = list(zip(*keys, strict=True)) if keys else [()] * len(fields)
    return [column_of(values, field.type) for values, field in zip(by_column, fields, strict=False)]


def row_folds(folds: Sequence[Fold], batch: pa.RecordBatch, signs: pa.Array | None) -> list[Any]:
    """Return for each fold that sees rows their arguments, their signs and whether they count."""
    ones = [1] * batch.num_rows if signs is None else signs.to_pylist()
    return [None if isinstance(fold, VectorFold) else (fold.rows(batch), ones, fold.chosen(batch)) for fold in folds]


def fold_groups(
    folds: Sequence[Fold], before: Sequence[Sequence[Any]], found: Groups, rows: list[Any] | None
) -> list[list[Any]]:
    """Fold groups of rows into accumulators. Both `before` and the result are a list for each fold."""
    now = []
    for number, fold in enumerate(folds):
        parts = found.parts[number]
        if parts is not None:
            assert isinstance(fold, VectorFold)
            now.append(fold.fold_all(before[number], parts))
        else:
            assert rows is not None and found.positions is not None
            groups = zip(before[number], found.positions, strict=True)
            now.append([fold_rows(fold, own, rows[number], positions) for own, positions in groups])
    return now


def fold_rows(fold: Fold, accumulator: Any, rows: tuple[Any, Any, Any], positions: Sequence[int]) -> Any:
    """Fold rows into an accumulator one by one."""
    args, signs, chosen = rows
    for position in positions:
        if chosen is None or chosen[position]:
            accumulator = fold.add(accumulator, args[position], signs[position])
    return accumulator
