"""The micro-batches of a streaming DataFrame of Spark Connect, which Spark's own file sink writes.

A function of `foreachBatch` would run in a process of the server's. The file sink needs none: it writes the files of a
batch, then a file with their names into its log. A batch that Spark runs again after a crash is in the log already, and
is left out. The log is not compacted here, so that each of its files names the files of one batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from penstock.base.storage import Storage
from penstock.connectors.source_api import SplitEnumerator
from penstock.errors import ConnectorError
from penstock.spark.frames.streaming_source import MOST_WAITING, BatchFile, batch_interval, reason_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOG = "_spark_metadata"
_NEVER = str((1 << 31) - 1)
_OF_THE_SINK = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.streaming.fileSink.log.compactInterval": _NEVER,
    "spark.sql.streaming.fileSink.log.deletion": "false",
}
"""Settings of the query. It keeps the settings that its session has when it starts."""


class LoggedBatches(SplitEnumerator):
    """Runs Spark's query, and finds the files of its complete batches in the log of its sink."""

    discovery_interval: float | None

    def __init__(self, frame: DataFrame, staging: str, trigger: dict[str, Any]) -> None:
        self._frame = frame
        self._trigger = trigger
        self.discovery_interval = batch_interval(trigger)
        self._folder = f"{staging}/{uuid4().hex}"
        self._next = 0
        self._query: Any = None
        self._is_held = False
        """Whether the query was stopped because too many batches wait for a checkpoint."""
        self._has_checkpoint = False

    @property
    def _files(self) -> Storage:
        return Storage(f"{self._folder}/batches")

    @property
    def _log(self) -> Storage:
        return Storage(f"{self._folder}/batches/{LOG}")

    def discover(self) -> Sequence[BatchFile]:
        if self._query is None:
            self._start()
        # Asked first, so that all files of a query that has ended are found below.
        over = not self._is_held and not self._query.isActive
        written = self._last_batch() if not self._is_held else -1
        files, log, found = self._files, self._log, []
        while log.exists(str(self._next)):
            found += [BatchFile(files.url(name)) for name in _names_in(log.read(str(self._next)))]
            self._next += 1
        if written >= self._next:
            raise ConnectorError(
                f"Spark has written batch {self._next} into '{files.url()}', but this process cannot see the files: "
                "staging_directory must be a folder or URL that this process and the server's executors reach"
            )
        if over:
            self._check()
            self.discovery_interval = None
        elif self._has_checkpoint:
            self._hold_or_continue()
        return found

    def _start(self) -> None:
        writer = self._frame.writeStream.format("parquet").option("path", f"{self._folder}/batches")
        writer = writer.trigger(**self._trigger) if self._trigger else writer
        with _settings(self._frame.sparkSession, _OF_THE_SINK):
            self._query = writer.option("checkpointLocation", f"{self._folder}/spark").start()

    def _last_batch(self) -> int:
        """Return the number of the last batch that Spark is known to have finished."""
        progress = self._query.lastProgress
        if progress is None:
            return -1
        has_run = "addBatch" in (progress["durationMs"] or {})  # else Spark looked for rows and found none
        return int(progress["batchId"]) - (0 if has_run else 1)

    def _check(self) -> None:
        error = self._query.exception()
        if error is not None:
            raise ConnectorError(f"Spark's streaming query failed: {reason_of(error)}") from error

    def _hold_or_continue(self) -> None:
        """Stop the query if too many batches wait for a checkpoint, and start it again when few do."""
        waiting = len(self._numbers())
        if waiting > MOST_WAITING and not self._is_held:
            self._query.stop()
            self._is_held = True
        elif waiting <= MOST_WAITING // 2 and self._is_held:
            self._start()
            self._is_held = False

    def _numbers(self) -> list[int]:
        """Return the numbers of the batches in the log."""
        return sorted(int(name) for name in self._log.names() if name.isdigit())

    def snapshot_state(self) -> Any:
        return {"folder": self._folder, "next": self._next, "log": True}

    def restore_state(self, state: Any) -> None:
        if not state.get("log"):
            raise ConnectorError(
                "a job that has read a streaming DataFrame in a classic session cannot continue over Spark Connect"
            )
        self._folder, self._next = state["folder"], state["next"]
        self._has_checkpoint = True

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Remove the entries of batches whose files the readers have deleted. Spark needs the newest entry."""
        self._has_checkpoint = True
        log, left = self._log, set(self._files.names())
        for number in self._numbers()[:-1]:
            if number < self._next and left.isdisjoint(_names_in(log.read(str(number)))):
                log.delete(str(number))

    def close(self) -> None:
        if self._query is not None:
            with suppress(Exception):  # a server that is gone runs no query
                self._query.stop()


@contextmanager
def _settings(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Give a session these settings for a moment."""
    earlier = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, before in earlier.items():
            if before is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, before)


def _names_in(entry: bytes) -> list[str]:
    """Return the names of the files that an entry of the log adds. Its first line is the version of the format."""
    version, *lines = entry.decode().splitlines()
    if version != "v1":
        raise ConnectorError(f"the log of Spark's file sink has the format {version!r}; known is 'v1'")
    added = [json.loads(line) for line in lines]
    return [one["path"].rpartition("/")[2] for one in added if one["action"] == "add"]
