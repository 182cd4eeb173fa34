"""A streaming DataFrame as an exactly-once source. It reads any source that Structured Streaming can read.

In a classic session, Spark's own query writes each micro-batch once into a folder of its own, and Penstock reads the
folders in order. Spark's checkpoint, which lies beside the folders, records the progress of Spark. Penstock's
checkpoint records the progress in the folders. A batch that Spark runs again after a crash has the same rows, so a
complete folder is left unchanged. Files are deleted once a complete checkpoint covers them. The newest folder keeps its
mark until there is a newer one. Timestamps are UTC. `logged_batches` has the query of a session of Spark Connect.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from penstock.base.storage import Storage, split_url
from penstock.connectors.source_api import (
    Boundedness,
    Fetched,
    ReaderContext,
    Source,
    SplitEnumerator,
    SplitReader,
    SplitsInTurn,
)
from penstock.errors import ConfigurationError, ConnectorError, NotFound
from penstock.persisted import persisted
from penstock.spark.sessions.connect_session import is_connect
from penstock.spark.sessions.jvm import take_interrupt, telling_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.formats.contracts import FormatReader

DISCOVERY_SECONDS = 1.0
"""Time, in seconds, between two checks whether the query has ended. The query reports batches by itself."""
ENDING_SECONDS = 0.1
"""Time, in seconds, between two checks of a query that ends by itself."""
REST_SECONDS = 10.0
"""Time, in seconds, that the end of a source waits for the batch that Spark is writing."""
MOST_WAITING = 64
"""Largest number of batches that may wait for a checkpoint. If there are more, Spark's query pauses."""
COMPLETE = "_SUCCESS"
"""File that Spark writes into a folder after all other files."""
DONE = "done"
"""Position of a file that has been read and still has to be deleted."""


@persisted
@dataclass(frozen=True)
class BatchFile:
    """A file of one micro-batch, and the position up to which it has been read."""

    path: str
    position: Any = None

    @property
    def split_id(self) -> str:
        """Path of the file, which identifies it."""
        return self.path


def reason_of(error: Exception) -> str:
    """Return the cause of an error: Spark 4 puts it in the first line, Spark 3.5 below Java's stack frames."""
    text = str(error)
    return telling_line(text) if "\nCaused by:" in text else text.splitlines()[0]


class SparkStreamSource(Source):
    """Source of a streaming DataFrame's rows, as Rows with the names of its columns."""

    watermarks_per_split = False

    def __init__(self, frame: DataFrame, staging_directory: str | None, trigger: dict[str, Any] | None) -> None:
        if staging_directory is None and is_connect(frame.sparkSession):
            raise ConfigurationError(
                "from_spark with a streaming DataFrame of Spark Connect needs staging_directory: a folder or URL that "
                "this process, the server's executors and the slots reach. Spark writes the rows there"
            )
        self._frame: DataFrame | None = frame
        self._trigger = trigger or {}
        self._staging = (staging_directory or tempfile.mkdtemp(prefix="penstock-staged-")).rstrip("/")

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED if ends(self._trigger) else Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self) -> SplitEnumerator:
        assert self._frame is not None
        if is_connect(self._frame.sparkSession):
            from penstock.spark.frames.logged_batches import LoggedBatches

            return LoggedBatches(self._frame, self._staging, self._trigger)
        return StagedBatches(self._frame, self._staging, self._trigger)

    def create_reader(self, context: ReaderContext) -> BatchReader:
        return BatchReader(context)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the DataFrame, which stays with the driver."""
        return {**self.__dict__, "_frame": None}


class StagedBatches(SplitEnumerator):
    """Runs Spark's query, and finds the files of its complete batches."""

    discovery_interval: float | None

    def __init__(self, frame: DataFrame, staging: str, trigger: dict[str, Any]) -> None:
        self._frame = frame
        self._trigger = trigger
        self.discovery_interval = batch_interval(trigger)
        self._folder = f"{staging}/{uuid4().hex}"
        self._next = 0
        self._query: Any = None
        self._kept = False
        self._room = threading.Condition()
        self._closed = False
        self._staging = self._rests = False
        """`_staging`: a batch is being written. `_rests`: after the last batch, Spark's query waits for its end."""
        self._error: Exception | None = None

    def discover(self) -> Sequence[BatchFile]:
        if self._query is None:
            self._start()
        # Asked first, so that all files of a query that has ended are found below.
        over = not self._query.isActive
        found: list[BatchFile] = []
        while (batch := self._batch(self._next)).exists(COMPLETE):
            found.extend(BatchFile(batch.url(name)) for name in _rows(batch))
            self._next += 1
        if over:
            self._check()
            self.discovery_interval = None
        return found

    def _start(self) -> None:
        writer = self._frame.writeStream.foreachBatch(self._stage)
        writer = writer.trigger(**self._trigger) if self._trigger else writer
        self._query = writer.option("checkpointLocation", f"{self._folder}/spark").start()

    def _check(self) -> None:
        error = self._error or self._query.exception()
        if error is not None and not self._closed:
            raise ConnectorError(f"Spark's streaming query failed: {reason_of(error)}") from error

    def _stage(self, batch: DataFrame, number: int) -> None:
        """Write a batch unless it is complete. Spark calls this in order, and again if it is unsure about a batch."""
        if not self._batch(number).exists(COMPLETE):
            self._staging = True
            try:
                self._write(batch, number)
            finally:
                self._staging = False
        self._rest_if_closed(batch)

    def _write(self, batch: DataFrame, number: int) -> None:
        self._wait_for_room()
        batch.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        try:
            batch.write.mode("overwrite").parquet(f"{self._folder}/batches/{_name(number)}")
        except Exception as error:
            # Spark's query fails with this error, too, but describes it in a hundred lines of Java.
            self._error = error
            raise
        self.news()

    def _rest_if_closed(self, batch: DataFrame) -> None:
        """Prevent Spark from starting another batch after it was told to stop.

        Spark stops a query by interrupting its thread, which is this one. The interrupt is cleared, because Spark still
        marks the batch as complete, and prints a stack trace if it is interrupted meanwhile.
        """
        if self._closed:
            self._rests = True
            until = time.monotonic() + REST_SECONDS
            while not take_interrupt(batch.sparkSession.sparkContext) and time.monotonic() < until:
                time.sleep(0.01)

    def _await_rest(self) -> None:
        """Wait until no batch is under way. Spark logs a thousand lines about an interrupted batch."""
        until = time.monotonic() + REST_SECONDS
        while self._query.isActive and not self._rests and time.monotonic() < until:
            if not self._staging and not self._query.status["isTriggerActive"]:
                return
            time.sleep(0.01)

    def _wait_for_room(self) -> None:
        with self._room:
            while self._kept and not self._closed and len(self._batches()) > MOST_WAITING:
                self._room.wait(1.0)

    def _batches(self) -> list[int]:
        """Return the numbers of the batches that have a folder."""
        folders = {name.partition("/")[0] for name in Storage(f"{self._folder}/batches").names()}
        return sorted(int(folder) for folder in folders if folder.isdigit())

    def _batch(self, number: int) -> Storage:
        return Storage(f"{self._folder}/batches/{_name(number)}")

    def snapshot_state(self) -> Any:
        return {"folder": self._folder, "next": self._next}

    def restore_state(self, state: Any) -> None:
        if state.get("log"):
            raise ConnectorError(
                "a job that has read a streaming DataFrame over Spark Connect cannot continue in a classic session"
            )
        self._folder, self._next = state["folder"], state["next"]
        self._kept = True

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Remove all folders whose files the readers have deleted, except the newest folder."""
        self._kept = True
        for number in self._batches()[:-1]:
            batch = self._batch(number)
            if number < self._next and not _rows(batch):
                for name in batch.names():
                    batch.delete(name)
                batch.delete_empty_folder("")
        with self._room:
            self._room.notify_all()

    def close(self) -> None:
        self._closed = True
        with self._room:
            self._room.notify_all()
        if self._query is not None:
            self._await_rest()
            self._query.stop()


class BatchReader(SplitsInTurn):
    """Reads files one after the other, and deletes files that a complete checkpoint covers."""

    def __init__(self, context: ReaderContext) -> None:
        super().__init__(lambda split: _FileReader(split, context))
        self._read: list[str] = []
        self._covered: dict[int, list[str]] = {}

    def fetch(self, most: int, wait: float) -> Sequence[Fetched]:
        fetched = super().fetch(most, wait)
        self._read.extend(part.split_id for part in fetched if part.last)
        if not fetched and wait > 0:
            time.sleep(min(wait, ENDING_SECONDS))
        return fetched

    def snapshot_state(self) -> Sequence[Any]:
        if self.checkpoint_id is not None:
            self._covered[self.checkpoint_id], self._read = self._read, []
        read = [BatchFile(path, DONE) for paths in self._covered.values() for path in paths]
        return [*super().snapshot_state(), *read]

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        for number in sorted(number for number in self._covered if number <= checkpoint_id):
            for path in self._covered.pop(number):
                folder, name = split_url(path)
                Storage(folder).delete(name)


class _FileReader(SplitReader):
    """Reads one file."""

    def __init__(self, split: BatchFile, context: ReaderContext) -> None:
        from penstock.formats.parquet_files import ParquetColumnarRowInputFormat

        self._split = split
        self._rows: FormatReader | None = None
        self.finished = split.position == DONE
        if self.finished:
            return
        folder, name = split_url(split.path)
        size = Storage(folder).size(name)
        if size is None:
            raise NotFound(
                f"{split.path} was deleted after a checkpoint that covers it: a job with a streaming DataFrame "
                "can continue only from its last checkpoint, not from older ones"
            )
        self._file = Storage(folder).open(name)
        reject: Callable[[Any, Exception, str], None] = context.reject
        self._rows = ParquetColumnarRowInputFormat().open(self._file, 0, size, split.position, reject)
        self.finished = self._rows.finished

    def read(self, most: int) -> Sequence[Any]:
        if self._rows is None:
            return []
        rows = self._rows.read(most)
        self.finished = self._rows.finished
        return rows

    def position(self) -> BatchFile:
        return self._split if self._rows is None else replace(self._split, position=self._rows.position())

    def close(self) -> None:
        if self._rows is not None:
            self._rows.close()
            self._file.close()


def ends(trigger: dict[str, Any]) -> bool:
    """Return True if a query with this trigger ends by itself."""
    return any(trigger.get(name) for name in ("availableNow", "once"))


def batch_interval(trigger: dict[str, Any]) -> float:
    """Return the time, in seconds, between two looks for new batches."""
    return ENDING_SECONDS if ends(trigger) else DISCOVERY_SECONDS


def _name(number: int) -> str:
    return f"{number:020d}"


def _rows(batch: Storage) -> list[str]:
    """Return the files with the rows of a batch. Spark writes other files beside them."""
    return [name for name in batch.names() if name.endswith(".parquet")]
