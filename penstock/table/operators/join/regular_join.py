"""Regular joins: both sides are kept for ever, and either may change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.engine.operators.operator import OperatorContext
from penstock.table.logical.kinds import JoinKind
from penstock.table.logical.rex import Rex
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.query_batches import (
    DELETE,
    INSERT,
    Held,
    adds,
    batch_of,
    kinds_of,
    make_batch,
    state_rows,
)
from penstock.table.operators.base.state_matching import (
    Keyed,
    Mask,
    Numbers,
    Pairs,
    Partners,
    matchable,
    pairs_by_key,
    rows_by_key,
    take_rows,
)
from penstock.table.operators.base.table_operator import TwoInputTableOperator
from penstock.table.operators.base.update_pairs import updates_side_by_side, with_pairs, without_pairs
from penstock.table.operators.join.join_state import Entry, JoinRows, Rows
from penstock.table.operators.join.row_pairs import Condition, both_sides


@dataclass(frozen=True)
class JoinSpec:
    """The kind, the keys and the condition of a join, and the columns of its sides."""

    kind: JoinKind
    keys: tuple[Sequence[int], Sequence[int]]
    null_safe: Sequence[bool]
    condition: Rex | None
    schemas: tuple[pa.Schema, pa.Schema]
    """The columns of the sides, without kinds of change."""
    changelogs: tuple[bool, bool] = (False, False)
    zone: str = "UTC"
    keeps_updates: tuple[bool, bool] = (False, False)
    """For each side, True if both rows of an update always have the same key and therefore come together."""

    def outer(self, side: int) -> bool:
        """Return True if rows of a side are sent even if they have no match."""
        return self.kind == JoinKind.FULL or self.kind == (JoinKind.LEFT, JoinKind.RIGHT)[side]

    @property
    def one_sided(self) -> bool:
        """Return True if only rows of the left are sent."""
        return self.kind in {JoinKind.SEMI, JoinKind.ANTI}


class Joined(NamedTuple):
    """Output rows, and the positions of the input rows from which they are made."""

    batch: pa.RecordBatch
    positions: Numbers


def in_order(parts: Sequence[Joined]) -> list[pa.RecordBatch]:
    """Return output in the order of the input rows, so that the last change of a row comes last."""
    batches = [part.batch for part in parts if part.batch.num_rows]
    if len(batches) < 2:
        return batches
    order = np.argsort(np.concatenate([part.positions for part in parts if part.batch.num_rows]), kind="stable")
    return [take_rows(pa.concat_batches(batches), order)]


class Join(TwoInputTableOperator):
    """State of a key, for each side: rows with their counts and the numbers of their matches.

    A batch has rows of one side alone, so they meet the other side as it was before. A row of the other side changes
    once per batch, if it has its first match or no match any more after the whole batch.
    """

    def __init__(self, spec: JoinSpec, form: OutputForm, ttl: tuple[int, int] = (0, 0)) -> None:
        """Create an operator. `ttl` has the time, in milliseconds, that each side is kept, or 0 for no limit."""
        super().__init__(spec.keys, form)
        self.spec = spec
        self.ttl = ttl

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        sides = zip(("left", "right"), self.ttl, strict=True)
        self._sides = [JoinRows(self.keyed, name, ttl) for name, ttl in sides]
        spec = self.spec
        self._both = both_sides(*spec.schemas)
        self._condition = Condition(spec.condition, self._both, spec.zone)
        self.only_final = context.batch and spec.kind != JoinKind.INNER

    # --- input ---
    def left(self, batch: pa.RecordBatch) -> None:
        self._take(0, batch)

    def right(self, batch: pa.RecordBatch) -> None:
        self._take(1, batch)

    def _take(self, side: int, batch: pa.RecordBatch) -> None:
        """Process a batch of one side. Each key of both sides is read once, and written once if it changed."""
        batch = self._matchable(side, batch)
        if not batch.num_rows:
            return
        arrived, adding = rows_by_key(batch, self.selectors[side]), self._adding(side, batch)
        matches = self._meet(side, arrived, adding)
        self._keep(side, arrived, adding, matches)

    def _matchable(self, side: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that can have matches. The others need no state and are sent at once."""
        mask = matchable(batch, self.spec.keys[side], self.spec.null_safe)
        if mask is None:
            return batch
        never = batch.filter(pa.array(~mask))
        own = self._own(side, never, np.zeros(never.num_rows, np.bool_))
        self._send_all([] if own is None else [own.batch])
        return batch.filter(pa.array(mask))

    def _adding(self, side: int, batch: pa.RecordBatch) -> Mask:
        """Return a mask of the rows that are added. The others are retracted."""
        if not self.spec.changelogs[side]:
            return np.ones(batch.num_rows, np.bool_)
        found: Mask = adds(batch).to_numpy(zero_copy_only=False)
        return found

    # --- state ---
    def _counts_matches(self, side: int) -> bool:
        """Return True if the output for a row of a side depends on the number of its matches."""
        return self.spec.outer(side) or (self.spec.one_sided and side == 0)

    def _keep(self, side: int, arrived: Keyed, adding: Mask, matches: Numbers) -> None:
        """Store added rows, and remove retracted ones."""
        kept = self._sides[side]
        own = kept.read(arrived.keys)
        rows = state_rows(arrived.batch, range(len(self.spec.schemas[side])))
        for row, code, added, met in zip(rows, arrived.codes.tolist(), adding.tolist(), matches.tolist(), strict=True):
            there = own[code]
            if there is None:
                there = own[code] = {}
            entry = there.get(row)
            if added:
                there[row] = kept.entry(1, met) if entry is None else kept.again(entry)
            elif entry is not None and entry[0] > 1:
                there[row] = (entry[0] - 1, *entry[1:])
            elif entry is not None:
                del there[row]
        kept.write(arrived.keys, own)

    # --- matches ---
    def _meet(self, side: int, arrived: Keyed, adding: Mask) -> Numbers:
        """Send the pairs, and the changes of rows of the other side. Return the number of matches of each row."""
        others = self._sides[1 - side].read(arrived.keys)
        groups = [list(rows.items()) if rows else None for rows in others]
        candidates, found = pairs_by_key(arrived.codes, groups)
        matches = np.zeros(len(adding), np.int64)
        counted = bool(candidates) and self._counts_matches(1 - side)
        at_once = not counted and (not self.spec.outer(side) or bool(adding.all()))
        repeats = np.fromiter((entry[0] for _, entry in candidates), np.int64, len(candidates))
        more, touched = np.zeros(len(candidates), np.int64), np.zeros(len(candidates), np.bool_)
        joined = list[Joined]()
        partners = Partners([row for row, _ in candidates], self.spec.schemas[1 - side])
        for pairs, batch in self._pairs(side, arrived.batch, found, partners):
            matches += np.bincount(pairs.positions, repeats[pairs.picks], len(matches)).astype(np.int64)
            if counted:
                signs = np.where(adding[pairs.positions], 1, -1)
                more += np.bincount(pairs.picks, signs, len(more)).astype(np.int64)
                touched[pairs.picks] = True
            if not self.spec.one_sided:
                joined.append(self._repeat_pairs(side, arrived.batch, pairs, batch, repeats))
            if at_once:
                self._send_all([one.batch for one in joined])
                joined.clear()
        first, last = list[Held](), list[Held]()
        if counted:
            changed = (more != 0) if self.spec.one_sided else touched
            owners = np.repeat(np.arange(len(groups)), [len(group or ()) for group in groups])
            owned = [(arrived.keys[code], others[code]) for code in owners[changed].tolist()]
            first, last = self._count(1 - side, owned, candidates, more, changed)
        own = self._own(side, arrived.batch, matches > 0)
        self._send_others(1 - side, first, found=True)
        self._send_all(in_order(joined if own is None else [*joined, own]))
        self._send_others(1 - side, last, found=False)
        return matches

    def _pairs(
        self, side: int, batch: pa.RecordBatch, found: Iterator[Pairs], partners: Partners
    ) -> Iterator[tuple[Pairs, pa.RecordBatch]]:
        """Yield the pairs that the condition accepts, with the columns of both sides."""
        width = len(self.spec.schemas[side])
        for pairs in found:
            own, other = take_rows(batch, pairs.positions).columns[:width], partners.columns(pairs.picks)
            joined = make_batch(own + other if side == 0 else other + own, self._both, len(pairs.positions))
            if self._condition:
                mask = self._condition.mask(joined, self)
                joined, pairs = joined.filter(mask), pairs.where(mask.to_numpy(zero_copy_only=False))
            yield pairs, joined

    def _count(
        self,
        side: int,
        owned: Sequence[tuple[Any, Rows | None]],
        candidates: Sequence[tuple[Held, Entry]],
        more: Numbers,
        changed: Mask,
    ) -> tuple[list[Held], list[Held]]:
        """Change the numbers of matches of rows of a side.

        `owned` has the key of each changed row, and the rows of that key.

        Return the rows that find their first match in the batch, and those without a match at its end. A row whose
        matches come and go within the batch is in both lists: its padded row is retracted before, and comes back after
        them.
        """
        first, last, entry_of = list[Held](), list[Held](), self._sides[side].entry
        for (_, own), index in zip(owned, np.flatnonzero(changed).tolist(), strict=True):
            row, (count, before, *_) = candidates[index]
            after = before + int(more[index])
            assert own is not None
            own[row] = entry_of(count, after)
            passing = before == after <= 0
            first += [row] * (count if passing or before <= 0 < after else 0)
            last += [row] * (count if passing or after <= 0 < before else 0)
        keys = dict(owned)
        self._sides[side].write(list(keys), list(keys.values()))
        return first, last

    # --- output ---
    def _repeat_pairs(
        self, side: int, batch: pa.RecordBatch, pairs: Pairs, joined: pa.RecordBatch, repeats: Numbers
    ) -> Joined:
        """Return pairs with their kinds, repeated by the count of the row of the other side."""
        times = repeats[pairs.picks]
        order = np.repeat(np.arange(len(times)), times)
        turn = np.arange(len(order)) - np.repeat(np.cumsum(times) - times, times)
        kinds = self._kinds(side, batch).take(pa.array(pairs.positions[order]))
        if self._keeps_updates(side):
            sorting, kinds = updates_side_by_side(kinds_of(batch), pairs.positions[order], pairs.picks[order], turn)
            order = order[sorting]
        return Joined(self._with_kinds(take_rows(joined, order).columns, kinds), pairs.positions[order])

    def _keeps_updates(self, side: int) -> bool:
        return self.spec.kind == JoinKind.INNER and self.spec.changelogs[side] and self.spec.keeps_updates[side]

    def _kinds(self, side: int, batch: pa.RecordBatch) -> pa.Array:
        """Return the kinds of the output for rows of a side.

        An update of an inner join remains if its key cannot change.
        """
        if not self.spec.changelogs[side]:
            return _kind(INSERT, batch.num_rows)
        if self.spec.kind == JoinKind.INNER or self.spec.one_sided:
            return kinds_of(batch) if self.spec.keeps_updates[side] else without_pairs(kinds_of(batch))
        return pa.array(np.where(self._adding(side, batch), INSERT, DELETE), pa.int8())

    def _own(self, side: int, batch: pa.RecordBatch, met: Mask) -> Joined | None:
        """Return the rows that are sent alone: those of a SEMI or ANTI join, or of an outer join without a match."""
        if self.spec.one_sided and side == 0:
            mask = met == (self.spec.kind == JoinKind.SEMI)
        elif self.spec.outer(side) and not met.all():
            mask = ~met
        else:
            return None
        chosen, positions = batch.filter(pa.array(mask)), np.flatnonzero(mask)
        own = chosen.columns[: len(self.spec.schemas[side])]
        kinds = with_pairs(self._kinds(side, chosen), positions)
        return Joined(self._with_kinds(self._pad(side, own, chosen.num_rows), kinds), positions)

    def _send_others(self, side: int, rows: list[Held], found: bool) -> None:
        """Send rows of the other side that have found their first match, or lost their last one."""
        if rows:
            comes = found is (self.spec.kind == JoinKind.SEMI)
            own = batch_of(rows, self.spec.schemas[side]).columns
            kinds = _kind(INSERT if comes else DELETE, len(rows))
            self._send_all([self._with_kinds(self._pad(side, own, len(rows)), kinds)])

    def _pad(self, side: int, own: list[pa.Array], count: int) -> list[pa.Array]:
        if self.spec.one_sided:
            return own
        missing = [pa.nulls(count, field.type) for field in self.spec.schemas[1 - side]]
        return own + missing if side == 0 else missing + own

    def _with_kinds(self, arrays: list[pa.Array], kinds: pa.Array) -> pa.RecordBatch:
        if self.changelog:
            return make_batch([*arrays, kinds], self.schema, len(kinds))
        batch = make_batch(arrays, self.schema, len(kinds))
        if self.only_final:
            for row, kind in zip(state_rows(batch), kinds.to_pylist(), strict=True):
                self.gather(kind, row)
        return batch

    def _send_all(self, batches: list[pa.RecordBatch]) -> None:
        if not self.only_final:
            for batch in batches:
                self.send(batch)
        batches.clear()


def _kind(kind: int, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(kind, pa.int8()), count)
