"""Latency markers, which sources send between records to measure the time that records take on their way."""

from __future__ import annotations

from typing import NamedTuple


class LatencyMarker(NamedTuple):
    """A mark that a source subtask sends between two records.

    A function with a method `process_latency_marker` receives every marker that passes.
    """

    marked: float
    """Time of sending by the clock of the source's machine, in milliseconds since 1970."""
    source: str
    """Id of the source, as REST shows it."""
    subtask: int

    def get_marked_time(self) -> int:
        """Return the time at which the source sent the marker, in milliseconds since 1970."""
        return int(self.marked)

    def get_operator_id(self) -> str:
        """Return the id of the source, as REST shows it."""
        return self.source

    def get_vertex_id(self) -> str:
        """Return the id of the source, under the name of earlier versions of Flink."""
        return self.source

    def get_subtask_index(self) -> int:
        """Return the number of the source subtask that sent the marker."""
        return self.subtask
