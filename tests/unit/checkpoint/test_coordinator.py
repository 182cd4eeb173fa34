"""The driver's side of checkpoints, with time, answers and storage in the hands of the test."""

from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.base import pickling
from penstock.base.storage import Storage
from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.checkpoint import coordinator as pure
from penstock.engine.checkpoint.checkpoint_storage_actions import (
    Archive,
    Covered,
    Discard,
    Publish,
    Reply,
    SavepointRequest,
    Tidy,
    reply,
)
from penstock.engine.checkpoint.coordinator import CheckpointRules
from penstock.engine.checkpoint.metadata import FILE, Metadata
from penstock.engine.checkpoint.store import FolderStore, MemoryStore, read_snapshot
from penstock.engine.messages.commands_and_reports import Acknowledgement, Notice
from penstock.engine.records.failures import Failure
from penstock.engine.state.snapshot_file import FileRef, Kind, Name, SlotSnapshot, SnapshotFile, State, write_file
from penstock.errors import CheckpointFailed, NoSuchSnapshot, PenstockError, StorageError
from penstock.service.launch.submission import plan_of

DECLINED = Failure("Map", "map-1", 0, "", "ValueError", "no room in the inn", "")
SLOTS = 2
FOLDERS = count()


def plan():
    env = StreamExecutionEnvironment().set_parallelism(SLOTS)
    env.from_sequence(1, 2).map(str).print()
    return plan_of(env, "job")


PLAN = plan()


def file(url):
    return FileRef(url, 10, 5, "c")


def answer(number, slot, *files, failure=None):
    if failure is not None:
        return Acknowledgement(number, slot, failure=failure)
    return Acknowledgement(number, slot, SlotSnapshot([file(url) for url in files]), written=10)


def answers(number, *files):
    return [answer(number, slot, *files) for slot in range(SLOTS)]


class Shelves:
    """A store that remembers which files there are, and fails when told so."""

    def __init__(self):
        self.files = set()
        self.published = {}
        self.refuses = self.breaks = False
        self.ended = None

    def folder(self, number):
        return f"store://chk-{number}"

    def publish(self, metadata):
        if self.refuses:
            refused = StorageError("the shelves are full")
            refused.lasting = True
            raise refused
        assert metadata.number not in self.published
        self.published[metadata.number] = metadata
        if self.breaks:
            raise StorageError("the shelves broke down, full or not")
        return self.folder(metadata.number)

    def drop(self, dropped, kept):
        needed = set().union(*(m.files() for m in kept))
        for metadata in dropped:
            del self.published[metadata.number]
            self.files -= metadata.files() - needed

    def discard(self, files):
        self.files -= set(files)

    def retract(self, number):
        self.published.pop(number, None)
        return True

    def tidy(self, kept, since, confirm):
        self.ended = [m.number for m in kept]

    def delete_if_empty(self):
        pass


class Coordinator(pure.Coordinator):
    """A coordinator whose orders are carried out on a store at once, as a driver does."""

    def __init__(self, plan, job_id, rules, store, first=1):
        super().__init__(plan, job_id, rules, store.folder, first)
        self.archive = Archive(store)
        self.on_complete = lambda checkpoint, epoch: None

    def start(self, now):
        super().start(now)
        self.carry_out(now)

    def order(self, now, epoch, positions):
        order = super().order(now, epoch)
        if order is not None:
            self.locate(order.number, positions)
        return order

    def begin(self, now, epoch, positions=None, request=None):
        order = super().begin(now, epoch, request)
        self.locate(order.number, positions or {})
        return order

    def receive(self, answers, now):
        try:
            super().receive(answers, now)
            self.carry_out(now)
            self.expire(now)
        finally:
            self.carry_out(now)

    def close(self, why):
        super().close(why, 0)
        self.carry_out(0)

    def release(self, keep, finished):
        super().release(keep, finished)
        self.carry_out(0)

    def carry_out(self, now):
        while self.agenda:
            order = self.agenda.popleft()
            if isinstance(order, Publish):
                self.publish(order, now)
            elif isinstance(order, Reply):
                reply(order)
            elif isinstance(order, Covered):
                self.on_complete(order.checkpoint, order.epoch)
            else:
                self.archive.carry_out(order)

    def publish(self, order, now):
        try:
            path = self.archive.publish(order)
        except PenstockError as error:
            self.note_unpublished(order.metadata, error, now)
        else:
            self.note_published(order.metadata, path, now)


def coordinator(store=None, first=1, **rules):
    made = Coordinator(PLAN, "job", CheckpointRules(**{"interval": 100, **rules}), store or Shelves(), first)
    made.start(0)
    return made


class SlotModel:
    """A slot: builds on the last checkpoint that it was told is complete."""

    def __init__(self, chain=()):
        self.chain = list(chain)
        self.taken = {}
        self.queue = []

    def told(self, notice):
        if notice.complete and not notice.savepoint:
            self.chain = self.taken.pop(notice.number)
            self.taken = {n: files for n, files in self.taken.items() if n > notice.number}


class Checkpointing(RuleBasedStateMachine):
    """Orders, answers, failures and restarts in any order, against a plain account of what should come of them."""

    @initialize(
        interval=st.sampled_from([10, 50]),
        pause=st.sampled_from([0, 0, 0, 30, 70]),
        timeout=st.sampled_from([60, 1000, 1000]),
        concurrent=st.integers(1, 3),
        tolerable=st.integers(0, 3),
        retained=st.integers(1, 3),
    )
    def begin(self, interval, pause, timeout, concurrent, tolerable, retained):
        self.rules = CheckpointRules(interval, timeout, pause, concurrent, tolerable, retained)
        self.store = Shelves()
        self.made = Coordinator(PLAN, "job", self.rules, self.store)
        self.slots = [SlotModel() for _ in range(SLOTS)]
        self.now, self.epoch = 0, 0
        self.pending = {}
        """Number to (deadline, request, slots that have answered)."""
        self.notices, self.completed, self.failures = [], [], 0
        self.begun, self.ended, self.files = 0, None, 0
        self.covered = []
        self.made.on_complete = lambda checkpoint, epoch: self.covered.append(epoch)
        self.made.start(0)

    # --- what happens ---
    @rule(millis=st.sampled_from([1, 9, 20, 50, 200]))
    def time_goes_on(self, millis):
        self.now += millis

    @rule(millis=st.sampled_from([0, 10, 50]), full=st.booleans())
    def an_epoch_begins(self, millis, full):
        """Slots hear the notices before they take a checkpoint."""
        self.now += millis
        self.hear()
        due = self.due()
        order = self.made.order(self.now, self.epoch, {})
        assert (order is not None) is (due is not None and due <= self.now)
        if order is not None:
            self.begun = self.now
            self.take(order, None, full)
        self.epoch += 1

    @rule(stop=st.booleans())
    def someone_wants_a_savepoint(self, stop):
        self.hear()
        request = SavepointRequest(f"memory://coordinator/{next(FOLDERS)}", stop)
        self.take(self.made.begin(self.now, self.epoch, {}, request), request, True)
        self.epoch += 1

    @precondition(lambda self: any(slot.queue for slot in self.slots))
    @rule(data=st.data(), outcome=st.sampled_from(["written"] * 6 + ["declined", "unpublished"]))
    def a_slot_answers(self, data, outcome):
        index = data.draw(st.sampled_from([n for n, slot in enumerate(self.slots) if slot.queue]))
        queue = self.slots[index].queue
        number, files, savepoint = queue.pop(data.draw(st.integers(0, len(queue) - 1)))
        if outcome == "declined":
            self.receive(answer(number, index, failure=DECLINED), "declined")
            return
        self.store.files |= set(files[-1:])
        if not savepoint:
            self.slots[index].taken[number] = files
        self.store.refuses = outcome == "unpublished" and not savepoint
        self.receive(answer(number, index, *files), "unpublished" if self.store.refuses else "written")
        self.store.refuses = False

    @rule()
    def nothing_is_answered(self):
        self.receive(None, "")

    @rule()
    def the_job_fails(self):
        self.restart()

    # --- what should come of it ---
    def due(self):
        periodic = [request for _, request, _ in self.pending.values() if request is None]
        if len(periodic) >= self.rules.max_concurrent:
            return None
        due = self.begun + self.rules.interval
        return due if self.ended is None else max(due, self.ended + self.rules.min_pause)

    def hear(self):
        told = self.made.take_notices()
        assert told == self.notices
        for notice in told:
            for slot in self.slots:
                slot.told(notice)
        self.notices = []

    def take(self, order, request, full):
        assert order.number not in self.pending and order.savepoint is (request is not None)
        self.pending[order.number] = (self.now + self.rules.timeout, request, set())
        for slot in self.slots:
            new = []
            assert set(slot.chain) <= self.store.files
            if request is None:
                self.files += 1
                new = [*([] if full else slot.chain), f"{order.folder}/{self.files}"]
            slot.queue.append((order.number, new, request is not None))

    def receive(self, given, outcome):
        failed = self.account(given, outcome)
        try:
            self.made.receive([] if given is None else [given], self.now)
        except CheckpointFailed as error:
            assert failed is not None and f"checkpoint {failed} failed" in str(error)
            assert "execution.checkpointing.tolerable-failed-checkpoints" in str(error)
            self.restart()
        else:
            assert failed is None
        if given is not None and given.number not in self.pending and given.number not in self.completed:
            new = [ref.url for ref in given.snapshot.files[-1:]] if given.snapshot else []
            assert not self.store.files & set(new), "nobody needs these files"

    def account(self, given, outcome):
        """Bring the account up to date; the number of the checkpoint that fails the job, if one does."""
        if given is not None and given.number in self.pending:
            _, request, answered = self.pending[given.number]
            answered.add(given.slot)
            if outcome == "declined" or (outcome == "unpublished" and len(answered) == SLOTS):
                if self.given_up(given.number):
                    return given.number
            elif len(answered) == SLOTS:
                self.complete(given.number, request)
        for number in [n for n, (deadline, _, _) in self.pending.items() if self.now >= deadline]:
            if self.given_up(number):
                return number
        return None

    def complete(self, number, request):
        del self.pending[number]
        if request is None:
            self.failures, self.ended = 0, self.now
            self.completed.append(number)
            self.subsume(lambda other: other < number)
            self.notices.append(Notice(number, complete=True))
        elif request.stop:
            self.subsume(lambda other: True)
            self.notices.append(Notice(number, complete=True, savepoint=True))

    def subsume(self, which):
        for older in [n for n, (_, request, _) in self.pending.items() if request is None and which(n)]:
            del self.pending[older]
            self.notices.append(Notice(older, complete=False))

    def given_up(self, number):
        _, request, _ = self.pending.pop(number)
        if request is not None:
            return False
        self.notices.append(Notice(number, complete=False))
        self.failures += 1
        return self.failures > self.rules.tolerable_failures

    def restart(self):
        self.made.start(self.now)
        kept = self.made.kept
        for index, _ in enumerate(self.slots):
            files = [ref.url for ref in kept[-1].slots[index].files] if kept else []
            self.slots[index] = SlotModel(files)
        requests = [request for _, request, _ in self.pending.values() if request is not None]
        assert all(request.done.exception() is not None for request in requests)
        self.pending, self.notices, self.failures, self.begun = {}, [], 0, self.now

    # --- what is always true ---
    @invariant()
    def no_more_are_under_way_than_allowed(self):
        if hasattr(self, "made"):
            periodic = [n for n, (_, request, _) in self.pending.items() if request is None]
            assert len(periodic) <= self.rules.max_concurrent
            assert self.made.awaits_slots() is bool(self.pending)
            assert self.made.has_news() is bool(self.pending or self.notices)
            assert self.made.next_due() == self.due()

    @invariant()
    def the_newest_are_kept(self):
        if hasattr(self, "made"):
            assert [m.number for m in self.made.kept] == self.completed[-self.rules.retained :]
            assert len(self.covered) == len(self.completed) and self.covered == sorted(self.covered)

    @invariant()
    def what_is_complete_is_whole(self):
        if hasattr(self, "made"):
            for metadata in [*self.made.kept, *self.store.published.values()]:
                assert metadata.files() <= self.store.files
            for metadata in self.made.kept:
                assert self.store.published[metadata.number] is metadata

    @invariant()
    def what_slots_build_on_is_there(self):
        if hasattr(self, "made"):
            for slot in self.slots:
                for number, files, _ in slot.queue:
                    if number in self.pending:
                        assert set(files[:-1]) <= self.store.files

    def teardown(self):
        """When all is quiet and one more checkpoint is complete, storage holds what is kept and nothing else."""
        if not hasattr(self, "made"):
            return
        self.restart()
        self.now += 10_000
        self.an_epoch_begins(0, full=False)
        for slot in range(SLOTS):
            number, files, _ = self.slots[slot].queue.pop(0)
            self.store.files |= set(files[-1:])
            self.receive(answer(number, slot, *files), "written")
        assert sorted(self.store.published) == [m.number for m in self.made.kept]
        assert self.store.files == set().union(*(m.files() for m in self.made.kept))


TestCheckpointing = Checkpointing.TestCase
TestCheckpointing.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)


class TestWhenOneIsDue:
    def test_the_first_comes_an_interval_after_the_start(self):
        made = coordinator()
        assert made.order(99, 0, {}) is None
        order = made.order(100, 1, {})
        assert (order.number, order.timestamp, order.savepoint) == (1, 100, False)

    def test_without_an_interval_there_is_none(self):
        made = coordinator(interval=None)
        assert made.next_due() is None and made.order(10**9, 0, {}) is None

    def test_the_interval_counts_from_start_to_start(self):
        made = coordinator()
        made.order(130, 0, {})
        made.receive(answers(1), 170)
        assert made.next_due() == 230

    def test_the_pause_counts_from_the_end(self):
        made = coordinator(min_pause=500)
        made.order(100, 0, {})
        made.receive(answers(1), 170)
        assert made.next_due() == 670

    def test_a_restart_begins_the_interval_anew(self):
        made = coordinator()
        made.order(100, 0, {})
        made.start(1000)
        assert made.next_due() == 1100 and not made.has_news()

    def test_a_savepoint_does_not_count_as_one_of_them(self):
        made = coordinator(max_concurrent=1)
        made.begin(10, 0, {}, SavepointRequest("memory://x"))
        assert made.order(100, 1, {}) is not None

    def test_numbers_go_on_from_the_first(self):
        made = coordinator(first=8)
        assert made.order(100, 0, {}).number == 8
        made.receive(answers(8), 101)
        assert made.order(200, 0, {}).number == 9


class TestFailures:
    def fail(self, made, now):
        order = made.order(now, 0, {})
        made.receive([answer(order.number, 1, failure=DECLINED)], now)

    def test_only_failures_in_a_row_count(self):
        made = coordinator(tolerable_failures=1)
        for now in range(100, 900, 200):
            self.fail(made, now)
            order = made.order(now + 100, 0, {})
            made.receive(answers(order.number), now + 100)
        self.fail(made, 900)
        with pytest.raises(CheckpointFailed, match=r"checkpoint 10 failed, and 1 failures in a row are tolerated"):
            self.fail(made, 1000)

    def test_the_reason_is_given(self):
        with pytest.raises(
            CheckpointFailed, match=r"tolerable-failed-checkpoints.*\n?.*Map.*map-1.*no room in the inn"
        ):
            self.fail(coordinator(), 100)

    def test_a_tolerated_one_is_logged(self, caplog):
        self.fail(coordinator(tolerable_failures=1), 100)
        assert "checkpoint 1 failed and is tolerated" in caplog.text and "no room in the inn" in caplog.text

    def test_a_checkpoint_that_takes_too_long(self):
        made = coordinator(timeout=50, tolerable_failures=1)
        made.order(100, 0, {})
        made.receive([answer(1, 0, "store://f")], 149)
        assert made.awaits_slots()
        made.receive([], 150)
        assert not made.awaits_slots() and made.take_notices() == [Notice(1, complete=False)]
        made.order(200, 0, {})
        with pytest.raises(CheckpointFailed, match="it was not complete after 50 ms"):
            made.receive([], 250)

    def test_the_last_answer_at_the_last_moment_counts(self):
        made = coordinator(timeout=50)
        made.order(100, 0, {})
        made.receive(answers(1), 150)
        assert [m.number for m in made.kept] == [1]

    def test_one_that_cannot_be_published(self):
        store = Shelves()
        made = coordinator(store, tolerable_failures=1)
        store.files, store.refuses = {"store://chk-1/a", "store://chk-1/b"}, True
        made.order(100, 0, {})
        made.receive([answer(1, 0, "store://chk-1/a"), answer(1, 1, "store://chk-1/b")], 100)
        assert made.take_notices() == [Notice(1, complete=False)] and made.kept == [] and store.files == set()
        made.order(200, 0, {})
        with pytest.raises(CheckpointFailed, match="the shelves are full"):
            made.receive(answers(2), 200)

    def test_one_of_which_nobody_knows_whether_it_is_there_keeps_its_files_until_there_is_a_newer_one(self):
        """A driver that recovers in between may find the checkpoint, and needs all of its files."""
        store = Shelves()
        made = coordinator(store, tolerable_failures=1)
        store.files, store.breaks = {"store://chk-1/a", "store://chk-1/b", "store://chk-2/c"}, True
        made.order(100, 0, {})
        made.receive([answer(1, 0, "store://chk-1/a"), answer(1, 1, "store://chk-1/b")], 100)
        assert made.take_notices() == [Notice(1, complete=False)] and made.kept == []
        assert store.published[1].files() <= store.files
        store.breaks = False
        made.order(200, 0, {})
        made.receive(answers(2, "store://chk-2/c"), 200)
        assert list(store.published) == [2] and store.files == {"store://chk-2/c"}

    def test_a_restart_forgets_failures(self):
        made = coordinator(tolerable_failures=1)
        self.fail(made, 100)
        made.start(150)
        self.fail(made, 300)

    def test_failures_of_savepoints_do_not_count(self):
        made = coordinator()
        request = SavepointRequest("memory://x")
        order = made.begin(10, 0, {}, request)
        made.receive([answer(order.number, 0, failure=DECLINED)], 11)
        with pytest.raises(CheckpointFailed, match=r"the savepoint failed:.*no room in the inn"):
            request.done.result(0)
        assert made.take_notices() == []

    def test_one_of_two_that_are_under_way(self):
        """A late answer to the checkpoint that was given up changes nothing for the other one."""
        store = Shelves()
        made = coordinator(store, max_concurrent=2, tolerable_failures=1)
        made.order(100, 0, {})
        made.order(200, 1, {})
        store.files = {"store://chk-1/b", "store://chk-2/a", "store://chk-2/b"}
        made.receive([answer(1, 0, failure=DECLINED), answer(1, 1, "store://chk-1/b")], 210)
        assert store.files == {"store://chk-2/a", "store://chk-2/b"}
        made.receive([answer(2, 0, "store://chk-2/a"), answer(2, 1, "store://chk-2/b")], 220)
        assert made.take_notices() == [Notice(1, complete=False), Notice(2, complete=True)]


class TestWhatIsKept:
    def test_an_older_one_never_becomes_the_newest(self):
        """As in Flink, checkpoints that are still under way when a later one completes are given up, and do not
        count."""
        store = Shelves()
        made = coordinator(store, max_concurrent=3)
        for now in (100, 200, 300):
            made.order(now, 0, {})
        store.files = {"store://chk-1/f", "store://chk-2/f", "store://chk-3/f"}
        made.receive([answer(1, 0, "store://chk-1/f"), *answers(2, "store://chk-2/f")], 310)
        assert made.take_notices() == [Notice(1, complete=False), Notice(2, complete=True)]
        made.receive([answer(1, 1, "store://chk-1/f")], 320)
        assert [m.number for m in made.kept] == [2]
        made.receive(answers(3, "store://chk-3/f"), 330)
        assert [m.number for m in made.kept] == [3] and store.files == {"store://chk-3/f"}

    def test_one_that_begins_and_one_that_is_complete_are_logged(self, caplog):
        made = coordinator()
        with caplog.at_level("INFO", "penstock.checkpoint"):
            made.order(100, 41, {})
            made.receive(answers(1, "store://chk-1/f"), 130)
        triggered, completed = [record.getMessage() for record in caplog.records]
        assert triggered == "checkpoint 1 triggered"
        assert completed.startswith("checkpoint 1 completed after 30 ms: ")

    def test_what_a_complete_one_says(self):
        made = coordinator()
        epochs = []
        made.on_complete = lambda checkpoint, epoch: epochs.append(epoch)
        made.order(100, 41, {"source-1": ("position", 3)})
        made.receive(answers(1, "store://chk-1/f"), 130)
        (kept,) = made.kept
        assert (kept.number, kept.timestamp, kept.job_id, kept.job_name) == (1, 100, "job", "job")
        assert pickling.loads(kept.enumerators["source-1"]) == ("position", 3)
        assert {uid: shape.parallelism for uid, shape in kept.shapes.items()} == {n.uid: 2 for n in PLAN.nodes}
        assert epochs == [41]
        (told,) = made.history
        assert (told.number, told.started, told.millis, told.savepoint, told.written) == (1, 100, 30, False, 20)

    def test_the_history_is_limited(self):
        made = coordinator()
        for number in range(1, 151):
            made.order(number * 100, 0, {})
            made.receive(answers(number), number * 100)
        assert [c.number for c in made.history] == list(range(51, 151))

    def test_what_one_under_way_builds_on_stays(self):
        """The second checkpoint is full and needs nothing of the first; the third was begun before the second was
        complete."""
        store = Shelves()
        made = coordinator(store, max_concurrent=2)
        first, second, third = (f"store://chk-{n}/f" for n in (1, 2, 3))
        store.files = {first}
        made.order(100, 0, {})
        made.receive(answers(1, first), 110)
        made.order(200, 0, {})
        made.order(300, 0, {})
        store.files |= {second, third}
        made.receive(answers(2, second), 310)
        assert first in store.files
        made.receive(answers(3, first, third), 320)
        assert store.files == {first, third} and sorted(store.published) == [3]

    def test_storage_does_not_grow_when_checkpoints_overlap(self):
        """One checkpoint is always under way when another completes. Files that no checkpoint builds on are deleted all
        the same."""
        store = Shelves()
        made = coordinator(store, max_concurrent=2, retained=1)
        made.order(100, 0, {})
        for number in range(1, 40):
            made.order((number + 1) * 100, number, {})
            store.files |= {f"store://chk-{number}/f"}
            made.receive(answers(number, f"store://chk-{number}/f"), (number + 1) * 100 + 50)
            assert [m.number for m in made.kept] == [number]
        assert len(store.published) < 10, f"{len(store.published)} checkpoints are on storage, and 1 is retained"

    def test_checkpoints_of_an_earlier_run_go_after_the_next_one(self):
        store = Shelves()
        earlier = [Metadata(n, 0, "job", "job", {}, [SlotSnapshot([file(f"store://chk-{n}/f")])]) for n in (3, 4)]
        store.published = {m.number: m for m in earlier}
        store.files = {"store://chk-3/f", "store://chk-4/f"}
        made = coordinator(store, first=5)
        made.adopt(earlier, None)
        made.order(100, 0, {})
        store.files.add("store://chk-5/f")
        assert sorted(store.published) == [3, 4]
        made.receive(answers(5, "store://chk-4/f", "store://chk-5/f"), 100)
        assert sorted(store.published) == [5] and store.files == {"store://chk-4/f", "store://chk-5/f"}


class TestSavepoints:
    def test_the_future_gets_the_path(self, memory_url):
        made = coordinator()
        request = SavepointRequest(f"{memory_url}/sp")
        order = made.begin(10, 0, {"s": 1}, request)
        assert (order.folder, order.savepoint) == (f"{memory_url}/sp", True)
        made.receive(answers(order.number), 20)
        assert request.done.result(0) == f"{memory_url}/sp"
        saved = read_snapshot(f"{memory_url}/sp")
        assert saved.savepoint and not saved.drained and saved.number == 1
        assert made.kept == [] and made.take_notices() == []

    def test_slots_are_told_of_the_one_that_ends_the_job(self, memory_url):
        made = coordinator()
        made.begin(10, 0, {}, SavepointRequest(f"{memory_url}/sp", stop=True, drain=True))
        made.receive(answers(1), 20)
        assert made.take_notices() == [Notice(1, complete=True, savepoint=True)]
        assert read_snapshot(f"{memory_url}/sp").drained

    def test_one_that_exists_is_not_overwritten(self, memory_url):
        Storage(memory_url).create(f"sp/{FILE}", b"older")
        made, request = coordinator(), SavepointRequest(f"{memory_url}/sp")
        made.begin(10, 0, {}, request)
        made.receive(answers(1), 20)
        with pytest.raises(CheckpointFailed, match="exists already"):
            request.done.result(0)
        assert Storage(memory_url).read(f"sp/{FILE}") == b"older"

    def test_one_that_fails_leaves_no_files(self, memory_url):
        made, request = coordinator(), SavepointRequest(f"{memory_url}/sp")
        made.begin(10, 0, {}, request)
        Storage(memory_url).write("sp/slot-0", [b"state"])
        made.receive([answer(1, 0, f"{memory_url}/sp/slot-0"), answer(1, 1, failure=DECLINED)], 20)
        assert isinstance(request.done.exception(0), CheckpointFailed)
        assert Storage(memory_url).names() == []

    @pytest.mark.parametrize("folder", ["savepoints/sp", "job-savepoints/sp"])
    def test_what_comes_too_late_for_one_that_failed_goes(self, memory_url, folder):
        made = coordinator(FolderStore(memory_url, "job"))
        storage = Storage(memory_url)
        made.begin(10, 0, {}, SavepointRequest(storage.url(folder)))
        made.receive([answer(1, 0, failure=DECLINED)], 20)
        storage.write(f"{folder}/slot-1", [b"state"])
        made.receive([answer(1, 1, storage.url(f"{folder}/slot-1"))], 30)
        assert storage.names() == []

    @pytest.mark.parametrize("end", [lambda made: made.close("the job has ended"), lambda made: made.start(50)])
    def test_nobody_waits_for_ever(self, end):
        made, request = coordinator(), SavepointRequest("memory://sp")
        made.begin(10, 0, {}, request)
        end(made)
        assert isinstance(request.done.exception(0), CheckpointFailed)


class TestOnStorage:
    """The coordinator with a real folder as its storage."""

    def checkpointed(self, made, store, number, now, base=()):
        """Both slots write a file, and the checkpoint is complete."""
        order = made.order(now, 0, {})
        assert order.number == number
        given = [self.written(order, slot, base[slot] if base else ()) for slot in range(SLOTS)]
        made.receive(given, now)
        return [ack.snapshot.files for ack in given]

    def written(self, order, slot, base=()):
        state = written_state(order.number)
        ref = write_file(f"{order.folder}/slot-{slot}", [state], compress=False, inline_below=0)
        return Acknowledgement(order.number, slot, SlotSnapshot([*base, ref]))

    def test_a_chain_is_kept_as_long_as_someone_needs_it(self, place):
        store = FolderStore(place, "job")
        made = coordinator(store, retained=2)
        files = ()
        for number in range(1, 6):
            base = () if number == 4 else files
            files = self.checkpointed(made, store, number, number * 100, base)
            for metadata in store.complete():
                assert readable(metadata)
            assert [m.number for m in store.complete()] == [n for n in (number - 1, number) if n > 0]
        assert not any(name.startswith(("chk-1/", "chk-2/")) for name in Storage(f"{place}/job").names())

    @pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
    def test_wherever_publishing_fails_what_is_complete_is_whole(self, faulty, late):
        """A call may fail although it took effect. Who recovers must not find a checkpoint without its files."""
        for position in range(30):
            faulty.clear()
            faulty.faults.before = faulty.faults.after = lambda number, call: None
            store = FolderStore(faulty.url, "job")
            made = coordinator(store, tolerable_failures=10)
            self.checkpointed(made, store, 1, 100)
            order = made.order(200, 0, {})
            given = [self.written(order, slot) for slot in range(SLOTS)]
            faulty.faults.calls.clear()

            def strike(number, call, position=position):
                if number >= position:
                    raise OSError(5, "Input/output error")

            setattr(faulty.faults, "after" if late else "before", strike)
            made.receive(given, 200)
            calls = list(faulty.faults.calls)
            faulty.faults.before = faulty.faults.after = lambda number, call: None
            whole = [m.number for m in store.complete() if readable(m)]
            assert whole == [m.number for m in store.complete()], f"calls {calls} failed from {position} on"
            assert made.kept[-1].number in whole

    def test_a_claimed_snapshot_goes_after_the_first_checkpoint(self, place):
        theirs = FolderStore(place, "theirs")
        self.checkpointed(coordinator(theirs), theirs, 1, 100)
        store = FolderStore(place, "job")
        made = coordinator(store)
        made.adopt((), theirs.folder(1))
        assert readable(read_snapshot(theirs.folder(1)))
        self.checkpointed(made, store, 1, 100)
        with pytest.raises(NoSuchSnapshot):
            read_snapshot(theirs.folder(1))
        self.checkpointed(made, store, 2, 200)

    def test_a_claimed_snapshot_that_is_gone_harms_nobody(self, place, caplog):
        store = FolderStore(place, "job")
        made = coordinator(store)
        made.adopt((), f"{place}/nothing")
        self.checkpointed(made, store, 1, 100)
        assert "not deleted" in caplog.text and [m.number for m in made.kept] == [1]

    def test_the_end(self, place):
        store = FolderStore(place, "job")
        made = coordinator(store, retained=2)
        for number in (1, 2, 3):
            self.checkpointed(made, store, number, number * 100)
        made.release(keep=True, finished=False)
        assert [m.number for m in store.complete()] == [2, 3]
        made.release(keep=False, finished=True)
        assert Storage(f"{place}/job").names() == []

    def test_a_cancelled_job_that_retains_keeps_what_it_started_from(self, place):
        """It was recovered, and cancelled before it took a checkpoint of its own: the earlier one is all there is."""
        store = FolderStore(place, "job")
        self.checkpointed(coordinator(store), store, 1, 100)
        made = coordinator(store, first=2)
        made.adopt(store.complete(), None)
        made.release(keep=True, finished=False)
        assert [m.number for m in store.complete()] == [1]


def written_state(number):
    return State(Name("map-1", Kind.KEYED, "s"), [bytes([number]) * 100])


def readable(metadata):
    """Whether everything that a checkpoint needs is there."""
    for slot in metadata.slots:
        for ref in slot.files:
            with SnapshotFile(ref) as opened:
                for name in opened.sections:
                    list(opened.pages(name))
    return True


def test_in_the_memory_of_the_driver():
    store = MemoryStore("job")
    made = coordinator(store)
    made.order(100, 0, {})
    inline = SlotSnapshot([FileRef(f"{store.folder(1)}/slot-0", 5, 0, "c", b"state")])
    made.receive([Acknowledgement(1, slot, inline) for slot in range(SLOTS)], 100)
    assert made.kept[0].slots[0].files[0].inline == b"state"
    made.release(keep=False, finished=True)


def test_what_was_about_to_be_published_when_the_job_failed_is_given_up():
    """The first checkpoint is whole; the second fails the job before the driver has published the first."""
    made = pure.Coordinator(PLAN, "job", CheckpointRules(interval=100, max_concurrent=2), Shelves().folder)
    made.start(0)
    made.order(100, 0)
    made.order(200, 1)
    with pytest.raises(CheckpointFailed):
        made.receive([*answers(1, "store://chk-1/f"), answer(2, 0, failure=DECLINED)], 210)
    assert any(isinstance(order, Publish) for order in made.agenda)
    made.start(220)
    assert not any(isinstance(order, Publish) for order in made.agenda) and made.kept == []
    assert Discard(1, ["store://chk-1/f"] * SLOTS) in made.agenda


def test_the_view_counts_checkpoints_that_failed():
    made = coordinator(tolerable_failures=5)
    for number in (1, 2):
        order = made.order(number * 100, 0, {})
        made.receive([answer(order.number, 1, failure=DECLINED)], number * 100 + 7)
    made.order(300, 0, {})
    made.receive(answers(3), 310)
    view = made.view()
    assert (view.failed_in_all, view.completed_in_all, view.in_progress) == (2, 1, ())
    assert [(record.number, record.ended) for record in view.failed] == [(1, 107), (2, 207)]
    assert all("no room in the inn" in record.failure for record in view.failed)


@pytest.mark.parametrize("hour", [3_600_000, -3_600_000])
def test_checkpoints_go_on_when_the_clock_is_set(hour):
    made = pure.Coordinator(PLAN, "job", CheckpointRules(100, timeout=1000, min_pause=50), Shelves().folder)
    made.start(5_000_000)
    made.order(5_000_100, 0)
    for order in [made.receive(answers(1), 5_000_110), *list(made.agenda)]:
        if isinstance(order, Publish):
            made.note_published(order.metadata, "path", 5_000_120)
    now = 5_000_130 + hour
    first = made.order(now, 1)
    assert (first is None) is (hour < 0), "an hour later it is due"
    second = first or made.order(now + 100, 2)
    assert second.number == 2 and made.next_due() is None
    made.order(second.timestamp - 10_000, 3)
    with pytest.raises(CheckpointFailed):
        made.expire(second.timestamp - 9_000)


def test_the_view_tells_what_each_slot_has_given():
    made = coordinator(Shelves())
    made.order(100, 0, {})
    made.receive([answer(1, 0, "store://chk-1/f"), Acknowledgement(1, 1, written=3)], 130)
    (record,) = made.view().completed
    assert [(share.slot, share.acknowledged, share.size, share.written) for share in record.slots] == [
        (0, 130, 10, 10),
        (1, 130, 0, 3),
    ]


@pytest.mark.parametrize(("everything", "since"), [(True, 0), (False, 5)])
def test_a_folder_that_is_the_jobs_own_is_tidied_from_its_first_checkpoint(everything, since):
    made = pure.Coordinator(PLAN, "job", CheckpointRules(interval=100), Shelves().folder, 5)
    made.adopt((), everything=everything)
    made.release(keep=False, finished=True)
    assert list(made.agenda) == [Tidy([], since, True)]
