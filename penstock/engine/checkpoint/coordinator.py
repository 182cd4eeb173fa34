"""The driver's side of checkpoints: it starts them, takes in the slots' answers, and has them published and deleted.

It makes pure decisions. It is given the time, the slots' acknowledgements and the storage's answers, and returns orders
and notices for the slots. Work for the storage waits in `agenda` until the driver of the job has done it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.base import pickling
from penstock.base.storage import split_url
from penstock.engine.checkpoint.checkpoint_history import (
    CheckpointRecord,
    CheckpointStatus,
    CheckpointsView,
    Restored,
    SlotShare,
)
from penstock.engine.checkpoint.checkpoint_storage_actions import (
    CheckpointRequest,
    Covered,
    DeleteClaimed,
    Discard,
    DiscardSavepoint,
    Drop,
    Publish,
    Reply,
    SavepointRequest,
    SnapshotRequest,
    StorageOrder,
    Tidy,
)
from penstock.engine.checkpoint.metadata import Metadata, fingerprint, shapes_of
from penstock.engine.messages.commands_and_reports import Acknowledgement, CheckpointOrder, Notice
from penstock.engine.state.snapshot_file import SlotSnapshot
from penstock.errors import AlreadyThere, CheckpointFailed, PenstockError, StorageError
from penstock.graph.plan import Plan

log = logging.getLogger("penstock.checkpoint")
REMEMBERED = 100


@dataclass(frozen=True)
class CheckpointRules:
    """The schedule of checkpoints and the number that may fail. Times are in milliseconds."""

    interval: int | None = None
    """Time between the starts of two checkpoints; None for savepoints on request only."""
    timeout: int = 600_000
    min_pause: int = 0
    max_concurrent: int = 1
    tolerable_failures: int = 0
    retained: int = 1


@dataclass
class _Pending:
    order: CheckpointOrder
    epoch: int
    deadline: int
    base: int
    """Number of the newest complete checkpoint when this one began. This one may build on it."""
    request: SavepointRequest | None = None
    asked: CheckpointRequest | None = None
    """Client's request for this checkpoint, if there is one."""
    enumerators: dict[str, bytes] = field(default_factory=dict)
    answers: dict[int, Acknowledgement] = field(default_factory=dict)
    shares: dict[int, SlotShare] = field(default_factory=dict)
    publishing: bool = False


class Coordinator:
    """The coordinator of one job's checkpoints."""

    def __init__(
        self, plan: Plan, job_id: str, rules: CheckpointRules, folder_of: Callable[[int], str], first: int = 1
    ) -> None:
        """`folder_of` returns the URL of a checkpoint's folder by its number. `first` is the first number to use."""
        self._plan = plan
        self._job_id = job_id
        self._rules = rules
        self._folder_of = folder_of
        self._next = self._since = first
        self._pending: dict[int, _Pending] = {}
        self._notices: list[Notice] = []
        self._failures = 0
        self._begun = 0
        self._ended: int | None = None
        self._undeleted: list[Metadata] = []
        self._doubtful: list[Discard] = []
        """Orders to discard checkpoints that may have been published in spite of an error."""
        self._claimed: str | None = None
        self.agenda: deque[StorageOrder | Reply | Covered] = deque()
        """Next orders for the driver, in this order."""
        self.kept: list[Metadata] = []
        """Complete checkpoints of this job that are retained, oldest first."""
        self.last_savepoint: Metadata | None = None
        """The savepoint with which the job was stopped, once it is complete."""
        self.last_epoch = -1
        """The epoch that it covers. Later epochs belong to the job that continues from it."""
        self.history: tuple[CheckpointRecord, ...] = ()
        """The newest complete checkpoints and savepoints, oldest first."""
        self._failed: tuple[CheckpointRecord, ...] = ()
        self._completed_in_all = self._failed_in_all = self._restored_in_all = 0
        self._restored: Restored | None = None

    def adopt(self, earlier: Iterable[Metadata], claimed: str | None = None, everything: bool = False) -> None:
        """Take over checkpoints of an earlier run, and a claimed snapshot. Both are deleted after the next checkpoint.

        With `everything`, the earlier run was of the same job, and all files in its folder belong to this job.
        """
        self._undeleted += earlier
        self._claimed = claimed
        if everything:
            self._since = 0

    # --- attempts and due times ---
    def start(self, now: int) -> None:
        """Begin an attempt: give up all unfinished checkpoints."""
        self._give_up_all("the job is restarting", now)
        self._notices.clear()
        self._failures = 0
        self._begun = now

    def note_restored(self, snapshot: Metadata, now: int) -> None:
        """Note that the attempt which begins now continues from this snapshot."""
        kind = snapshot.number, snapshot.savepoint
        path = next((one.path for one in reversed(self.history) if (one.number, one.savepoint) == kind), None)
        self._restored = Restored(*kind, now, path)
        self._restored_in_all += 1

    def next_due(self) -> int | None:
        """Return the time at which the next checkpoint should begin, or None if checkpoints are off."""
        rules = self._rules
        periodic = [p for p in self._pending.values() if p.request is None]
        if rules.interval is None or len(periodic) >= rules.max_concurrent:
            return None
        due = self._begun + rules.interval
        return due if self._ended is None else max(due, self._ended + rules.min_pause)

    def has_news(self) -> bool:
        """Return True if slots must get a notice, or still owe an acknowledgement."""
        return bool(self._notices or self._pending)

    def line(self) -> list[Metadata]:
        """Return the complete checkpoints that this job can continue from, oldest first."""
        return [*self._undeleted, *self.kept]

    def awaits_slots(self) -> bool:
        """Return True if a checkpoint is unfinished."""
        return bool(self._pending)

    def view(self) -> CheckpointsView:
        """Return a view of the checkpoints at this moment."""
        return CheckpointsView(
            in_progress=tuple(self._record(p, CheckpointStatus.IN_PROGRESS, None) for p in self._pending.values()),
            completed=self.history,
            failed=self._failed,
            completed_in_all=self._completed_in_all,
            failed_in_all=self._failed_in_all,
            restored=self._restored,
            restored_in_all=self._restored_in_all,
        )

    # --- orders and notices ---
    def order(self, now: int, epoch: int) -> CheckpointOrder | None:
        """Begin a checkpoint in this epoch if one is due. Return its order, or None."""
        self._set_back(now)
        due = self.next_due()
        return self.begin(now, epoch) if due is not None and due <= now else None

    def _set_back(self, now: int) -> None:
        """Move remembered times back if the clock was set back, so that checkpoints are not delayed."""
        self._begun = min(self._begun, now)
        if self._ended is not None:
            self._ended = min(self._ended, now)
        for pending in self._pending.values():
            pending.deadline = min(pending.deadline, now + self._rules.timeout)

    def begin(self, now: int, epoch: int, wanted: SnapshotRequest | None = None) -> CheckpointOrder:
        """Begin a checkpoint, or the snapshot that a client wants. Return its order."""
        number, self._next = self._next, self._next + 1
        request = wanted if isinstance(wanted, SavepointRequest) else None
        asked = wanted if isinstance(wanted, CheckpointRequest) else None
        folder = self._folder_of(number) if request is None else request.folder
        full = asked is not None and asked.full
        order = CheckpointOrder(number, now, folder, savepoint=request is not None, full=full)
        self._pending[number] = _Pending(order, epoch, now + self._rules.timeout, self._newest(), request, asked)
        if request is None:
            self._begun = now
        log.info("%s triggered", _label(number, request))
        return order

    def locate(self, number: int, positions: Mapping[str, Any]) -> None:
        """Store the enumerators' positions after the assignments of the epoch that ends with this checkpoint."""
        enumerators = {uid: pickling.dumps(position) for uid, position in positions.items()}
        self._pending[number].enumerators = enumerators

    def _newest(self) -> int:
        return max((metadata.number for metadata in self.line()), default=0)

    def take_notices(self) -> list[Notice]:
        """Remove and return the outcomes of checkpoints since the last command."""
        notices, self._notices = self._notices, []
        return notices

    # --- answers of slots ---
    def receive(self, answers: list[Acknowledgement], now: int) -> None:
        """Process the slots' answers: publish complete checkpoints, and give up failed ones."""
        for answer in sorted(answers, key=lambda a: (a.number, a.slot)):
            pending = self._pending.get(answer.number)
            if pending is None:
                self._discard_late(_new_files(answer))
            elif answer.failure is not None:
                self._give_up(pending, answer.failure.describe(), now)
            else:
                self._acknowledge(pending, answer, now)

    def expire(self, now: int) -> None:
        """Give up checkpoints that took too long."""
        for pending in [p for p in self._pending.values() if now >= p.deadline]:
            self._give_up(pending, f"it was not complete after {self._rules.timeout} ms", now)

    def _acknowledge(self, pending: _Pending, answer: Acknowledgement, now: int) -> None:
        size = answer.snapshot.size() if answer.snapshot is not None else 0
        operators = answer.snapshot.operators() if answer.snapshot is not None else {}
        pending.answers[answer.slot] = answer
        pending.shares[answer.slot] = SlotShare(
            answer.slot, now, size, answer.written, answer.sync_millis, answer.async_millis, operators
        )
        if len(pending.answers) == self._plan.slots and not pending.publishing:
            pending.publishing = True
            folder = pending.request.folder if pending.request is not None else None
            self.agenda.append(Publish(self._metadata(pending), folder))

    def _discard_late(self, files: list[str]) -> None:
        """Delete files that came too late for their checkpoint or savepoint."""
        own = self._folder_of(0).rpartition("/")[0] + "/"
        for url in files:
            folder, _ = split_url(url)
            if folder.startswith(own):
                self.agenda.append(Discard(0, [url]))
            else:
                self.agenda.append(DiscardSavepoint(folder, [url]))

    # --- answers of storage ---
    def note_published(self, metadata: Metadata, path: str, now: int) -> None:
        """Record that a checkpoint or savepoint is complete."""
        pending = self._pending.pop(metadata.number)
        self.history = _append(self.history, self._record(pending, CheckpointStatus.COMPLETED, now, path))
        self._completed_in_all += 1
        request = pending.request
        log.info("%s completed after %d ms: %s", _label(metadata.number, request), now - metadata.timestamp, path)
        if request is not None:
            self.agenda.append(Reply(request, path))
            if request.stop:
                self.last_savepoint, self.last_epoch = metadata, pending.epoch
                self._subsume(self._next, now)
                self._notices.append(Notice(metadata.number, complete=True, savepoint=True))
            return
        if pending.asked is not None:
            self.agenda.append(Reply(pending.asked, str(metadata.number)))
        self._failures = 0
        self._ended = now
        self._subsume(metadata.number, now)
        self._notices.append(Notice(metadata.number, complete=True))
        self._retain(metadata)
        self.agenda.append(Covered(metadata.number, pending.epoch))

    def note_unpublished(self, metadata: Metadata, error: PenstockError, now: int) -> None:
        """Give up a snapshot that could not be published.

        Either storage refused it, or a driver that was displaced at that moment had used its number already.
        """
        taken = isinstance(error, AlreadyThere)
        refused = isinstance(error, StorageError) and error.lasting
        self._give_up(self._pending[metadata.number], str(error), now, count=not taken, uncertain=not refused)

    def _subsume(self, number: int, now: int) -> None:
        """Give up older unfinished checkpoints: none of them may become the newest, or follow a last savepoint."""
        for pending in [p for p in self._pending.values() if p.request is None and p.order.number < number]:
            self._give_up(pending, "a later one is complete", now, count=False)

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

    def _retain(self, metadata: Metadata) -> None:
        """Retain a new checkpoint and drop older ones, except those that an unfinished checkpoint may build on."""
        self.kept.append(metadata)
        self._undeleted += self.kept[: -self._rules.retained]
        self.kept = self.kept[-self._rules.retained :]
        oldest = min((pending.base for pending in self._pending.values()), default=metadata.number)
        dropped = [old for old in self._undeleted if old.number < oldest]
        self._undeleted = [old for old in self._undeleted if old.number >= oldest]
        if dropped:
            self.agenda.append(Drop(dropped, self.line()))
        self.agenda.extend(self._doubtful)
        self._doubtful.clear()
        if self._claimed is not None:
            self.agenda.append(DeleteClaimed(self._claimed))
            self._claimed = None

    def _give_up(self, pending: _Pending, why: str, now: int, *, count: bool = True, uncertain: bool = False) -> None:
        """Give up a checkpoint or savepoint and discard its files.

        If a checkpoint may have been published nevertheless, its files are deleted once there is a newer one.
        """
        number = pending.order.number
        self._pending.pop(number, None)
        self._failed = _append(self._failed, self._record(pending, CheckpointStatus.FAILED, now, failure=why))
        self._failed_in_all += 1
        files = [file for answer in pending.answers.values() for file in _new_files(answer)]
        if pending.request is not None:
            self.agenda.append(DiscardSavepoint(pending.request.folder, files, uncertain))
            self.agenda.append(Reply(pending.request, error=CheckpointFailed(f"the savepoint failed: {why}")))
            return
        if pending.asked is not None:
            self.agenda.append(Reply(pending.asked, error=CheckpointFailed(f"the checkpoint failed: {why}")))
        discard = Discard(number, files, uncertain)
        (self._doubtful if uncertain else self.agenda).append(discard)
        self._notices.append(Notice(number, complete=False))
        if count:
            self._count_failure(number, why)

    def _count_failure(self, number: int, why: str) -> None:
        self._failures += 1
        if self._failures > self._rules.tolerable_failures:
            raise CheckpointFailed(
                f"checkpoint {number} failed, and {self._rules.tolerable_failures} failures in a row are tolerated "
                f"(execution.checkpointing.tolerable-failed-checkpoints): {why}"
            )
        log.warning("checkpoint %d failed and is tolerated: %s", number, why)

    def _give_up_all(self, why: str, now: int) -> None:
        """Give up all unfinished checkpoints, also those that were about to be published."""
        self.agenda = deque(order for order in self.agenda if not isinstance(order, Publish))
        for pending in list(self._pending.values()):
            self._give_up(pending, why, now, count=False)

    def _record(
        self,
        pending: _Pending,
        status: CheckpointStatus,
        ended: int | None,
        path: str | None = None,
        failure: str | None = None,
    ) -> CheckpointRecord:
        return CheckpointRecord(
            number=pending.order.number,
            status=status,
            savepoint=pending.request is not None,
            started=pending.order.timestamp,
            ended=ended,
            path=path,
            failure=failure,
            expected=self._plan.slots,
            slots=tuple(pending.shares[slot] for slot in sorted(pending.shares)),
        )

    # --- the end ---
    def close(self, why: str, now: int) -> None:
        """Give up all unfinished checkpoints and savepoints at the end of the job."""
        self._give_up_all(why, now)

    def abandon(self, why: str) -> None:
        """Stop without touching storage, because it belongs to another driver or to the next one."""
        self.agenda = deque(order for order in self.agenda if isinstance(order, Reply))
        waiting = [pending.request or pending.asked for pending in self._pending.values()]
        requests = [request for request in waiting if request is not None]
        self._pending.clear()
        error = CheckpointFailed(f"the savepoint failed: {why}")
        self.agenda.extend(Reply(request, error=error) for request in requests)

    def release(self, keep: bool, finished: bool) -> None:
        """Order the deletion of checkpoints at the end of the job.

        With `keep`, retained checkpoints are not deleted.
        """
        self.agenda.append(Tidy(self.line() if keep else [], self._since, finished))


def _label(number: int, request: SavepointRequest | None) -> str:
    return f"savepoint {number}" if request is not None else f"checkpoint {number}"


def _new_files(answer: Acknowledgement) -> list[str]:
    """Return the file that a slot wrote for a checkpoint. Earlier files of its series belong to other checkpoints."""
    newest = answer.snapshot.files[-1:] if answer.snapshot is not None else []
    return [file.url for file in newest if file.inline is None]


def _append(records: tuple[CheckpointRecord, ...], record: CheckpointRecord) -> tuple[CheckpointRecord, ...]:
    return (*records[-(REMEMBERED - 1) :], record)
