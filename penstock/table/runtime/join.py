"""Regular joins: both sides are kept for ever, and either may change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.runtime.core.columns import Columns
from penstock.runtime.core.operator import OperatorContext
from penstock.table.plan.rex import Rex
from penstock.table.runtime.batches import DELETE, INSERT, UPDATE_AFTER, Held, held_rows
from penstock.table.runtime.pairs import Condition, both_sides
from penstock.table.runtime.state import ExpiringStore, Store, store
from penstock.table.runtime.table_operator import TwoInputTableOperator

Entry = list[int]
"""[how often the row is there, how many rows of the other side match it]."""
Matches = list[tuple[Held, Entry]]


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
    """State of a key, for each side: a dict of rows with their numbers and the numbers of their matches."""

    def __init__(self, spec: JoinSpec, schema: pa.Schema, ttl: int = 0) -> None:
        super().__init__(spec.keys, schema)
        self.spec = spec
        self.ttl = ttl

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self._sides: list[Store | ExpiringStore] = [store(self.keyed, name, self.ttl) for name in ("left", "right")]
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
        found = Columns(batch).keys(self.selectors[side])
        assert found is not None
        width = len(self.spec.schemas[side])
        rows = held_rows(batch, range(width))
        kinds = batch.column(width).to_pylist() if self.spec.changelogs[side] else [INSERT] * len(rows)
        matchable = [self._matchable(key) for key in found.distinct]
        codes = found.which.to_pylist()
        others = [
            self._others(1 - side, key) if can else {} for key, can in zip(found.distinct, matchable, strict=True)
        ]
        matches = self._matches(side, rows, [others[code] for code in codes])
        process = self._one_sided if self.spec.one_sided else self._joined
        for row, kind, code, matched in zip(rows, kinds, codes, matches, strict=True):
            process(side, row, kind, found.distinct[code] if matchable[code] else _NEVER, matched)
        if self.spec.kind != "INNER":
            for code, key in enumerate(found.distinct):
                if others[code]:
                    self._sides[1 - side].put(key, others[code])

    def _matchable(self, key: Any) -> bool:
        """Whether rows of a key can have matches: NULL equals nothing, unless the condition says so."""
        if len(self.spec.null_safe) == 1:
            return key is not None or self.spec.null_safe[0]
        return all(part is not None or safe for part, safe in zip(key, self.spec.null_safe, strict=True))

    def _others(self, side: int, key: Any) -> dict[Held, Entry]:
        return self._sides[side].get(key) or {}

    def _matches(self, side: int, rows: list[Held], others: list[dict[Held, Entry]]) -> list[Matches]:
        """For each row its matches; the condition sees all pairs of a batch at once."""
        if not self._condition:
            return [list(own.items()) for own in others]
        pairs = [
            (row + other if side == 0 else other + row) for row, own in zip(rows, others, strict=True) for other in own
        ]
        accepted = iter(self._condition.accepted(pairs, self))
        return [[match for match in own.items() if next(accepted)] for own in others]

    # --- state ---
    def _keep(self, side: int, key: Any, row: Held, matches: int) -> None:
        if key is _NEVER:
            return
        rows = self._sides[side].get(key)
        if rows is None:
            rows = {}
        entry = rows.get(row)
        if entry is None:
            rows[row] = [1, matches]
        else:
            entry[0] += 1
        self._sides[side].put(key, rows)

    def _drop(self, side: int, key: Any, row: Held) -> None:
        rows = None if key is _NEVER else self._sides[side].get(key)
        if rows is None or row not in rows:
            return
        rows[row][0] -= 1
        if rows[row][0] <= 0:
            del rows[row]
        if rows:
            self._sides[side].put(key, rows)
        else:
            self._sides[side].remove(key)

    # --- output ---
    def _joined(self, side: int, row: Held, kind: int, key: Any, matched: Matches) -> None:
        adding = kind in {INSERT, UPDATE_AFTER}
        outer, other_outer = self.spec.outer(side), self.spec.outer(1 - side)
        number = sum(entry[0] for _, entry in matched)
        if adding:
            self._keep(side, key, row, number)
        else:
            self._drop(side, key, row)
        passed = (INSERT if adding else DELETE) if outer or other_outer else kind
        if not matched and outer:
            self.gather(passed, self._pair(side, row, self._nulls[1 - side]))
        for other, entry in matched:
            if other_outer and adding and entry[1] == 0:
                self._repeat(entry[0], DELETE, self._pair(side, self._nulls[side], other))
            self._repeat(entry[0], passed, self._pair(side, row, other))
            if other_outer and not adding and entry[1] == 1:
                self._repeat(entry[0], INSERT, self._pair(side, self._nulls[side], other))
            entry[1] += 1 if adding else -1

    def _one_sided(self, side: int, row: Held, kind: int, key: Any, matched: Matches) -> None:
        adding, semi = kind in {INSERT, UPDATE_AFTER}, self.spec.kind == "SEMI"
        if adding:
            self._keep(side, key, row, sum(entry[0] for _, entry in matched))
        else:
            self._drop(side, key, row)
        if side == 0:
            if bool(matched) is semi:
                self.gather(kind, row)
            return
        for left, entry in matched:
            if adding and entry[1] == 0:
                self._repeat(entry[0], INSERT if semi else DELETE, left)
            elif not adding and entry[1] == 1:
                self._repeat(entry[0], DELETE if semi else INSERT, left)
            entry[1] += 1 if adding else -1

    def _pair(self, side: int, row: Held, other: Held) -> Held:
        return row + other if side == 0 else other + row

    def _repeat(self, times: int, kind: int, row: Held) -> None:
        for _ in range(times):
            self.gather(kind, row)


_NEVER = object()
"""Stands for a key that never matches: rows of such a key need no state."""
