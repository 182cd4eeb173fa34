"""ORC files, as rows."""

from penstock.formats.orc import (
    OrcBulkWriters,
    OrcColumnarRowInputFormat,
)

__all__ = [
    "OrcBulkWriters",
    "OrcColumnarRowInputFormat",
]
