"""What a relation has become: a stream of batches, and how its operators look in an explanation."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from penstock.datastream.data_stream import DataStream
from penstock.table.logical.nodes import Columns
from penstock.table.types.arrow_forms import arrow_schema

INSERTS, ALL_CHANGES = "I", "I,UB,UA,D"


@dataclass
class Physical:
    """A relation that runs."""

    stream: DataStream
    """A stream of batches: chunks of columns."""
    columns: Columns
    changelog: bool
    """Whether a batch has kinds of change as its last column."""
    label: str = ""
    """The operator and what it does, for explanations."""
    inputs: tuple[Physical, ...] = field(default=())
    upsert_key: tuple[int, ...] | None = None
    """Columns that make a row unique at any time, if that is known."""

    @property
    def schema(self) -> pa.Schema:
        """The form of its batches."""
        return arrow_schema(self.columns, self.changelog)

    def mode(self) -> str:
        """The kinds of change that it can bring."""
        return ALL_CHANGES if self.changelog else INSERTS


def explain(physical: Physical, modes: bool, depth: int = 0) -> str:
    """A tree of operators as text, one a line."""
    mode = f", changelogMode=[{physical.mode()}]" if modes else ""
    label = physical.label[:-1] + mode + ")" if mode and physical.label.endswith(")") else physical.label + mode
    line = f"{'   ' * (depth - 1)}{'+- ' if depth else ''}{label}"
    return "\n".join([line, *(explain(part, modes, depth + 1) for part in physical.inputs)])
