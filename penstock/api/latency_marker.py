"""Latency markers: what sources send along with the records, to measure how long records are on their way."""

from __future__ import annotations

from typing import NamedTuple


class LatencyMarker(NamedTuple):
    """A mark that a source subtask has put between two records. A function with a method `process_latency_marker` is
    given every marker that comes by."""

    marked: float
    """When, by the clock of the machine of that subtask, in milliseconds since 1970."""
    source: str
    """The id of the source, as REST shows it."""
    subtask: int

    def get_marked_time(self) -> int:
        """When the source sent it, in milliseconds since 1970."""
        return int(self.marked)

    def get_operator_id(self) -> str:
        """The id of the source, as REST shows it."""
        return self.source

    def get_vertex_id(self) -> str:
        """The same, under the name of earlier versions of Flink."""
        return self.source

    def get_subtask_index(self) -> int:
        """Which subtask of the source has sent it."""
        return self.subtask
