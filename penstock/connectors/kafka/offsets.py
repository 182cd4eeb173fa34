"""The offsets at which reading starts and stops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from penstock.base.arguments import check_arguments
from penstock.connectors.kafka.kafka_client import ANSWER_SECONDS, Client, library
from penstock.errors import NotFound
from penstock.persisted import persisted_in

EARLIEST, LATEST = -2, -1
"""Stand-ins for timestamps in requests for offsets, as in Kafka's protocol."""


@check_arguments
@persisted_in("penstock.datastream.connectors.kafka")
@dataclass(frozen=True, order=True)
class KafkaTopicPartition:
    """One partition of a topic."""

    topic: str
    partition: int

    def __post_init__(self) -> None:
        if not isinstance(self.topic, str) or not self.topic:
            raise TypeError(f"a topic is named by a string, not by {self.topic!r}")
        if not isinstance(self.partition, int) or self.partition < 0:
            raise ValueError(f"a partition is a number from 0, not {self.partition!r}")

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class KafkaOffsetResetStrategy(Enum):
    """The start for partitions without a stored offset."""

    LATEST = 0
    EARLIEST = 1
    NONE = 2

    @property
    def timestamp(self) -> int | None:
        """Number that stands for this start in a request for offsets; None for NONE."""
        return {"LATEST": LATEST, "EARLIEST": EARLIEST}.get(self.name)


class OffsetFinder:
    """Asks the servers for offsets, for many partitions in one request."""

    def __init__(self, client: Client, group: str | None) -> None:
        self.client = client
        self.group = group

    def at(self, partitions: Sequence[KafkaTopicPartition], timestamp: int) -> dict[KafkaTopicPartition, int]:
        """Return the first offset with at least this timestamp, EARLIEST or LATEST; if there is none, the end."""
        found = self._at(partitions, timestamp)
        beyond = [where for where, offset in found.items() if offset < 0]
        return found | self._at(beyond, LATEST) if beyond else found

    def _at(self, partitions: Sequence[KafkaTopicPartition], timestamp: int) -> dict[KafkaTopicPartition, int]:
        made = library().TopicPartition
        asked = [made(where.topic, where.partition, timestamp) for where in partitions]
        answers = self.client.call(
            lambda client: _check(client.offsets_for_times(asked, timeout=ANSWER_SECONDS)), "offsets"
        )
        return {KafkaTopicPartition(one.topic, one.partition): one.offset for one in answers}

    def offsets_of_group(self, partitions: Sequence[KafkaTopicPartition]) -> dict[KafkaTopicPartition, int]:
        """Return the offsets that the group has committed, for partitions that have one."""
        if self.group is None:
            raise ValueError("committed offsets belong to a consumer group: call set_group_id()")
        made = library().TopicPartition
        asked = [made(where.topic, where.partition) for where in partitions]
        answers = self.client.call(
            lambda client: _check(client.committed(asked, timeout=ANSWER_SECONDS)),
            f"the committed offsets of group {self.group!r}",
        )
        return {KafkaTopicPartition(one.topic, one.partition): one.offset for one in answers if one.offset >= 0}


def _check(answers: list[Any]) -> list[Any]:
    for answer in answers:
        if answer.error is not None:
            raise library().KafkaException(answer.error)
    return answers


@check_arguments
class KafkaOffsetsInitializer(ABC):
    """Determines the offset at which each partition starts, or stops."""

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """Take the offsets that the group has committed. The strategy is for partitions without one."""
        return _Committed(_strategy(offset_reset_strategy))

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """Start at the first record with at least this timestamp, in epoch milliseconds, or at the end if there is
        none.
        """
        if not isinstance(timestamp, int) or timestamp < 0:
            raise ValueError(f"a timestamp is a number of milliseconds since the epoch, not {timestamp!r}")
        return _At(timestamp)

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """Take the first record that is still in the topic."""
        return _At(EARLIEST, KafkaOffsetResetStrategy.EARLIEST)

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """Take the end, as it is when the job starts."""
        return _At(LATEST, KafkaOffsetResetStrategy.LATEST)

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """Take these offsets. The strategy is for other partitions, and for offsets that no longer exist."""
        for where, offset in offsets.items():
            if not isinstance(where, KafkaTopicPartition):
                raise TypeError(f"offsets are given by KafkaTopicPartition, not by {where!r}")
            if not isinstance(offset, int) or offset < 0:
                raise ValueError(f"the offset of {where} must be a number from 0, but is {offset!r}")
        return _Given(dict(offsets), _strategy(offset_reset_strategy))

    reset: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE
    """Start for a partition whose offset does not exist when the job starts."""
    needs_group = False

    @abstractmethod
    def find(self, partitions: Sequence[KafkaTopicPartition], finder: OffsetFinder) -> dict[KafkaTopicPartition, int]:
        """Return the offset for each partition."""


def _strategy(given: Any) -> KafkaOffsetResetStrategy:
    if not isinstance(given, KafkaOffsetResetStrategy):
        raise TypeError(f"the reset strategy must be a KafkaOffsetResetStrategy, but is {given!r}")
    return given


@dataclass(frozen=True)
class _At(KafkaOffsetsInitializer):
    when: int
    reset: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE

    def find(self, partitions: Sequence[KafkaTopicPartition], finder: OffsetFinder) -> dict[KafkaTopicPartition, int]:
        return finder.at(partitions, self.when)


@dataclass(frozen=True)
class _Committed(KafkaOffsetsInitializer):
    reset: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE
    needs_group = True

    def find(self, partitions: Sequence[KafkaTopicPartition], finder: OffsetFinder) -> dict[KafkaTopicPartition, int]:
        what = f"group {finder.group!r} has committed nothing"
        return _complete(finder.offsets_of_group(partitions), partitions, finder, self.reset, what)


@dataclass(frozen=True)
class _Given(KafkaOffsetsInitializer):
    given: dict[KafkaTopicPartition, int] = field(default_factory=dict)
    reset: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST

    def find(self, partitions: Sequence[KafkaTopicPartition], finder: OffsetFinder) -> dict[KafkaTopicPartition, int]:
        known = {where: self.given[where] for where in partitions if where in self.given}
        return _complete(known, partitions, finder, self.reset, "no offset was given")


def _complete(
    known: dict[KafkaTopicPartition, int],
    partitions: Sequence[KafkaTopicPartition],
    finder: OffsetFinder,
    reset: KafkaOffsetResetStrategy,
    what: str,
) -> dict[KafkaTopicPartition, int]:
    missing = [where for where in partitions if where not in known]
    if not missing:
        return known
    if reset.timestamp is None:
        names = ", ".join(map(str, sorted(missing)[:5])) + (", ..." if len(missing) > 5 else "")
        raise NotFound(
            f"{what} for {names}; set a KafkaOffsetResetStrategy (EARLIEST or LATEST) that chooses the start in "
            "this case"
        )
    return known | finder.at(missing, reset.timestamp)
