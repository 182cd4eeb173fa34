"""Regular joins: both sides are kept for ever, and either may change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.runtime.core.operator import OperatorContext
from penstock.table.plan.rex import Rex
from penstock.table.runtime.batches import DELETE, INSERT, UPDATE_AFTER, Held, held_rows, inserts, made
from penstock.table.runtime.join_state import Entry, JoinRows, Rows, Spread
from penstock.table.runtime.matching import Keyed, Pairs, Partners, keyed, pairs_by_key
from penstock.table.runtime.pairs import Condition, both_sides
from penstock.table.runtime.table_operator import TwoInputTableOperator

Matches = list[tuple[Held, Entry]]
_ADDING = frozenset({INSERT, UPDATE_AFTER})


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


class Arrived(NamedTuple):
    """A batch of one side, as columns and as rows."""

    by_key: Keyed
    rows: list[Held]
    codes: list[int]
    """For each row, the number of its key."""
    kinds: list[int] | None
    """None if all rows are inserts."""


class Join(TwoInputTableOperator):
    """State of a key, for each side: rows with their numbers and the numbers of their matches."""

    def __init__(self, spec: JoinSpec, schema: pa.Schema, ttl: int = 0) -> None:
        super().__init__(spec.keys, schema)
        self.spec = spec
        self.ttl = ttl

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._sides = [JoinRows(self.keyed, name, self.ttl) for name in ("left", "right")]
        spec = self.spec
        self._condition = Condition(spec.condition, both_sides(*spec.schemas), spec.zone)
        self._nulls = ((None,) * len(spec.schemas[0]), (None,) * len(spec.schemas[1]))
        self.only_final = context.batch and spec.kind != "INNER"

    # --- input ---
    def left(self, batch: pa.RecordBatch) -> None:
        self._take(0, batch)

    def right(self, batch: pa.RecordBatch) -> None:
        self._take(1, batch)

    def _take(self, side: int, batch: pa.RecordBatch) -> None:
        """Both sides of every key are read once, and written once if they changed."""
        found = keyed(batch, self.selectors[side])
        width = len(self.spec.schemas[side])
        arrived = Arrived(found, held_rows(batch, range(width)), found.codes.tolist(), self._kinds(side, batch))
        own, others = self._rows_of(side, found.keys), self._rows_of(1 - side, found.keys)
        if self.spec.kind == "INNER":
            self._inner(side, arrived, own, others)
        else:
            self._outer(side, arrived, own, others)
            if self._counts_matches(1 - side):
                for rows in others:
                    if isinstance(rows, Spread):
                        rows.change_all()
                self._sides[1 - side].write(found.keys, others)
        self._sides[side].write(found.keys, own)

    def _kinds(self, side: int, batch: pa.RecordBatch) -> list[int] | None:
        """The kinds of change; None if all rows are inserts."""
        return batch.column(len(self.spec.schemas[side])).to_pylist() if self.spec.changelogs[side] else None

    def _matchable(self, key: Any) -> bool:
        """Whether rows of a key can have matches: NULL equals nothing, unless the condition says so."""
        if len(self.spec.null_safe) == 1:
            return key is not None or self.spec.null_safe[0]
        return all(part is not None or safe for part, safe in zip(key, self.spec.null_safe, strict=True))

    # --- state ---
    def _rows_of(self, side: int, keys: Sequence[Any]) -> list[Rows | None]:
        """The rows of keys on a side; None for a key that never matches, whose rows need no state."""
        read = self._sides[side].read
        return [read(key) if self._matchable(key) else None for key in keys]

    def _counts_matches(self, side: int) -> bool:
        """Whether it depends on the number of its matches what comes out for a row of a side."""
        return self.spec.outer(side) or (self.spec.one_sided and side == 0)

    def _note(self, side: int, own: Rows | None, row: Held, adding: bool, matches: int) -> None:
        """Keep a row that came, or forget one that went."""
        if own is None:
            return
        entry, kept = own.get(row), self._sides[side]
        if adding:
            if entry is None:
                own[row] = kept.entry(1, matches)
            else:
                entry[0] += 1
                kept.touch(entry)
                own[row] = entry
        elif entry is not None:
            entry[0] -= 1
            if entry[0] <= 0:
                del own[row]
            else:
                own[row] = entry

    # --- inner joins ---
    def _inner(self, side: int, arrived: Arrived, own: list[Rows | None], others: list[Rows | None]) -> None:
        """Pairs keep the kind of the row that came. Its columns are taken as they are."""
        groups = [rows and [row for row, entry in rows.items() for _ in range(entry[0])] for rows in others]
        candidates, found = pairs_by_key(arrived.by_key.codes, groups)
        partners = Partners(candidates, self.spec.schemas[1 - side])
        for pairs in found:
            self._send_pairs(side, arrived.by_key.batch, pairs, partners)
        for position, (row, code) in enumerate(zip(arrived.rows, arrived.codes, strict=True)):
            kind = INSERT if arrived.kinds is None else arrived.kinds[position]
            self._note(side, own[code], row, kind in _ADDING, 0)

    def _send_pairs(self, side: int, batch: pa.RecordBatch, pairs: Pairs, partners: Partners) -> None:
        width = len(self.spec.schemas[side])
        taken, other = batch.take(pa.array(pairs.positions)).columns, partners.columns(pairs.picks)
        arrays = taken[:width] + other if side == 0 else other + taken[:width]
        if self.changelog:
            arrays.append(taken[width] if self.spec.changelogs[side] else inserts(len(pairs.positions)))
        joined = made(arrays, self.schema, len(pairs.positions))
        self.send(joined.filter(self._condition.mask(joined, self)) if self._condition else joined)

    # --- all other joins ---
    def _outer(self, side: int, arrived: Arrived, own: list[Rows | None], others: list[Rows | None]) -> None:
        matches = self._matches(side, arrived.rows, [others[code] or {} for code in arrived.codes])
        process = self._one_sided if self.spec.one_sided else self._joined
        for position, (row, code) in enumerate(zip(arrived.rows, arrived.codes, strict=True)):
            kind = INSERT if arrived.kinds is None else arrived.kinds[position]
            process(side, row, kind, own[code], matches[position])

    def _matches(self, side: int, rows: list[Held], others: list[Rows]) -> list[Matches]:
        """For each row its matches; the condition sees all pairs of a batch at once."""
        if not self._condition:
            return [list(own.items()) for own in others]
        pairs = [
            (row + other if side == 0 else other + row) for row, own in zip(rows, others, strict=True) for other in own
        ]
        accepted = iter(self._condition.accepted(pairs, self))
        return [[match for match in own.items() if next(accepted)] for own in others]

    def _met(self, side: int, entry: Entry, adding: bool) -> None:
        """A row of a side has one match more or less."""
        entry[1] += 1 if adding else -1
        self._sides[side].touch(entry)

    def _joined(self, side: int, row: Held, kind: int, own: Rows | None, matched: Matches) -> None:
        adding = kind in _ADDING
        outer, other_outer = self.spec.outer(side), self.spec.outer(1 - side)
        self._note(side, own, row, adding, sum(entry[0] for _, entry in matched))
        passed = INSERT if adding else DELETE
        if not matched and outer:
            self.gather(passed, self._pair(side, row, self._nulls[1 - side]))
        for other, entry in matched:
            if other_outer and adding and entry[1] == 0:
                self._repeat(entry[0], DELETE, self._pair(side, self._nulls[side], other))
            self._repeat(entry[0], passed, self._pair(side, row, other))
            if other_outer and not adding and entry[1] == 1:
                self._repeat(entry[0], INSERT, self._pair(side, self._nulls[side], other))
            if other_outer:
                self._met(1 - side, entry, adding)

    def _one_sided(self, side: int, row: Held, kind: int, own: Rows | None, matched: Matches) -> None:
        adding, semi = kind in _ADDING, self.spec.kind == "SEMI"
        self._note(side, own, row, adding, sum(entry[0] for _, entry in matched))
        if side == 0:
            if bool(matched) is semi:
                self.gather(kind, row)
            return
        for left, entry in matched:
            if adding and entry[1] == 0:
                self._repeat(entry[0], INSERT if semi else DELETE, left)
            elif not adding and entry[1] == 1:
                self._repeat(entry[0], DELETE if semi else INSERT, left)
            self._met(0, entry, adding)

    def _pair(self, side: int, row: Held, other: Held) -> Held:
        return row + other if side == 0 else other + row

    def _repeat(self, times: int, kind: int, row: Held) -> None:
        for _ in range(times):
            self.gather(kind, row)
