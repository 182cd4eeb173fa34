"""The source of a connector: its enumerator on the driver, its readers in the slots, and event time by split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.api.functions.contexts import RuntimeContext
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.connectors import source_api as base
from penstock.connectors.source_api import BadRecord, BadRecords, Boundedness, Fetched, ReaderContext
from penstock.engine.operators.functions.slot_contexts import SlotRuntimeContext
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.operators.sources.discovery import Discovery, Find, TimedDiscovery, look
from penstock.engine.operators.sources.record_waiter import Watch
from penstock.engine.operators.sources.source_operator import CHUNK_RECORDS, Budget, Enumerator, Reader, Source
from penstock.engine.operators.sources.split_times import SplitTimes
from penstock.engine.records.columns import Columns, GatheredColumns, times_of
from penstock.engine.records.elements import Chunk, Receiver
from penstock.engine.state.key_groups import short_repr
from penstock.errors import UndecodableRecord
from penstock.formats.batch_of_rows import BatchOfRows, GatheredRows

WHOLE = ""
"""Stands for all splits of a source with only one event time."""
Assignment = tuple[list[Any], bool]
"""New splits for a subtask, and whether more may follow."""


@dataclass
class SplitSource(Source):
    """A connector's source with its watermark strategy."""

    connector: base.Source
    strategy: WatermarkStrategy
    bad_records: BadRecords = field(default_factory=BadRecords)

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        return self.connector.get_boundedness() is Boundedness.BOUNDED

    def reader(self, context: OperatorContext, position: Any = None) -> Reader:
        return SplitsReader(self, context, position)

    def redistribute(self, positions: list[Any], parallelism: int) -> list[Any]:
        """Give each split, with its event time, to the subtask that the connector chooses."""
        shares: list[dict[str, Any]] = [{"splits": [], "times": {}, "reached": None} for _ in range(parallelism)]
        splits = sorted((split for before in positions for split in before["splits"]), key=lambda s: str(s.split_id))
        times = {name: progress for before in positions for name, progress in before["times"].items()}
        for turn, split in enumerate(splits):
            share = shares[self.connector.owner(split, turn, parallelism) % parallelism]
            share["splits"].append(split)
            if split.split_id in times:
                share["times"][split.split_id] = times[split.split_id]
        return shares

    def enumerator(self) -> Enumerator | None:
        return SplitAssigner(self.connector)


class SplitsReader(Reader):
    """Reads the splits of one subtask. Its position consists of the splits, their positions and their event times."""

    def __init__(self, source: SplitSource, context: OperatorContext, position: Any) -> None:
        self._per_split = source.connector.watermarks_per_split
        self._context = context
        self._source = source
        self._times: SplitTimes | None = None
        self._position = position
        self._open: set[str] = set()
        self._completed: list[int] = []
        self._may_get_more = True
        self._rejects = _SlotReaderContext(source.bad_records, context)
        self._reader = source.connector.create_reader(self._rejects)
        watched = context.bell.works and self._reader.waits_in_a_thread
        self._watch = Watch(self._reader, context.bell.ring, self._notify, context.name) if watched else None
        if position is not None:
            self._take(position["splits"])

    def bind(self, output: Receiver) -> None:
        """Set the receiver of records and watermarks, before the first epoch."""
        self._times = SplitTimes(self._source.strategy, self._context, output, lambda: bool(self._open))
        restored, position = self._context.restored, self._position
        self._position = None
        if position is not None and restored is not None and not restored.drained:
            self._times.resume(position["times"], position["reached"] if restored.continued else None)

    def _take(self, splits: Sequence[Any]) -> None:
        if splits:
            self._open.update(split.split_id for split in splits)
            self._reader.add_splits(splits)

    def poll(self, output: Receiver, budget: Budget) -> int:
        if self._watch is None:
            return self._read(budget)
        if not self._watch.enter(patience=budget.settles or budget.payload is not None):
            return 0
        try:
            self._notify()
            return self._emit_all(self._watch.take_found()) or self._read(budget)
        finally:
            self._watch.leave()

    def _read(self, budget: Budget) -> int:
        self._accept(budget)
        taken = 0
        while not taken and self._open:
            fetched = self._reader.fetch(max(1, min(CHUNK_RECORDS, budget.records)), budget.wait)
            budget.wait = 0.0
            if not fetched:
                self._rejects.emit()
                break
            taken = self._emit_all(fetched)
            if budget.spent():
                break
        self.finished = not self._open and not self._may_get_more
        return taken

    def _emit_all(self, fetched: Sequence[Fetched]) -> int:
        self._rejects.emit()
        return sum(self._emit(part) for part in fetched)

    def settle(self, output: Receiver) -> None:
        if self._watch is not None:
            self._watch.enter(patience=True)
            try:
                self._notify()
                self._emit_all(self._watch.take_found())
            finally:
                self._watch.leave()

    def watch(self) -> None:
        if self._watch is not None and self._open:
            self._watch.begin()

    def has_news(self) -> bool:
        return self._watch is not None and self._watch.has_news()

    def _accept(self, budget: Budget) -> None:
        """Take over the splits that the driver has assigned."""
        if budget.payload is None:
            return
        (splits, self._may_get_more), budget.payload = budget.payload, None
        self._take(splits)
        if not self._reader.reads_in_turn and self._per_split and self._times is not None:
            for split in splits:
                self._times.add(split.split_id)

    def _emit(self, fetched: Fetched) -> int:
        assert self._times is not None
        name = fetched.split_id if self._per_split else WHOLE
        if fetched.values:
            self._times.chunk(name, _chunk_of(fetched))
        if fetched.last:
            self._open.discard(fetched.split_id)
            if self._per_split:
                self._times.remove(name)
        return len(fetched.values)

    def end_epoch(self) -> None:
        if self._times is not None:
            self._times.end_epoch()

    def next_due(self) -> int | None:
        return self._times.next_due() if self._times is not None else None

    def waits_for_input(self) -> bool:
        if self._context.bell.works:
            return self._watch is None and self._reader.waits()
        return self._may_get_more or self._reader.waits()

    # --- checkpoints ---
    def begin_checkpoint(self, checkpoint: int) -> None:
        self._reader.checkpoint_id = checkpoint

    def position(self) -> dict[str, Any]:
        assert self._times is not None
        splits = list(self._reader.snapshot_state())
        return {"splits": splits, "times": self._times.progress(), "reached": self._times.progress_downstream()}

    def checkpoint_complete(self, checkpoint: int) -> None:
        """Tell the reader about the checkpoint as soon as no other thread uses the reader."""
        self._completed.append(checkpoint)
        if self._watch is None:
            self._notify()

    def _notify(self) -> None:
        while self._completed:
            self._reader.notify_checkpoint_complete(self._completed.pop(0))

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._notify()
        self._reader.close()


def _chunk_of(fetched: Fetched) -> Chunk:
    values, stamps = fetched.values, fetched.timestamps
    if isinstance(values, GatheredRows):
        return Chunk.of(GatheredColumns(values, stamps))  # type: ignore[arg-type]
    if isinstance(values, BatchOfRows):
        return Chunk.of(Columns(values.batch, None if stamps is None else times_of(stamps)))
    return Chunk(values if isinstance(values, list) else list(values), stamps)  # type: ignore[arg-type]


class _SlotReaderContext(ReaderContext):
    """Decodes records, and handles those that cannot be decoded."""

    def __init__(self, policy: BadRecords, context: OperatorContext) -> None:
        self._policy = policy
        self._context = context
        self._aside: list[BadRecord] = []
        self._count = context.metrics.counter("numBadRecords")
        context.metrics.counter("numRecordsInErrors", self._count)

    @property
    def runtime(self) -> RuntimeContext:
        return SlotRuntimeContext(self._context, None)

    @property
    def takes_checkpoints(self) -> bool:
        return self._context.tracks_changes

    def decode(
        self, decode: Callable[[Any], Any], messages: list[Any], position: Callable[[int], str]
    ) -> tuple[list[Any], list[int] | None]:
        try:
            values = [decode(message) for message in messages]
        except Exception:
            # Some message is bad. The slower way finds out which.
            return self._decode_each(decode, messages, position)
        # Compare by identity: the equality of a value costs time, and may not be a truth value.
        kept = [value for value in values if value is not None]
        if len(kept) == len(values):
            return values, None
        return kept, [index for index, value in enumerate(values) if value is not None]

    def _decode_each(
        self, decode: Callable[[Any], Any], messages: list[Any], position: Callable[[int], str]
    ) -> tuple[list[Any], list[int] | None]:
        values, kept = [], []
        for index, message in enumerate(messages):
            try:
                value = decode(message)
            except Exception as error:
                self.reject(message, error, position(index))
            else:
                if value is not None:
                    values.append(value)
                    kept.append(index)
        return values, kept

    def reject(self, message: Any, error: Exception, position: str) -> None:
        if self._policy.action == "fail":
            raise UndecodableRecord(
                f"the record at {position} cannot be decoded: {error}: {short_repr(message)}"
            ) from error
        self._count.inc()
        if self._policy.tag is not None:
            self._aside.append(BadRecord(message, f"{type(error).__name__}: {error}", position))

    def emit(self) -> None:
        """Send the rejected records to their side output."""
        if self._aside and self._policy.tag is not None:
            aside, self._aside = self._aside, []
            receiver = self._context.side_outputs.get(self._policy.tag.tag_id)
            if receiver is not None:
                receiver.chunk(Chunk(aside))


class SplitAssigner(Enumerator):
    """Distributes the splits of an enumerator over the subtasks.

    It looks for splits at once, also after a restore. Later it looks in a separate thread, so that a slow external
    system does not block the job. With an interval of 0 it always looks at once. In a job in virtual time it looks when
    that is due, without a thread.
    """

    def __init__(self, connector: base.Source) -> None:
        self._connector = connector
        self._enumerator = connector.create_enumerator()
        self._use(Discovery(self._enumerator, self._tell))
        self._turn = 0
        self._looked = False
        self._more = True
        self._told: bool | None = None
        """The last answer to the readers whether more splits may follow; None before the first answer."""
        self._state: Any = None

    def _use(self, discovery: Discovery | TimedDiscovery) -> None:
        self._discovery = discovery
        self._enumerator.news = discovery.look_now

    def keep_time(self, now: Callable[[], int]) -> None:
        self._use(TimedDiscovery(self._enumerator, self._tell, now))

    @property
    def exhausted(self) -> bool:  # type: ignore[override]
        return self._told is not None

    def assign(self, parallelism: int, max_records: int) -> list[Any]:
        splits = self._new_splits()
        if not splits and self._told is self._more:
            return [None] * parallelism
        self._told = self._more
        shares: list[Assignment] = [([], self._more) for _ in range(parallelism)]
        for split in splits:
            shares[self._connector.owner(split, self._turn, parallelism) % parallelism][0].append(split)
            self._turn += 1
        return shares

    def _new_splits(self) -> Sequence[Any]:
        """Return the new splits with the state of the enumerator at that time.

        The enumerator's thread may find more before they are distributed.
        """
        find = self._find()
        if find is None:
            return ()
        self._state, self._more = find.state, find.more
        return find.splits

    def _find(self) -> Find | None:
        if self._looked and self._enumerator.discovery_interval != 0:
            return self._discovery.take()
        self._looked = True
        found = look(self._enumerator)
        if self._enumerator.discovery_interval:
            self._discovery.start()
        return found

    def _tell(self) -> None:
        self.news()

    def due_in(self) -> float | None:
        return 0.0 if self._enumerator.discovery_interval == 0 else self._discovery.due_in()

    def position(self) -> Any:
        return {"state": self._state, "turn": self._turn}

    def resume(self, position: Any) -> None:
        """Continue from a position. The readers know the splits that were found before."""
        self._state, self._turn = position["state"], position["turn"]
        self._enumerator.restore_state(self._state)
        # New splits must be known before the readers go on with old ones, or their records would be late.
        self._more = self._enumerator.discovery_interval is not None
        self._looked = not self._more

    def checkpoint_complete(self, checkpoint: int) -> None:
        self._enumerator.notify_checkpoint_complete(checkpoint)

    def close(self) -> None:
        self._discovery.close()
        self._enumerator.close()
