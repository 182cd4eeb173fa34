"""A DataFrame as the source of a BATCH job: Spark writes its rows to files, and the job's tasks read them.

The files lie in a folder of their own, which is deleted with the job. An attempt does not read the files of a failed
earlier one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from penstock.base.storage import Storage, split_url
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.operators.sources.source_operator import Budget, Enumerator, Reader, Source
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import Chunk, Receiver
from penstock.formats.format_libraries import pyarrow
from penstock.spark.frames.shared_frames import SharedFrames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BATCH_ROWS = 1 << 15


class StagedFrame(Source):
    """Source of a DataFrame's rows as columns of a schema. Columns are matched by position."""

    def __init__(self, frame: DataFrame, shared: SharedFrames, folder: str | None, schema: Any, ordered: bool) -> None:
        """Create a source.

        `shared`: DataFrames that this one and others use. `folder`: None for a temporary one. `ordered`: the rows have
        an order, so that one subtask reads all of them.
        """
        self._frame: DataFrame | None = frame
        self._shared: SharedFrames | None = shared
        self._folder = folder
        self._schema = schema
        self._ordered = ordered

    def reader(self, context: OperatorContext, position: Any = None) -> Reader:
        return _FilesReader(self._schema)

    def redistribute(self, positions: list[Any], parallelism: int) -> list[Any]:
        """Return no positions: a BATCH job restarts from the beginning."""
        return [None] * parallelism

    def enumerator(self) -> Enumerator:
        assert self._frame is not None and self._shared is not None
        own = tempfile.mkdtemp(prefix="penstock-staged-") if self._folder is None else f"{self._folder}/{uuid4().hex}"
        return _Staging(self._frame, self._shared, own, self._ordered)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the DataFrames, which stay with the driver."""
        return {**self.__dict__, "_frame": None, "_shared": None}


class _Staging(Enumerator):
    """Makes Spark write the files, and assigns their paths: in turn, or all to the first subtask, in order."""

    def __init__(self, frame: DataFrame, shared: SharedFrames, folder: str, ordered: bool) -> None:
        self._frame = frame
        self._shared = shared
        self._folder = Storage(folder)
        self._ordered = ordered

    def assign(self, parallelism: int, max_records: int) -> list[Any]:
        if self.exhausted:
            return [None] * parallelism
        with self._shared.used():
            self._frame.write.mode("overwrite").parquet(self._folder.url())
        self.exhausted = True
        found = sorted(name for name in self._folder.names() if name.endswith(".parquet"))
        payloads: list[list[str]] = [[] for _ in range(parallelism)]
        for turn, name in enumerate(found):
            payloads[0 if self._ordered else turn % parallelism].append(self._folder.url(name))
        return payloads

    def close(self) -> None:
        self._shared.drop()
        with suppress(Exception):  # remaining files do no harm
            self._folder.fs.rm(self._folder.root, recursive=True)


class _FilesReader(Reader):
    """Reads the files of one subtask."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._batches: Iterator[Any] | None = None

    def poll(self, output: Receiver, budget: Budget) -> int:
        if budget.payload is not None:
            paths, budget.payload = budget.payload, None
            self._batches = self._read(paths)
        if self._batches is None:
            return 0
        for batch in self._batches:
            output.chunk(Chunk.of(Columns(batch)))
            return int(batch.num_rows)
        self.finished = True
        return 0

    def _read(self, paths: list[str]) -> Iterator[Any]:
        arrow, parquet = pyarrow(), pyarrow("pyarrow.parquet")
        for path in paths:
            folder, name = split_url(path)
            with Storage(folder).open(name) as file:
                for batch in parquet.ParquetFile(file).iter_batches(BATCH_ROWS):
                    arrays = [
                        column if column.type == field.type else column.cast(field.type)
                        for column, field in zip(batch.columns, self._schema, strict=True)
                    ]
                    yield arrow.RecordBatch.from_arrays(arrays, schema=self._schema)

    def position(self) -> None:
        return None
