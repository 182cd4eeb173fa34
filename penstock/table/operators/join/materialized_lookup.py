"""Lookup joins that remember their output, so that a retracted row also retracts its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.engine.operators.operator import OperatorContext
from penstock.table.operators.base.query_batches import Held, adds, batch_of, kinds_of, state_rows
from penstock.table.operators.base.query_state import store
from penstock.table.operators.base.state_matching import rows_by_key
from penstock.table.operators.base.table_operator import KeyedTableOperator
from penstock.table.operators.base.update_pairs import with_pairs_of_rows
from penstock.table.operators.join.lookup_join import LookupJoin


class MaterializedLookupJoin(KeyedTableOperator):
    """Looks up added rows. For a retracted row, it sends the results that it kept.

    State of a key: the results of each left row, the oldest first. The key identifies a left row, or has all columns
    that are the same in its retraction. The time of processing is not.
    """

    def __init__(self, join: LookupJoin, keys: Sequence[int], ttl: int = 0) -> None:
        super().__init__(keys, join.form)
        self.join = join
        self.ttl = ttl

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert self.keyed is not None
        self.join.open(context)
        self._kept = store(self.keyed, "joined", self.ttl)

    def close(self) -> None:
        self.join.close()
        super().close()

    def batch(self, batch: pa.RecordBatch) -> None:
        self.join.current_watermark = self.current_watermark
        adding = adds(batch)
        fresh = iter(self._look_up(batch.filter(adding)))
        arrived = rows_by_key(batch, self.key_selector)  # type: ignore[arg-type]
        states = [list(state or ()) for state in self._kept.get_all(arrived.keys)]
        sent, positions = list[Held](), list[int]()
        changes = zip(arrived.codes.tolist(), adding.to_pylist(), kinds_of(batch).to_pylist(), strict=True)
        for position, (code, comes, kind) in enumerate(changes):
            if comes:
                joined = next(fresh)
                states[code].append(joined)
            else:
                joined = states[code].pop(0) if states[code] else []
            sent += [(*row, kind) for row in joined]
            positions += [position] * len(joined)
        self._keep(arrived.keys, states)
        self.send(with_pairs_of_rows(batch_of(sent, self.schema), pa.array(positions, pa.int64())))

    def _look_up(self, batch: pa.RecordBatch) -> list[list[Held]]:
        """Return for each row its results now."""
        found: list[list[Held]] = [[] for _ in range(batch.num_rows)]
        if batch.num_rows:
            joined, positions = self.join.join_batch(batch)
            rows = state_rows(joined, range(joined.num_columns - 1))
            for position, row in zip(positions.to_pylist(), rows, strict=True):
                found[position].append(row)
        return found

    def _keep(self, keys: Sequence[Any], states: list[list[Any]]) -> None:
        left = [(key, state) for key, state in zip(keys, states, strict=True) if state]
        self._kept.put_all([key for key, _ in left], [state for _, state in left])
        self._kept.remove_all([key for key, state in zip(keys, states, strict=True) if not state])
