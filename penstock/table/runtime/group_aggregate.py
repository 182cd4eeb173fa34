"""GROUP BY without windows: every group has a row, which changes with what arrives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.runtime.core.columns import Columns
from penstock.runtime.core.operator import OperatorContext
from penstock.table.plan.rex import AggregateCall
from penstock.table.runtime.aggregates.fold import Fold, VectorFold
from penstock.table.runtime.aggregates.numbers import Count
from penstock.table.runtime.batches import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, column_of, joined
from penstock.table.runtime.function_context import function_context
from penstock.table.runtime.grouping import Groups, by_fold, grouped, signs_of
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
    """State of a key: [accumulators, what was sent last]. Input is held back to the end of the epoch.

    BATCH mode sends the rows of all groups at the end, and without keys always one.
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
        if self.context.batch:
            self._fold_parts(batch) if self.parts_come else self._fold_rows(batch)
            return
        for part in one_by_one(batch):
            self._send_changes(part, self._fold_parts(part) if self.parts_come else self._fold_rows(part))

    # --- folding ---
    def _fold_rows(self, batch: pa.RecordBatch) -> dict[Any, int]:
        """Fold a batch, and return the changed keys with the position of a row of each."""
        assert isinstance(self.key_selector, ColumnKeys)
        signs = signs_of(batch, self.signed)
        found = grouped(batch, self.key_selector, self.folds, signs)
        rows = None if found.positions is None else row_folds(self.folds, batch, signs)
        for index, key in enumerate(found.keys):
            entry = self._groups.get(key) or [[fold.new() for fold in self.folds], None]
            fold_group(self.folds, entry[0], found, index, rows)
            self._groups.put(key, entry)
        return dict(zip(found.keys, found.firsts.to_pylist(), strict=True))

    def _fold_parts(self, batch: pa.RecordBatch) -> dict[Any, int]:
        """Fold what the first phase sent: keys come first, and parts follow."""
        width = len(self.key_positions)
        found = Columns(batch).keys(ColumnKeys(tuple(range(width))))
        assert found is not None
        vectors = [fold for fold in self.folds if isinstance(fold, VectorFold)]
        parts = by_fold([len(fold.part_types()) for fold in vectors], batch.columns[width:])
        changed: dict[Any, int] = {}
        for position, code in enumerate(found.which.to_pylist()):
            key = found.distinct[code]
            entry = self._groups.get(key) or [[fold.new() for fold in vectors], None]
            for number, fold in enumerate(vectors):
                own = parts[number]
                assert own is not None
                entry[0][number] = fold.fold(entry[0][number], own[position])
            self._groups.put(key, entry)
            changed[key] = position
        return changed

    # --- output ---
    def _send_changes(self, batch: pa.RecordBatch, changed: dict[Any, int]) -> None:
        kinds, positions, values = list[int](), list[int](), list[tuple[Any, ...]]()
        for key, position in changed.items():
            entry: Any = self._groups.get(key)
            for kind, row in self._changes(key, entry):
                kinds.append(kind)
                positions.append(position)
                values.append(row)
        if kinds:
            wanted = range(len(self.key_positions)) if self.parts_come else self.key_positions
            taken = pa.array(np.array(positions))
            self._send([batch.column(position).take(taken) for position in wanted], values, kinds)

    def _changes(self, key: Any, entry: list[Any]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """What is to be said about a group, and note that it was said."""
        accumulators, sent = entry
        if self.signed and accumulators[-1] <= 0:
            self._groups.remove(key)
            if sent is not None:
                yield DELETE, sent
            return
        now = self._values(accumulators)
        if sent is None:
            yield INSERT, now
        elif sent != now:
            yield UPDATE_BEFORE, sent
            yield UPDATE_AFTER, now
        entry[1] = now
        self._groups.put(key, entry)

    def _values(self, accumulators: list[Any]) -> tuple[Any, ...]:
        return tuple([fold.value(accumulators[number]) for number, fold in enumerate(self.results)])

    def _send(self, keys: list[pa.Array], values: list[tuple[Any, ...]], kinds: list[int]) -> None:
        by_call = zip(*values, strict=True) if self.results else ()
        results = [fold.column(column) for fold, column in zip(self.results, by_call, strict=True)]
        arrays = [*keys, *results, *([pa.array(kinds, pa.int8())] if self.changelog else [])]
        self.send(pa.RecordBatch.from_arrays(arrays, schema=self.schema))

    def at_end(self) -> None:
        super().at_end()
        if not self.context.batch:
            return
        groups = [(key, entry[0]) for key, entry in self._groups.items() if not self.signed or entry[0][-1] > 0]
        if not groups and not self.key_positions:
            groups = [((), [fold.new() for fold in self.folds])]
        if groups:
            self._send(
                key_columns([key for key, _ in groups], list(self.schema)[: len(self.key_positions)]),
                [self._values(accumulators) for _, accumulators in groups],
                [INSERT] * len(groups),
            )


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


def fold_group(
    folds: Sequence[Fold], accumulators: list[Any], found: Groups, index: int, rows: list[Any] | None
) -> None:
    """Fold the rows of a group into its accumulators."""
    for number, fold in enumerate(folds):
        parts = found.parts[number]
        if parts is not None:
            assert isinstance(fold, VectorFold)
            accumulators[number] = fold.fold(accumulators[number], parts[index])
        else:
            assert rows is not None and found.positions is not None
            accumulators[number] = folded_rows(fold, accumulators[number], rows[number], found.positions[index])


def folded_rows(fold: Fold, accumulator: Any, rows: tuple[Any, Any, Any], positions: Sequence[int]) -> Any:
    """Fold rows one by one."""
    args, signs, chosen = rows
    for position in positions:
        if chosen is None or chosen[position]:
            accumulator = fold.add(accumulator, args[position], signs[position])
    return accumulator
