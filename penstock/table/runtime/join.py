"""Regular joins: both sides are kept for ever, and either may change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.runtime.core.operator import OperatorContext
from penstock.table.plan.rex import Rex
from penstock.table.runtime.batches import DELETE, INSERT, Held, adds, batch_of, held_rows, kinds_of, made
from penstock.table.runtime.join_state import Entry, JoinRows, Rows
from penstock.table.runtime.matching import (
    Keyed,
    Mask,
    Numbers,
    Pairs,
    Partners,
    keyed,
    matchable,
    pairs_by_key,
    taken,
)
from penstock.table.runtime.pairs import Condition, both_sides
from penstock.table.runtime.table_operator import TwoInputTableOperator


@dataclass
class JoinSpec:
    """What a join joins."""

    kind: str
    """INNER, LEFT, RIGHT, FULL, SEMI or ANTI."""
    keys: tuple[Sequence[int], Sequence[int]]
    null_safe: Sequence[bool]
    condition: Rex | None
    schemas: tuple[pa.Schema, pa.Schema]
    """The columns of the sides, without kinds of change."""
    changelogs: tuple[bool, bool] = (False, False)
    zone: str = "UTC"

    def outer(self, side: int) -> bool:
        """Whether rows of a side come out even if nothing matches them."""
        return self.kind == "FULL" or self.kind == ("LEFT", "RIGHT")[side]

    @property
    def one_sided(self) -> bool:
        return self.kind in {"SEMI", "ANTI"}


class Join(TwoInputTableOperator):
    """State of a key, for each side: rows with their numbers and the numbers of their matches.

    The rows of a batch meet the other side as it is, since a batch is of one side alone. A row of the other side that
    has its first match, or no match any more, when the whole batch is counted, changes once.
    """

    def __init__(self, spec: JoinSpec, schema: pa.Schema, ttl: tuple[int, int] = (0, 0)) -> None:
        """`ttl` says of either side how many milliseconds its rows are kept; 0 is for ever."""
        super().__init__(spec.keys, schema)
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
        self.only_final = context.batch and spec.kind != "INNER"

    # --- input ---
    def left(self, batch: pa.RecordBatch) -> None:
        self._take(0, batch)

    def right(self, batch: pa.RecordBatch) -> None:
        self._take(1, batch)

    def _take(self, side: int, batch: pa.RecordBatch) -> None:
        """Both sides of every key are read once, and written once if they changed."""
        batch = self._matchable(side, batch)
        if not batch.num_rows:
            return
        arrived, adding = keyed(batch, self.selectors[side]), self._adding(side, batch)
        matches = self._meet(side, arrived, adding)
        self._send_own(side, batch, adding, matches > 0)
        self._keep(side, arrived, adding, matches)

    def _matchable(self, side: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that can have matches. The others need no state."""
        mask = matchable(batch, self.spec.keys[side], self.spec.null_safe)
        if mask is None:
            return batch
        never = batch.filter(pa.array(~mask))
        self._send_own(side, never, self._adding(side, never), np.zeros(never.num_rows, np.bool_))
        return batch.filter(pa.array(mask))

    def _adding(self, side: int, batch: pa.RecordBatch) -> Mask:
        """Which rows add something; the others take it away."""
        if not self.spec.changelogs[side]:
            return np.ones(batch.num_rows, np.bool_)
        found: Mask = adds(batch).to_numpy(zero_copy_only=False)
        return found

    # --- state ---
    def _counts_matches(self, side: int) -> bool:
        """Whether it depends on the number of its matches what comes out for a row of a side."""
        return self.spec.outer(side) or (self.spec.one_sided and side == 0)

    def _keep(self, side: int, arrived: Keyed, adding: Mask, matches: Numbers) -> None:
        """Keep the rows that came, and forget those that went."""
        kept = self._sides[side]
        own = kept.read(arrived.keys)
        rows = held_rows(arrived.batch, range(len(self.spec.schemas[side])))
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
        """Send the pairs, and what becomes of the rows of the other side; returns how many matches each row has."""
        others = self._sides[1 - side].read(arrived.keys)
        groups = [list(rows.items()) if rows else None for rows in others]
        candidates, found = pairs_by_key(arrived.codes, groups)
        matches = np.zeros(len(adding), np.int64)
        if not candidates:
            return matches
        counted = self._counts_matches(1 - side)
        repeats = np.fromiter((entry[0] for _, entry in candidates), np.int64, len(candidates))
        more, joined = np.zeros(len(candidates), np.int64), list[pa.RecordBatch]()
        partners = Partners([row for row, _ in candidates], self.spec.schemas[1 - side])
        for pairs, batch in self._pairs(side, arrived.batch, found, partners):
            matches += np.bincount(pairs.positions, repeats[pairs.picks], len(matches)).astype(np.int64)
            if counted:
                signs = np.where(adding[pairs.positions], 1, -1)
                more += np.bincount(pairs.picks, signs, len(more)).astype(np.int64)
            if not self.spec.one_sided:
                joined.append(self._repeated(side, arrived.batch, pairs, batch, repeats))
            if not counted:
                self._send_all(joined)
        first, last = list[Held](), list[Held]()
        if counted:
            owners = np.repeat(np.arange(len(groups)), [len(group or ()) for group in groups])
            owned = [(arrived.keys[code], others[code]) for code in owners[more != 0].tolist()]
            first, last = self._count(1 - side, owned, candidates, more)
        self._send_others(1 - side, first, found=True)
        self._send_all(joined)
        self._send_others(1 - side, last, found=False)
        return matches

    def _pairs(
        self, side: int, batch: pa.RecordBatch, found: Iterator[Pairs], partners: Partners
    ) -> Iterator[tuple[Pairs, pa.RecordBatch]]:
        """The pairs that the condition accepts, with the columns of both sides."""
        width = len(self.spec.schemas[side])
        for pairs in found:
            own, other = taken(batch, pairs.positions).columns[:width], partners.columns(pairs.picks)
            joined = made(own + other if side == 0 else other + own, self._both, len(pairs.positions))
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
    ) -> tuple[list[Held], list[Held]]:
        """Note that rows of a side have so many matches more, or fewer; `owned` has the keys and rows that they are of.

        Returns the rows that have their first match now, and those that have none any more.
        """
        first, last, entry_of = list[Held](), list[Held](), self._sides[side].entry
        for (_, own), index in zip(owned, np.flatnonzero(more).tolist(), strict=True):
            row, (count, before, *_) = candidates[index]
            after = before + int(more[index])
            assert own is not None
            own[row] = entry_of(count, after)
            if before <= 0 < after:
                first += [row] * count
            elif after <= 0 < before:
                last += [row] * count
        changed = dict(owned)
        self._sides[side].write(list(changed), list(changed.values()))
        return first, last

    # --- output ---
    def _repeated(
        self, side: int, batch: pa.RecordBatch, pairs: Pairs, joined: pa.RecordBatch, repeats: Numbers
    ) -> pa.RecordBatch:
        """Pairs with their kinds, as often as the row of the other side is there."""
        times = repeats[pairs.picks]
        order = np.repeat(np.arange(len(times)), times)
        kinds = self._kinds(side, taken(batch, pairs.positions))
        return self._with_kinds(taken(joined, order).columns, kinds.take(pa.array(order)))

    def _kinds(self, side: int, batch: pa.RecordBatch) -> pa.Array:
        """What rows of a side do to what comes out: an update of an inner join stays one."""
        if not self.spec.changelogs[side]:
            return _kind(INSERT, batch.num_rows)
        if self.spec.kind == "INNER" or self.spec.one_sided:
            return kinds_of(batch)
        return pa.array(np.where(self._adding(side, batch), INSERT, DELETE), pa.int8())

    def _send_own(self, side: int, batch: pa.RecordBatch, adding: Mask, met: Mask) -> None:
        """Rows that come out for themselves: those without a match of an outer join, and those of a SEMI or ANTI."""
        if self.spec.one_sided and side == 0:
            chosen = batch.filter(pa.array(met == (self.spec.kind == "SEMI")))
        elif self.spec.outer(side) and not met.all():
            chosen = batch.filter(pa.array(~met))
        else:
            return
        own = chosen.columns[: len(self.spec.schemas[side])]
        self._send_all([self._with_kinds(self._padded(side, own, chosen.num_rows), self._kinds(side, chosen))])

    def _send_others(self, side: int, rows: list[Held], found: bool) -> None:
        """Rows of the other side that have found their first match, or lost their last one."""
        if rows:
            comes = found is (self.spec.kind == "SEMI")
            own = batch_of(rows, self.spec.schemas[side]).columns
            kinds = _kind(INSERT if comes else DELETE, len(rows))
            self._send_all([self._with_kinds(self._padded(side, own, len(rows)), kinds)])

    def _padded(self, side: int, own: list[pa.Array], count: int) -> list[pa.Array]:
        if self.spec.one_sided:
            return own
        missing = [pa.nulls(count, field.type) for field in self.spec.schemas[1 - side]]
        return own + missing if side == 0 else missing + own

    def _with_kinds(self, arrays: list[pa.Array], kinds: pa.Array) -> pa.RecordBatch:
        if self.changelog:
            return made([*arrays, kinds], self.schema, len(kinds))
        batch = made(arrays, self.schema, len(kinds))
        if self.only_final:
            for row, kind in zip(held_rows(batch), kinds.to_pylist(), strict=True):
                self.gather(kind, row)
        return batch

    def _send_all(self, batches: list[pa.RecordBatch]) -> None:
        if not self.only_final:
            for batch in batches:
                self.send(batch)
        batches.clear()


def _kind(kind: int, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(kind, pa.int8()), count)
