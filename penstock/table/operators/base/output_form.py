"""The form of an operator's output: its schema, and what is true of its changes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from penstock.engine.records.elements import Chunk
from penstock.table.operators.base.update_pairs import ChangelogCheck
from penstock.table.types.arrow_forms import KIND

CHECK = "PENSTOCK_CHECK_CHANGELOGS"
"""Environment variable for tests: if it is set, operators check every changelog that they send."""
ACROSS = "across"
"""The value of the variable for checks across batches. With any other value, each batch is checked alone."""


@dataclass(frozen=True)
class OutputForm:
    """The schema of an operator's output, and the keys of its rows."""

    schema: pa.Schema
    """The columns, and the kinds of change if it is a changelog."""
    upsert_keys: tuple[tuple[int, ...], ...] = ()
    """Sets of columns, each of which makes a row unique at any time."""
    forgets: bool = False
    """True if state of the query expires, so that a row may come again without a retraction."""

    def check_before(self, send: Callable[[Chunk], None]) -> Callable[[Chunk], None]:
        """Return a function that checks the changelog of a chunk if checks are enabled, and sends the chunk."""
        if CHECK not in os.environ or self.schema.names[-1:] != [KIND]:
            return send

        check = ChangelogCheck(self.upsert_keys, remembers=os.environ[CHECK] == ACROSS and not self.forgets)

        def check_and_send(chunk: Chunk) -> None:
            assert chunk.columns is not None
            check.check(chunk.columns.batch)
            send(chunk)

        return check_and_send
