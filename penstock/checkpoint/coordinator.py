"""The driver's side of checkpoints: when one is due, gathering what the slots say, publishing, telling, deleting.

Knows no clock and no cluster: time and acknowledgements are handed in, orders and notices are taken out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from penstock import pickling
from penstock.checkpoint.metadata import Metadata, fingerprint, shapes_of
from penstock.checkpoint.store import CheckpointStore, delete_snapshot, discard_savepoint, write_savepoint
from penstock.errors import AlreadyThere, CheckpointFailed, PenstockError, StorageError
from penstock.graph.plan import Plan
from penstock.runtime.protocol import Acknowledgement, CheckpointOrder, Notice
from penstock.state.snapshot import SlotSnapshot
from penstock.storage import split_url

log = logging.getLogger("penstock.checkpoint")


@dataclass(frozen=True)
class CheckpointRules:
    """When checkpoints are taken and how much may go wrong. Times in milliseconds."""

    interval: int | None = None
    """None: only savepoints, when asked for."""
    timeout: int = 600_000
    min_pause: int = 0
    max_concurrent: int = 1
    tolerable_failures: int = 0
    retained: int = 1


@dataclass
class SavepointRequest:
    """Someone wants a savepoint; the future gets its path, or why there is none."""

    folder: str
    stop: bool = False
    drain: bool = False
    done: Future[str] = field(default_factory=Future)


@dataclass
class Completed:
    """What the history of checkpoints tells about one of them."""

    number: int
    path: str
    savepoint: bool
    started: int
    millis: int
    """From the order to the publication."""
    size: int
    written: int
    """Bytes that were new."""
    sync_millis: float
    async_millis: float


@dataclass
class _Pending:
    order: CheckpointOrder
    epoch: int
    deadline: int
    enumerators: dict[str, bytes]
    base: int
    """The newest checkpoint that was complete when it began: the one it may build on."""
    request: SavepointRequest | None = None
    answers: dict[int, Acknowledgement] = field(default_factory=dict)


class Coordinator:
    """Runs the checkpoints of one job."""

    def __init__(self, plan: Plan, job_id: str, rules: CheckpointRules, store: CheckpointStore, first: int = 1) -> None:
        self._plan = plan
        self._job_id = job_id
        self._rules = rules
        self._store = store
        self._next = self._since = first
        self._pending: dict[int, _Pending] = {}
        self._notices: list[Notice] = []
        self._failures = 0
        self._begun = 0
        self._ended: int | None = None
        self._undeleted: list[Metadata] = []
        self._claimed: str | None = None
        self.kept: list[Metadata] = []
        """Complete checkpoints of this job that are retained, oldest first."""
        self.last_savepoint: Metadata | None = None
        """The savepoint with which the job was stopped, once it is complete."""
        self.last_epoch = -1
        """The epoch that it covers: what comes later belongs to whoever goes on from it."""
        self.history: list[Completed] = []
        self.on_complete: Callable[[int, int], None] = lambda checkpoint, epoch: None
        """Told the epoch that a complete checkpoint covers."""

    def adopt(self, earlier: Iterable[Metadata], claimed: str | None = None, everything: bool = False) -> None:
        """Take over checkpoints of an earlier run, and a snapshot that was given away; both go after the next one.

        With `everything`, this is that job, and whatever lies in its folder is its own.
        """
        self._undeleted += earlier
        self._claimed = claimed
        if everything:
            self._since = 0

    # --- when ---
    def start(self, now: int) -> None:
        """The job starts, or starts again: what was under way is given up."""
        for pending in list(self._pending.values()):
            self._give_up(pending, "the job is restarting", count=False)
        self._notices.clear()
        self._failures = 0
        self._begun = now

    def next_due(self) -> int | None:
        """When the next checkpoint should begin; None if none should."""
        rules = self._rules
        periodic = [p for p in self._pending.values() if p.request is None]
        if rules.interval is None or len(periodic) >= rules.max_concurrent:
            return None
        due = self._begun + rules.interval
        return due if self._ended is None else max(due, self._ended + rules.min_pause)

    def has_news(self) -> bool:
        """Whether slots are to be told something, or have something to tell."""
        return bool(self._notices or self._pending)

    def awaits_slots(self) -> bool:
        return bool(self._pending)

    # --- orders and notices ---
    def order(self, now: int, epoch: int, positions: dict[str, Any]) -> CheckpointOrder | None:
        """A checkpoint for this epoch, if one is due."""
        due = self.next_due()
        return self.begin(now, epoch, positions) if due is not None and due <= now else None

    def begin(
        self, now: int, epoch: int, positions: dict[str, Any], request: SavepointRequest | None = None
    ) -> CheckpointOrder:
        """Start a checkpoint, or the savepoint that was asked for."""
        number, self._next = self._next, self._next + 1
        folder = self._store.folder(number) if request is None else request.folder
        order = CheckpointOrder(number, now, folder, savepoint=request is not None)
        enumerators = {uid: pickling.dumps(position) for uid, position in positions.items()}
        self._pending[number] = _Pending(order, epoch, now + self._rules.timeout, enumerators, self._newest(), request)
        if request is None:
            self._begun = now
        return order

    def _newest(self) -> int:
        return max((metadata.number for metadata in (*self._undeleted, *self.kept)), default=0)

    def take_notices(self) -> list[Notice]:
        """What became of checkpoints since the last command."""
        notices, self._notices = self._notices, []
        return notices

    # --- answers ---
    def receive(self, answers: list[Acknowledgement], now: int) -> None:
        """Take in what the slots say; publish what is complete, give up what failed or took too long."""
        for answer in sorted(answers, key=lambda a: (a.number, a.slot)):
            pending = self._pending.get(answer.number)
            if pending is None:
                self._discard(_new_files(answer))
            elif answer.failure is not None:
                self._give_up(pending, answer.failure.describe())
            else:
                pending.answers[answer.slot] = answer
                if len(pending.answers) == self._plan.slots:
                    self._complete(pending, now)
        for pending in [p for p in self._pending.values() if now >= p.deadline]:
            self._give_up(pending, f"it was not complete after {self._rules.timeout} ms")

    def _discard(self, files: list[str]) -> None:
        """Delete files that came too late, of a checkpoint or a savepoint."""
        self._store.discard(files)
        for url in files:
            folder, _ = split_url(url)
            if not folder.startswith(self._store.folder(0).rpartition("/")[0] + "/"):
                discard_savepoint(folder, [url], uncertain=False)

    def _complete(self, pending: _Pending, now: int) -> None:
        metadata = self._metadata(pending)
        try:
            path = self._publish(pending, metadata)
        except PenstockError as error:
            # What someone else has put there is not ours to take away.
            self._give_up(pending, str(error), uncertain=not isinstance(error, AlreadyThere))
            return
        del self._pending[pending.order.number]
        self.history = [*self.history[-99:], _completed(pending, metadata, path, now)]
        request = pending.request
        if request is not None:
            request.done.set_result(path)
            if request.stop:
                self.last_savepoint, self.last_epoch = metadata, pending.epoch
                self._notices.append(Notice(metadata.number, complete=True, savepoint=True))
            return
        self._failures = 0
        self._ended = now
        self._subsume(metadata.number)
        self._notices.append(Notice(metadata.number, complete=True))
        self._retain(metadata)
        self.on_complete(metadata.number, pending.epoch)

    def _subsume(self, number: int) -> None:
        """An older checkpoint that is still under way must never become the newest."""
        for pending in [p for p in self._pending.values() if p.request is None and p.order.number < number]:
            self._give_up(pending, f"checkpoint {number} is complete", count=False)

    def _metadata(self, pending: _Pending) -> Metadata:
        slots = [pending.answers[slot].snapshot or SlotSnapshot([]) for slot in range(self._plan.slots)]
        return Metadata(
            number=pending.order.number,
            timestamp=pending.order.timestamp,
            job_id=self._job_id,
            job_name=self._plan.job_name,
            shapes=shapes_of(self._plan),
            slots=slots,
            fingerprint=fingerprint(self._plan),
            savepoint=pending.request is not None,
            drained=pending.request is not None and pending.request.drain,
            enumerators=pending.enumerators,
        )

    def _publish(self, pending: _Pending, metadata: Metadata) -> str:
        if pending.request is None:
            return self._store.publish(metadata)
        write_savepoint(metadata, pending.request.folder)
        return pending.request.folder

    def _retain(self, metadata: Metadata) -> None:
        """Older checkpoints go when newer ones are complete; while one is under way it may build on any of them."""
        self.kept.append(metadata)
        self._undeleted += self.kept[: -self._rules.retained]
        self.kept = self.kept[-self._rules.retained :]
        oldest = min((pending.base for pending in self._pending.values()), default=metadata.number)
        dropped = [old for old in self._undeleted if old.number < oldest]
        self._undeleted = [old for old in self._undeleted if old.number >= oldest]
        if dropped:
            self._store.drop(dropped, [*self._undeleted, *self.kept])
        if self._claimed is not None:
            claimed, self._claimed = self._claimed, None
            self._delete_claimed(claimed)

    @staticmethod
    def _delete_claimed(path: str) -> None:
        try:
            delete_snapshot(path)
        except PenstockError as error:
            log.warning("%s; it is left behind", error)

    def _give_up(self, pending: _Pending, why: str, *, count: bool = True, uncertain: bool = False) -> None:
        """Forget a checkpoint. If it is uncertain whether it was published, its files go when it surely was not."""
        number = pending.order.number
        self._pending.pop(number, None)
        files = [file for answer in pending.answers.values() for file in _new_files(answer)]
        if pending.request is not None:
            discard_savepoint(pending.request.folder, files, uncertain)
            pending.request.done.set_exception(CheckpointFailed(f"the savepoint failed: {why}"))
            return
        if not uncertain or self._store.retract(number):
            self._store.discard(files)
        self._notices.append(Notice(number, complete=False))
        if not count:
            return
        self._failures += 1
        if self._failures > self._rules.tolerable_failures:
            raise CheckpointFailed(
                f"checkpoint {number} failed, and {self._rules.tolerable_failures} failures in a row are tolerated "
                f"(execution.checkpointing.tolerable-failed-checkpoints): {why}"
            )
        log.warning("checkpoint %d failed and is tolerated: %s", number, why)

    # --- the end ---
    def close(self, why: str) -> None:
        """The job is over: whoever waits for a savepoint waits in vain."""
        for pending in list(self._pending.values()):
            self._give_up(pending, why, count=False)

    def release(self, keep: bool, finished: bool) -> None:
        """Delete checkpoints when the job is over, or keep those that are retained."""
        kept = [*self._undeleted, *self.kept] if keep else []
        try:
            if finished:
                self._store.mark_finished()
            self._store.tidy(kept, self._since)
        except StorageError as error:
            log.warning("%s; checkpoints are left behind", error)


def _new_files(answer: Acknowledgement) -> list[str]:
    """The file that a slot wrote for a checkpoint; those before it in the chain belong to others."""
    newest = answer.snapshot.files[-1:] if answer.snapshot is not None else []
    return [file.url for file in newest if file.inline is None]


def _completed(pending: _Pending, metadata: Metadata, path: str, now: int) -> Completed:
    answers = pending.answers.values()
    return Completed(
        number=metadata.number,
        path=path,
        savepoint=metadata.savepoint,
        started=pending.order.timestamp,
        millis=now - pending.order.timestamp,
        size=metadata.size(),
        written=sum(answer.written for answer in answers),
        sync_millis=max(answer.sync_millis for answer in answers),
        async_millis=max(answer.async_millis for answer in answers),
    )
