"""A relation with its operators: a stream of batches, and the text of the operators in explanations."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from penstock.datastream.data_stream import DataStream
from penstock.table.logical.nodes import Columns
from penstock.table.types.arrow_forms import arrow_schema

INSERTS, ALL_CHANGES = "I", "I,UB,UA,D"


@dataclass
class Physical:
    """A relation that can run."""

    stream: DataStream
    """A stream of batches: chunks of columns."""
    columns: Columns
    changelog: bool
    """True if the last column of a batch has the kinds of change."""
    label: str = ""
    """The operator and its parameters, for explanations."""
    inputs: tuple[Physical, ...] = field(default=())
    upsert_key: tuple[int, ...] | None = None
    """Columns that make a row unique at any time, or None if they are not known."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of its batches."""
        return arrow_schema(self.columns, self.changelog)

    def mode(self) -> str:
        """Return the kinds of change that it can send."""
        return ALL_CHANGES if self.changelog else INSERTS


def explain(physical: Physical, modes: bool, depth: int = 0) -> str:
    """Return a tree of operators as text, one operator a line."""
    mode = f", changelogMode=[{physical.mode()}]" if modes else ""
    label = physical.label[:-1] + mode + ")" if mode and physical.label.endswith(")") else physical.label + mode
    line = f"{'   ' * (depth - 1)}{'+- ' if depth else ''}{label}"
    return "\n".join([line, *(explain(part, modes, depth + 1) for part in physical.inputs)])
