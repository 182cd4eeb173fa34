"""The versions of Spark that Penstock supports, and replacements for calls that only some of them have."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pyspark

from penstock.errors import ConfigurationError

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

OLDEST = (3, 5)
NEWEST = (4, 3)
"""Newest version that the tests use."""
FIRST_WITH_ARROW_TABLES = FIRST_WITHOUT_DISTUTILS = (4, 0)
BATCH_ROWS = 1 << 16
"""Most rows of a batch that goes into a DataFrame of Spark 3.5."""
PACKED = "batch BINARY"
"""Columns of a DataFrame that carries batches as bytes."""
REDACTED = "*********(redacted)"
log = logging.getLogger("penstock.job")


def minor_version(text: str) -> tuple[int, int]:
    """Return the first two numbers of a version such as 4.1.0 or 4.2.0.dev1."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def check_spark(version: str = pyspark.__version__) -> None:
    """Refuse a Spark that is too old for Penstock or for this Python. Warn of a version newer than the tested ones."""
    found = minor_version(version)
    if found < OLDEST:
        raise ConfigurationError(
            f"this is Spark {version} ({pyspark.__path__[0]}), but Penstock needs Spark {_range()}. Install a newer "
            f'version: pip install "pyspark>={_text(OLDEST)},<{_text((NEWEST[0], NEWEST[1] + 1))}"'
        )
    if found < FIRST_WITHOUT_DISTUTILS and find_spec("distutils") is None:
        raise ConfigurationError(
            f"Spark {version} needs the module distutils, which Python {_text(sys.version_info[:2])} does not have. "
            "Install setuptools, which brings it (pip install 'setuptools<81'), on the driver and on the "
            "executors, or use Spark 4"
        )
    if found > NEWEST:
        _warn_of_newer(version)


@cache
def _warn_of_newer(version: str) -> None:
    log.warning("this is Spark %s, and this release of Penstock was tested with Spark %s only", version, _range())


def _range() -> str:
    return f"{_text(OLDEST)} to {_text(NEWEST)}"


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


# --- calls that Spark 3.5 does not have ---
def has_arrow_tables(version: str = pyspark.__version__) -> bool:
    """Return True if Spark itself converts between DataFrames and Arrow tables."""
    return minor_version(version) >= FIRST_WITH_ARROW_TABLES


def options_of(session: SparkSession) -> dict[str, str]:
    """Return all options of a session, except those that Spark 3.5 hides because they look like passwords."""
    if has_arrow_tables():
        return dict(session.conf.getAll)
    return {row.key: row.value for row in session.sql("SET").collect() if row.value != REDACTED}


def arrow_table_of(frame: DataFrame) -> pyarrow.Table:
    """Compute a DataFrame, and return its rows as an Arrow table. A table without rows may have no columns."""
    if has_arrow_tables():
        return frame.toArrow()
    import pyarrow

    packed = frame.mapInArrow(_pack, PACKED).collect()
    batches = [batch for row in packed for batch in pyarrow.ipc.open_stream(row[0])]
    return pyarrow.Table.from_batches(batches) if batches else pyarrow.table({})


def frame_of_arrow_table(session: SparkSession, table: pyarrow.Table, schema: str) -> DataFrame:
    """Return a DataFrame of an Arrow table, with the columns and types of `schema`, a text of Spark SQL."""
    if has_arrow_tables():
        return session.createDataFrame(table, schema)
    rows = [(_bytes_of(batch),) for batch in table.to_batches(BATCH_ROWS)]
    return session.createDataFrame(rows, PACKED).mapInArrow(_unpack, schema)


def _pack(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Yield a row with the bytes of each batch."""
    import pyarrow

    for batch in batches:
        yield pyarrow.RecordBatch.from_pydict({"batch": pyarrow.array([_bytes_of(batch)], pyarrow.binary())})


def _unpack(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Yield the batches whose bytes are in rows."""
    import pyarrow

    for batch in batches:
        for packed in batch.column(0):
            yield from pyarrow.ipc.open_stream(packed.as_buffer())


def _bytes_of(batch: pyarrow.RecordBatch) -> bytes:
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    written: bytes = sink.getvalue().to_pybytes()
    return written
