"""The exchange: writers that route the output of an operator to the channels of the next stage."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from operator import length_hint
from typing import Any, NamedTuple, cast

from penstock.api.functions.element_functions import Partitioner
from penstock.api.latency_marker import LatencyMarker
from penstock.engine.exchange.frames import FrameBuilder, Unpicklable
from penstock.engine.observe.slot_activity import Traffic
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import Chunk, Receiver, Timestamps, Values
from penstock.engine.records.failures import USER_ERRORS, OperatorFailed, failure_of
from penstock.engine.state.key_groups import key_group, short_repr, stable_hash, subtask_for_group
from penstock.errors import RecordError, UnsupportedKey

_CACHED_KEYS = 100_000


class Owner(NamedTuple):
    """The operator that routing errors name: the one that records go to, or the one they come from."""

    name: str
    uid: str


class Writer(ABC):
    """Routes the output of one subtask over one edge. A subclass chooses the target of each record.

    Watermarks, idleness and the end go to every connected target, in order with the records.
    """

    def __init__(self, owner: Owner, subtask: int, targets: Sequence[int]) -> None:
        self.owner = owner
        self.subtask = subtask
        self.sent = Traffic()
        self.builders = {target: FrameBuilder(self.sent) for target in targets}
        self._all = list(self.builders.values())
        self._marked = subtask

    @abstractmethod
    def chunk(self, chunk: Chunk) -> None:
        """Route a chunk."""

    def watermark(self, timestamp: int) -> None:
        for builder in self._all:
            builder.watermark(timestamp)

    def status(self, idle: bool) -> None:
        for builder in self._all:
            builder.status(idle)

    def end(self) -> None:
        for builder in self._all:
            builder.end()

    def marker(self, marker: LatencyMarker) -> None:
        """Send the marker to one target. Successive markers go to successive targets.

        Sending each to all targets would multiply the markers by the channels.
        """
        self._all[self._marked % len(self._all)].marker(marker)
        self._marked += 1

    def take(self) -> dict[int, list[bytes]]:
        """Take the frames of this epoch, for each target that has any."""
        taken = {target: self._cut(builder) for target, builder in self.builders.items()}
        return {target: frames for target, frames in taken.items() if frames}

    def count_sent(self) -> int:
        """Return the number of records in finished frames. A record for several targets counts once."""
        return self.sent.records

    def waiting(self) -> int:
        """Return the approximate number of records that have not been taken yet."""
        return sum(builder.waiting() for builder in self._all)

    def turn(self) -> int:
        """Return the next target, for writers that take turns."""
        return 0

    def resume(self, turn: int) -> None:  # noqa: B027 - most take no turns
        """Continue with this target."""

    def failure(self, error: BaseException, record: Any) -> OperatorFailed:
        """Return a failure that names the owner and a record."""
        return OperatorFailed(failure_of(error, self.owner.name, self.owner.uid, self.subtask, record))

    def _scatter(self, columns: Columns, targets: Sequence[int]) -> None:
        """Give every row to its target, which is an index into the targets."""
        for target, part in columns.scatter(targets):
            self._all[target].add_columns(part)

    def _settle(self) -> None:
        try:
            for builder in self._all:
                builder.settle()
        except Unpicklable as error:
            raise self.failure(error, error.record) from error

    def _cut(self, builder: FrameBuilder) -> list[bytes]:
        try:
            return builder.take()
        except Unpicklable as error:
            raise self.failure(error, error.record) from error


class SingleWriter(Writer):
    """Sends everything to one target: for forward into a later stage, and for global."""

    def chunk(self, chunk: Chunk) -> None:
        self._all[0].add(chunk)
        self._settle()


class BroadcastWriter(Writer):
    """Sends everything to every target."""

    def count_sent(self) -> int:
        return self.sent.records // len(self._all)

    def chunk(self, chunk: Chunk) -> None:
        for builder in self._all:
            builder.add(chunk)
        self._settle()


class RoundRobinWriter(Writer):
    """Sends records to the targets in turn: rebalance uses all targets, rescale a few."""

    def __init__(self, owner: Owner, subtask: int, targets: Sequence[int]) -> None:
        super().__init__(owner, subtask, targets)
        self._next = subtask % len(self._all)

    def turn(self) -> int:
        return self._next

    def resume(self, turn: int) -> None:
        self._next = turn

    def chunk(self, chunk: Chunk) -> None:
        width = len(self._all)
        if chunk.columns is None:
            self._values(chunk.values, chunk.timestamps, width)
        else:
            self._scatter(chunk.columns, [(self._next + row) % width for row in range(len(chunk))])
        self._next = (self._next + len(chunk)) % width
        self._settle()

    def _values(self, values: Values, timestamps: Timestamps, width: int) -> None:
        for step in range(min(width, len(values))):
            stamps = None if timestamps is None else timestamps[step::width]
            self._all[(self._next + step) % width].extend(values[step::width], stamps)


class ChosenWriter(Writer):
    """Sends each record to a target that a function of the record chooses."""

    def chunk(self, chunk: Chunk) -> None:
        chosen = None if chunk.columns is None else self.choose_rows(chunk.columns)
        if chosen is not None and chunk.columns is not None:
            self._scatter(chunk.columns, chosen)
        else:
            self._values(chunk.values, chunk.timestamps)
        self._settle()

    def _values(self, values: Values, timestamps: Timestamps) -> None:
        chosen = self.choose(values)
        timed = timestamps is not None
        for builder in self._all:
            builder.expect(timed)
        add = [builder.values.append for builder in self._all]
        for target, value in zip(chosen, values, strict=True):
            add[target](value)
        if timestamps is not None:
            stamp = [builder.timestamps.append for builder in self._all]
            for target, timestamp in zip(chosen, timestamps, strict=True):
                stamp[target](timestamp)

    @abstractmethod
    def choose(self, values: Values) -> list[int]:
        """Return the target of each value, as an index into the targets."""

    def choose_rows(self, columns: Columns) -> Sequence[int] | None:
        """Return the target of each row in columns, or None if their values must be looked at."""
        return None


class ShuffleWriter(ChosenWriter):
    """Sends records to random targets. The generator is seeded, so that an epoch can be repeated."""

    def __init__(self, owner: Owner, subtask: int, targets: Sequence[int]) -> None:
        super().__init__(owner, subtask, targets)
        self._random = random.Random(subtask)

    def choose(self, values: Values) -> list[int]:
        return self._choices(len(values))

    def choose_rows(self, columns: Columns) -> list[int]:
        return self._choices(len(columns))

    def _choices(self, count: int) -> list[int]:
        return self._random.choices(range(len(self._all)), k=count)


class CustomWriter(ChosenWriter):
    """Sends records to the targets that a user's partitioner chooses by the record's key."""

    def __init__(self, owner: Owner, subtask: int, targets: Sequence[int], partitioner: Any, key_of: Any) -> None:
        super().__init__(owner, subtask, targets)
        self._partition = partitioner.partition if isinstance(partitioner, Partitioner) else partitioner
        self._key_of = key_of

    def choose(self, values: Values) -> list[int]:
        width, feed, chosen = len(self._all), iter(values), list[int]()
        value: Any = None
        try:
            for value in feed:
                target = self._partition(self._key_of(value), width)
                if not isinstance(target, int) or not 0 <= target < width:
                    raise RecordError(
                        f"the partitioner chose {target!r}; allowed are whole numbers from 0 to {width - 1}"
                    )
                chosen.append(target)
        except USER_ERRORS as error:
            raise self.failure(error, value) from error
        return chosen


class KeyGroupWriter(ChosenWriter):
    """Sends each record to the target that owns the key group of its key."""

    def __init__(
        self, owner: Owner, subtask: int, targets: Sequence[int], key_of: Callable[[Any], Any], max_parallelism: int
    ) -> None:
        super().__init__(owner, subtask, targets)
        self._key_of = key_of
        self._target_of = _TargetOfKey(len(targets), max_parallelism)

    def choose(self, values: Values) -> list[int]:
        feed, key_of, target_of = iter(values), self._key_of, self._target_of
        try:
            return [target_of[key_of(value)] for value in feed]
        except USER_ERRORS as error:
            value = values[len(values) - length_hint(feed) - 1]
            raise self.failure(_key_error(error, key_of, value), value) from error

    def choose_rows(self, columns: Columns) -> Sequence[int] | None:
        """Return the target of each row, or None if a key is refused.

        Each distinct key is hashed once. If a key is refused, the values show the record with that key.
        """
        try:
            hashes = columns.key_hashes(self._key_of)
            if hashes is not None:
                return self._target_of.targets(hashes)
            found = columns.keys(self._key_of)
            return None if found is None else found.spread([self._target_of[key] for key in found.distinct])
        except USER_ERRORS:
            return None


class _TargetOfKey(dict[Any, int]):
    """The target of each key, computed once per key. The cache is bounded."""

    def __init__(self, targets: int, max_parallelism: int) -> None:
        self._targets = targets
        self._max_parallelism = max_parallelism

    def __missing__(self, key: Any) -> int:
        if len(self) >= _CACHED_KEYS:
            self.clear()
        group = key_group(key, self._max_parallelism)
        target = self[key] = subtask_for_group(group, self._max_parallelism, self._targets)
        return target

    def targets(self, hashes: Any) -> Sequence[int]:
        """Return the targets of many keys, from a numpy array of their hashes."""
        found: Any = subtask_for_group(hashes % self._max_parallelism, self._max_parallelism, self._targets)
        return cast("Sequence[int]", found)


class KeyCheck:
    """Refuses values that cannot be keys, where a keyed edge needs no exchange because both sides have one subtask."""

    def __init__(self, owner: Owner, receiver: Receiver, key_of: Callable[[Any], Any]) -> None:
        self._owner = owner
        self._receiver = receiver
        self._key_of = key_of
        self._known: set[Any] = set()
        self.watermark = receiver.watermark
        self.status = receiver.status
        self.end = receiver.end
        self.marker = receiver.marker

    def chunk(self, chunk: Chunk) -> None:
        if chunk.columns is None or not self._accepts(chunk.columns):
            self._check(chunk.values)
        self._receiver.chunk(chunk)

    def _accepts(self, columns: Columns) -> bool:
        """Return True if all keys are valid. If not, the values show the record with an invalid key."""
        try:
            found = columns.keys(self._key_of)
            return found is not None and all(stable_hash(key) >= 0 for key in found.distinct)
        except USER_ERRORS:
            return False

    def _check(self, values: Values) -> None:
        known, key_of, value = self._known, self._key_of, None
        try:
            for value in values:
                key = key_of(value)
                if key not in known:
                    stable_hash(key)
                    known.add(key)
        except USER_ERRORS as error:
            cause = _key_error(error, key_of, value)
            raise OperatorFailed(failure_of(cause, self._owner.name, self._owner.uid, 0, value)) from error
        if len(known) > _CACHED_KEYS:
            known.clear()


def _key_error(error: BaseException, key_of: Callable[[Any], Any], value: Any) -> BaseException:
    """Return an error that explains that a key, such as a list, is not hashable.

    Other errors of the key selector are returned unchanged.
    """
    if not isinstance(error, TypeError) or "unhashable" not in str(error):
        return error
    try:
        key = key_of(value)
    except USER_ERRORS:
        return error
    return UnsupportedKey(
        f"{short_repr(key)} of type {type(key).__name__} cannot be a key, since it is not hashable: return a tuple, a "
        "string or a number from the key selector"
    )
