"""Reads a queue, and acknowledges its messages once a checkpoint contains their effects."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.common.serialization import DeserializationSchema
from penstock.connectors.rabbitmq.connection import Link, is_lost
from penstock.connectors.source_api import Fetched, ReaderContext, SourceReader
from penstock.errors import NotFound, UndecodableRecord
from penstock.persisted import persisted

if TYPE_CHECKING:
    from penstock.connectors.rabbitmq.queues import RMQSource

REMEMBERED_SECONDS = 3600.0
"""Time, in seconds, to remember the id of a message that a new connection may bring again.

The broker gives up an old connection long before.
"""


@persisted
@dataclass(frozen=True)
class Consumer:
    """A split: one consumer of the queue, and the ids of processed messages that may not be acknowledged."""

    split_id: str
    ids: tuple[str, ...] = ()


@dataclass
class _Batch:
    """The messages between two checkpoints."""

    last: int = 0
    """Delivery tag of the last message, in this channel."""
    ids: list[str] = field(default_factory=list)
    checkpoint: int = 0
    """Id of the checkpoint that holds the messages."""


class QueueReader(SourceReader):
    """Reads with the consumers of one subtask, each of which has its own connection."""

    waits_in_a_thread = True

    def __init__(self, source: RMQSource, context: ReaderContext) -> None:
        self._source = source
        self._context = context
        self._consumers: list[QueueConsumer] = []

    def add_splits(self, splits: Sequence[Consumer]) -> None:
        self._consumers += [QueueConsumer(self._source, self._context, split) for split in splits]

    def fetch(self, most: int, wait: float) -> Sequence[Fetched]:
        reading = [consumer for consumer in self._consumers if not consumer.finished]
        fetched = [consumer.fetch(most, 0.0) for consumer in reading]
        found = [part for part in fetched if part.values or part.last]
        if found or not wait or not reading:
            return found
        part = reading[0].fetch(most, wait)
        return [part] if part.values or part.last else []

    def snapshot_state(self) -> Sequence[Consumer]:
        assert self.checkpoint_id is not None
        for consumer in self._consumers:
            consumer.end_batch(self.checkpoint_id)
        return [consumer.split() for consumer in self._consumers if not consumer.finished]

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        for consumer in self._consumers:
            consumer.acknowledge(checkpoint_id)

    def close(self) -> None:
        for consumer in self._consumers:
            consumer.close()


class QueueConsumer:
    """Takes messages from a queue in the order in which the broker sends them.

    The ids of messages that were read on this connection are in batches, to be acknowledged. Ids from a lost connection
    are leftovers: the broker will send their messages again, and they are dropped then.
    """

    def __init__(self, source: RMQSource, context: ReaderContext, split: Consumer) -> None:
        self.finished = False
        self._source = source
        self._context = context
        self._name = split.split_id
        self._commits = context.takes_checkpoints
        self._cancelled = False
        self._arrived: deque[tuple[int, str | None, bytes]] = deque()
        self._current = _Batch()
        self._waiting: list[_Batch] = []
        self._ids: set[str] = set()
        self._leftovers: dict[str, float] = dict.fromkeys(split.ids, time.monotonic())
        self._link = Link(source.connection_config, self._subscribe)

    def split(self) -> Consumer:
        """Return the state for a checkpoint."""
        return Consumer(self._name, (*self._leftovers, *self._ids))

    def close(self) -> None:
        self._link.drop()

    # --- reading ---
    def _subscribe(self, channel: Any, declare: bool) -> None:
        """Start to consume on a new connection. Unacknowledged messages of the previous connection come again."""
        self._leftovers.update(dict.fromkeys(self._ids, time.monotonic()))
        self._ids.clear()
        self._arrived.clear()
        self._waiting.clear()
        self._current = _Batch()
        if declare:
            self._source.setup_queue(channel)
        prefetch = self._source.connection_config.prefetch_count
        if prefetch:
            channel.basic_qos(prefetch_count=prefetch)
        if self._commits:
            channel.tx_select()
        self._cancelled = False
        channel.add_on_cancel_callback(self._cancel)
        channel.basic_consume(self._source.queue_name, self._arrive, auto_ack=not self._commits)

    def _cancel(self, method: Any) -> None:
        self._cancelled = True

    def _arrive(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self._arrived.append((method.delivery_tag, properties.correlation_id, body))

    def fetch(self, most: int, wait: float) -> Fetched:
        if not self._arrived:
            self._link.call(lambda: self._receive(wait), f"reading queue {self._source.queue_name!r}")
        taken = [self._arrived.popleft() for _ in range(min(most, len(self._arrived)))]
        fresh = [message for message in taken if self._is_new(*message)] if self._deduplicates else taken
        values, kept = self._context.decode(
            self._source.deserialization_schema.deserialize,
            [body for _, _, body in fresh],
            lambda i: f"delivery {fresh[i][0]} of queue {self._source.queue_name!r}",
        )
        end = self._end_among(values)
        if end is not None:
            # Messages after the one that ends the stream stay in the queue.
            self.finished = True
            self._current.last = fresh[end if kept is None else kept[end]][0]
            self._arrived.clear()
            return Fetched(self._name, values[:end], last=True)
        if taken:
            self._current.last = taken[-1][0]
        return Fetched(self._name, values)

    def _end_among(self, values: list[Any]) -> int | None:
        schema = self._source.deserialization_schema
        if type(schema).is_end_of_stream is DeserializationSchema.is_end_of_stream:
            return None
        return next((i for i, value in enumerate(values) if schema.is_end_of_stream(value)), None)

    def _receive(self, wait: float) -> None:
        """Let the client read from its socket and send its heartbeats."""
        self._link.connection.process_data_events(time_limit=0)
        if wait and not self._arrived:
            self._link.connection.process_data_events(time_limit=wait)
        if self._cancelled:
            raise NotFound(f"queue {self._source.queue_name!r} was deleted while it was read")

    @property
    def _deduplicates(self) -> bool:
        return self._commits and self._source.use_correlation_id

    def _is_new(self, tag: int, message_id: str | None, body: bytes) -> bool:
        if message_id is None:
            error = UndecodableRecord("a source that uses correlation ids needs one on every message")
            self._context.reject(body, error, f"delivery {tag} of queue {self._source.queue_name!r}")
            return False
        known = message_id in self._ids or message_id in self._leftovers
        self._leftovers.pop(message_id, None)
        self._ids.add(message_id)
        self._current.ids.append(message_id)
        return not known

    # --- acknowledging ---
    def end_batch(self, checkpoint: int) -> None:
        """Assign the messages since the last checkpoint to this one."""
        self._current.checkpoint = checkpoint
        self._waiting.append(self._current)
        self._current = _Batch()
        self._forget()

    def _forget(self) -> None:
        """Forget ids whose messages the broker would have sent again long ago."""
        deadline = time.monotonic() - REMEMBERED_SECONDS
        for message_id in [name for name, since in self._leftovers.items() if since < deadline]:
            del self._leftovers[message_id]

    def acknowledge(self, checkpoint: int) -> None:
        """Acknowledge the messages up to this checkpoint, which no recovery will need.

        If the broker does not get the acknowledgement, it sends these messages again, and their ids are known.
        """
        covered = [batch for batch in self._waiting if batch.checkpoint <= checkpoint]
        self._waiting = self._waiting[len(covered) :]
        last = max((batch.last for batch in covered), default=0)
        if last and self._commits and not self._confirm(last):
            return
        for batch in covered:
            self._ids.difference_update(batch.ids)

    def _confirm(self, last: int) -> bool:
        if self._link.channel is None:
            return False
        try:
            self._link.channel.basic_ack(last, multiple=True)
            self._link.channel.tx_commit()
        except Exception as error:
            if not is_lost(error):
                raise
            self._link.drop()
            return False
        return True
