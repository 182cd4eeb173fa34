"""A small source to test with: logs that are read from a place, as partitions of a topic would be."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from penstock.common import WatermarkStrategy
from penstock.datastream.connectors.base import (
    Boundedness,
    Fetched,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)

FOREVER = None
"""At the end of a log: nothing more comes, but the log goes on."""


@dataclass(frozen=True)
class LogSplit:
    split_id: str
    next: int = 0


@dataclass
class Logs(Source):
    """Each log is a list of (timestamp, message); `appears` says at which look of the enumerator a log is there."""

    logs: dict[str, list[Any]]
    appears: dict[str, int] = field(default_factory=dict)
    bounded: bool = True
    most: int = 3
    missing: Exception | None = None
    decode: Any = None

    def get_boundedness(self):
        return Boundedness.BOUNDED if self.bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self):
        return LogEnumerator(self)

    def create_reader(self, context: ReaderContext):
        return LogReader(self, context)


class LogEnumerator(SplitEnumerator):
    def __init__(self, source):
        self.source = source
        self.looks = 0
        self.known = []
        self.completed = []
        self.discovery_interval = 0 if source.appears else None

    def discover(self):
        if self.source.missing is not None:
            raise self.source.missing
        self.looks += 1
        there = [name for name in self.source.logs if self.source.appears.get(name, 0) < self.looks]
        new = [name for name in there if name not in self.known]
        self.known.extend(new)
        if len(self.known) == len(self.source.logs) and self.source.bounded:
            self.discovery_interval = None
        return [LogSplit(name) for name in new]

    def snapshot_state(self):
        return list(self.known)

    def restore_state(self, state):
        self.known = list(state)


class LogReader(SourceReader):
    def __init__(self, source, context):
        self.source = source
        self.context = context
        self.splits = {}

    def add_splits(self, splits):
        self.splits.update({split.split_id: split for split in splits})

    def fetch(self, most, wait):
        fetched = []
        for name, split in list(self.splits.items()):
            log = self.source.logs[name]
            part = log[split.next : split.next + min(self.source.most, most)]
            last = bool(part) or not log
            place = split.next + len(part)
            last = place >= len(log) and (not log or log[-1] is not FOREVER)
            entries = [entry for entry in part if entry is not FOREVER]
            if last:
                del self.splits[name]
            else:
                self.splits[name] = replace(split, next=min(place, len(log)))
            if not part and not last:
                continue
            values, stamps = [value for _, value in entries], [stamp for stamp, _ in entries]
            if self.source.decode is not None:
                values, kept = self.context.decode(
                    self.source.decode, values, lambda i, name=name, at=split.next: f"{name}@{at + i}"
                )
                stamps = stamps if kept is None else [stamps[i] for i in kept]
            fetched.append(Fetched(name, values, stamps, last))
            most -= len(part)
            if most <= 0:
                break
        return fetched

    def snapshot_state(self):
        return list(self.splits.values())


def by_record_time(delay=0):
    from penstock.common import Duration

    return WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(delay))
