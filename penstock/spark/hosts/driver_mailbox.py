"""Messages between a driver inside a cluster and its clients, through the Spark Connect server that both reach.

A box is a global temporary view with one row of text. The server keeps it in memory, and shows it to all of its
sessions. Reading and writing a box starts no task, so it works while slots occupy all cores.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

STATUS, CLIENT, SIGNAL = "status", "client", "signal"
"""Boxes for the driver's status, the position of a client, and a signal that a client sends to the program."""
MOST_BYTES = 1 << 17
"""Greatest number of bytes of each output stream that wait for a client. Older bytes are dropped."""


class Mailbox:
    """The boxes of one driver."""

    def __init__(self, session: Any, key: str) -> None:
        self._session = session
        self._prefix = f"penstock_{key}"
        self._database = session.conf.get("spark.sql.globalTempDatabase", "global_temp")

    def open(self) -> None:
        """Create all boxes empty."""
        for box in (STATUS, CLIENT, SIGNAL):
            self.write(box, {})

    def write(self, box: str, content: Mapping[str, Any]) -> None:
        """Replace the content of a box."""
        row = self._session.createDataFrame([(json.dumps(content),)], "content STRING")
        row.createOrReplaceGlobalTempView(self._view(box))

    def read(self, box: str) -> dict[str, Any] | None:
        """Return the content of a box, or None if the server has no such box."""
        try:
            [row] = self._session.table(f"{self._database}.{self._view(box)}").collect()
        except Exception as error:
            if "TABLE_OR_VIEW_NOT_FOUND" in str(error):
                return None
            raise
        content: dict[str, Any] = json.loads(row.content)
        return content

    def remove(self) -> None:
        """Remove all boxes."""
        for box in (STATUS, CLIENT, SIGNAL):
            self._session.catalog.dropGlobalTempView(self._view(box))

    def _view(self, box: str) -> str:
        return f"{self._prefix}_{box}"


class Stream:
    """The last output of a program, from the first byte that no client has read."""

    def __init__(self) -> None:
        self._start = 0
        self._data = b""

    @property
    def end(self) -> int:
        """Number of bytes that the program has printed."""
        return self._start + len(self._data)

    def add(self, data: bytes) -> None:
        """Add output, and drop the oldest bytes if there are too many."""
        self._drop(0, self._data + data)

    def forget(self, position: int) -> None:
        """Drop the bytes before a position, which a client has read."""
        self._drop(max(0, position - self._start), self._data)

    def _drop(self, count: int, data: bytes) -> None:
        count = max(count, len(data) - MOST_BYTES)
        self._start, self._data = self._start + min(count, len(data)), data[count:]

    def description(self) -> dict[str, Any]:
        """Return the kept bytes, in base64, and the position of the first one."""
        return {"start": self._start, "data": base64.b64encode(self._data).decode()}


class Reader:
    """A client's position in one output stream of a program."""

    def __init__(self) -> None:
        self.position = 0

    def take_new(self, description: Mapping[str, Any]) -> tuple[bytes, int]:
        """Return the bytes that were not read yet, and the number of bytes before them that were dropped."""
        start, data = int(description["start"]), base64.b64decode(description["data"])
        dropped = max(0, start - self.position)
        fresh = data[max(0, self.position - start) :]
        self.position = max(self.position, start + len(data))
        return fresh, dropped
