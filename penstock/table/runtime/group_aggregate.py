"""GROUP BY without windows: every group has a row, which changes with what arrives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.runtime.core.operator import OperatorContext
from penstock.table.plan.rex import AggregateCall
from penstock.table.runtime.aggregates.fold import Fold, VectorFold
from penstock.table.runtime.aggregates.numbers import Count
from penstock.table.runtime.batches import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, column_of, joined
from penstock.table.runtime.function_context import function_context
from penstock.table.runtime.grouping import Groups, grouped, regrouped, signs_of
from penstock.table.runtime.state import store
from penstock.table.runtime.table_operator import MOST_HELD, HoldingTableOperator, TableOperator
from penstock.table.types import BigIntType
from penstock.vocabulary.functions.key_selectors import ColumnKeys

FEW = 32
"""Of so many rows at once folding together gains nothing worth a change that nobody sees."""


def with_counter(folds: Sequence[Fold], signed: bool) -> list[Fold]:
    """The folds, and where rows can be taken back a last one that counts the rows of a group."""
    counter = Count(AggregateCall("COUNT", (), BigIntType(False)), (), signed)
    return [*folds, counter] if signed else list(folds)


def one_by_one(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Few rows one after the other, so that every change of a group can be seen; many as they are, folded together."""
    if batch.num_rows > FEW:
        yield batch
    else:
        for index in range(batch.num_rows):
            yield batch.slice(index, 1)


class LocalAggregate(TableOperator):
    """The first phase before the exchange: out come the keys, then the parts of every fold."""

    def __init__(self, keys: Sequence[int], folds: Sequence[Fold], signed: bool, schema: pa.Schema) -> None:
        super().__init__(schema)
        self.keys = ColumnKeys(tuple(keys))
        self.folds = with_counter(folds, signed)
        self.signed = signed

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._held: list[pa.RecordBatch] = []
        self._rows = 0

    def batch(self, batch: pa.RecordBatch) -> None:
        self._held.append(batch)
        self._rows += batch.num_rows
        if self._rows >= MOST_HELD:
            self._release()

    def _release(self) -> None:
        if not self._held:
            return
        whole, self._held, self._rows = joined(self._held), [], 0
        for batch in one_by_one(whole):
            self._fold(batch)

    def _fold(self, whole: pa.RecordBatch) -> None:
        found = grouped(whole, self.keys, self.folds, signs_of(whole, self.signed), held=False)
        keys = [whole.column(position).take(found.firsts) for position in self.keys.positions]
        parts = [column.cast(field.type) for column, field in zip(found.columns, self._part_fields(), strict=True)]
        self.send(pa.RecordBatch.from_arrays([*keys, *parts], schema=self.schema))

    def _part_fields(self) -> list[pa.Field]:
        return [self.schema.field(index) for index in range(len(self.keys.positions), len(self.schema))]

    def watermark(self, timestamp: int) -> None:
        self._release()
        super().watermark(timestamp)

    def end_epoch(self) -> None:
        self._release()

    def finish(self) -> None:
        self._release()


def part_schema(keys: Sequence[pa.Field], folds: Sequence[Fold], signed: bool) -> pa.Schema:
    """What the first phase sends: keys and parts."""
    types = [kind for fold in with_counter(folds, signed) if isinstance(fold, VectorFold) for kind in fold.part_types()]
    return pa.schema([*keys, *(pa.field(f"part{index}", kind) for index, kind in enumerate(types))])


class GroupAggregate(HoldingTableOperator):
    """State of a key: its accumulators. Input is held back to the end of the epoch.

    What was sent last follows from the accumulators. BATCH mode sends the rows of all groups at the end, and without
    keys always one.
    """

    def __init__(
        self, keys: Sequence[int], folds: Sequence[Fold], signed: bool, schema: pa.Schema, ttl: int = 0
    ) -> None:
        super().__init__(keys, schema)
        self.folds = with_counter(folds, signed)
        self.results = list(folds)
        self.signed = signed
        self.ttl = ttl
        self.parts_come = False
        """Whether the first phase has been done before the exchange."""

    @property
    def key_positions(self) -> tuple[int, ...]:
        selector = self.key_selector
        assert isinstance(selector, ColumnKeys)
        return selector.positions

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._groups = store(self.keyed, "groups", self.ttl)
        for fold in self.folds:
            fold.open(function_context(context))

    def close(self) -> None:
        for fold in self.folds:
            fold.close()
        super().close()

    # --- input ---
    def whole(self, batch: pa.RecordBatch) -> None:
        for part in [batch] if self.context.batch else one_by_one(batch):
            self._fold(part)

    def _fold(self, batch: pa.RecordBatch) -> None:
        found, rows = self._grouped(batch)
        entries = self._groups.get_all(found.keys)
        before = [
            [fold.new() if entry is None else entry[number] for entry in entries]
            for number, fold in enumerate(self.folds)
        ]
        tells = not self.context.batch
        old = self._old_values(before, entries) if tells else []
        now = fold_groups(self.folds, before, found, rows)
        self._groups.put_all(found.keys, list(zip(*now, strict=True)) if now else [()] * len(entries))
        gone = [count <= 0 for count in now[-1]] if self.signed else None
        if gone is not None:
            for key, over in zip(found.keys, gone, strict=True):
                if over:
                    self._groups.remove(key)
        if tells:
            new = [fold.values(now[number]) for number, fold in enumerate(self.results)]
            self._tell(batch, found, Changes(entries, old, new, gone))

    def _grouped(self, batch: pa.RecordBatch) -> tuple[Groups, list[Any] | None]:
        if self.parts_come:
            vectors = [fold for fold in self.folds if isinstance(fold, VectorFold)]
            return regrouped(batch, len(self.key_positions), vectors), None
        assert isinstance(self.key_selector, ColumnKeys)
        signs = signs_of(batch, self.signed)
        found = grouped(batch, self.key_selector, self.folds, signs)
        return found, None if found.positions is None else row_folds(self.folds, batch, signs)

    def _old_values(self, before: list[list[Any]], entries: list[Any]) -> list[list[Any]]:
        """What was sent, before accumulators change; a group that is new has sent nothing."""
        return [
            fold.values(before[number])
            if isinstance(fold, VectorFold)
            else [None if entry is None else fold.value(entry[number]) for entry in entries]
            for number, fold in enumerate(self.results)
        ]

    # --- output ---
    def _tell(self, batch: pa.RecordBatch, found: Groups, changes: Changes) -> None:
        rows, kinds = changes.told()
        if not len(kinds):
            return
        wanted = range(len(self.key_positions)) if self.parts_come else self.key_positions
        positions = found.firsts.take(pa.array(rows % len(found.keys)))
        arrays = [batch.column(position).take(positions) for position in wanted]
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
    """What changed in some groups: old and new values by call, and which groups are new or gone."""

    def __init__(self, entries: list[Any], old: list[list[Any]], new: list[list[Any]], gone: list[bool] | None) -> None:
        self.entries = entries
        self.old = old
        self.new = new
        self.gone = gone

    def told(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Rows to be sent, as positions in the old values followed by the new ones, and their kinds."""
        count = len(self.entries)
        fresh = np.fromiter((entry is None for entry in self.entries), bool, count)
        gone = np.zeros(count, bool) if self.gone is None else np.array(self.gone, bool)
        changed = np.zeros(count, bool)
        for old, new in zip(self.old, self.new, strict=True):
            changed |= np.fromiter((one != other for one, other in zip(old, new, strict=True)), bool, count)
        first = np.where(fresh | ~(changed | gone), -1, np.where(gone, DELETE, UPDATE_BEFORE))
        second = np.where(gone | ~(changed | fresh), -1, np.where(fresh, INSERT, UPDATE_AFTER))
        kinds = np.stack([first, second], axis=1).reshape(-1)
        rows = np.stack([np.arange(count), np.arange(count) + count], axis=1).reshape(-1)
        return rows[kinds >= 0], kinds[kinds >= 0]


def key_columns(keys: Sequence[Any], fields: Sequence[pa.Field]) -> list[pa.Array]:
    """Keys as columns; a key of one column is no tuple."""
    if len(fields) == 1:
        return [column_of(keys, fields[0].type)]
    by_column = list(zip(*keys, strict=True)) if keys else [()] * len(fields)
    return [column_of(values, field.type) for values, field in zip(by_column, fields, strict=False)]


def row_folds(folds: Sequence[Fold], batch: pa.RecordBatch, signs: pa.Array | None) -> list[Any]:
    """For folds that see rows: arguments, signs, and which rows count."""
    ones = [1] * batch.num_rows if signs is None else signs.to_pylist()
    return [None if isinstance(fold, VectorFold) else (fold.rows(batch), ones, fold.chosen(batch)) for fold in folds]


def fold_groups(
    folds: Sequence[Fold], before: list[list[Any]], found: Groups, rows: list[Any] | None
) -> list[list[Any]]:
    """Fold groups of rows into accumulators, which are given, and returned, as a list for each fold."""
    now = []
    for number, fold in enumerate(folds):
        parts = found.parts[number]
        if parts is not None:
            assert isinstance(fold, VectorFold)
            now.append(fold.fold_all(before[number], parts))
        else:
            assert rows is not None and found.positions is not None
            groups = zip(before[number], found.positions, strict=True)
            now.append([folded_rows(fold, own, rows[number], positions) for own, positions in groups])
    return now


def folded_rows(fold: Fold, accumulator: Any, rows: tuple[Any, Any, Any], positions: Sequence[int]) -> Any:
    """Fold rows one by one."""
    args, signs, chosen = rows
    for position in positions:
        if chosen is None or chosen[position]:
            accumulator = fold.add(accumulator, args[position], signs[position])
    return accumulator
