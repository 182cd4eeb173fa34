"""Exactly once for systems that cannot hold a transaction open until a checkpoint is complete.

The writer keeps the records of one checkpoint, and the checkpoint stores them. Once it is complete, the committer
writes the records in one transaction, together with a marker that identifies them. A second attempt finds the marker.
"""

from __future__ import annotations

import uuid
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from penstock.api.functions.source_functions import SinkFunction
from penstock.connectors.source_api import SinkWriter, WriterContext
from penstock.persisted import persisted

MARKERS_KEPT = 100
"""Number of one writer's last markers that a system must remember."""


@persisted
@dataclass(frozen=True)
class Prepared:
    """The records that one writer received for one checkpoint."""

    id: str
    """Unique id, in this run of the job and in any other."""
    origin: str
    """The writer: sink and subtask. Its markers are kept under this name."""
    records: list[Any]
    checkpoint_id: int | None
    checkpoint_timestamp: int | None


class PreparingWriter(SinkWriter):
    """Keeps records until a checkpoint contains them."""

    def __init__(self, context: WriterContext, name: str) -> None:
        self.origin = f"{name}-{context.uid}-{context.runtime.get_index_of_this_subtask()}"
        self._records: list[Any] = []

    @abstractmethod
    def to_record(self, value: Any, context: SinkFunction.Context) -> Any:
        """Return, as plain data, the record that the committer will write for a value."""

    def write(self, value: Any, context: SinkFunction.Context) -> None:
        self._records.append(self.to_record(value, context))

    def prepare_commit(self) -> list[Prepared]:
        if not self._records:
            return []
        records, self._records = self._records, []
        return [Prepared(uuid.uuid4().hex, self.origin, records, self.checkpoint_id, self.checkpoint_timestamp)]
