"""A slot's files hold what changed since the last complete checkpoint; together they hold everything."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.datastream.state import ValueStateDescriptor
from penstock.engine.messages.commands_and_reports import CheckpointOrder, CheckpointSettings, Deployment
from penstock.engine.records.failures import OperatorFailed, failure_of
from penstock.engine.snapshots.snapshot_parts import SubtaskSnapshot
from penstock.engine.snapshots.writing import SlotCheckpoints
from penstock.engine.state.backend import KeyedStateBackend
from penstock.engine.state.snapshot_file import Restore, SnapshotFile

STATE = ValueStateDescriptor("s")


def made(restore=None, **changes):
    """A slot's side of checkpoints that writes at once, into its answers."""
    given = CheckpointSettings(**{"asynchronous": False, "inline_below": 1 << 30, **changes})
    return SlotCheckpoints(0, Deployment("job", None, {}, {}, checkpoints=given, restore=restore))


def loaded(snapshot):
    """The state that a checkpoint holds."""
    backend = KeyedStateBackend()
    table = backend.table(STATE)
    for ref in snapshot.files:
        with SnapshotFile(ref) as file:
            for name in file.sections:
                for page in file.pages(name):
                    table.load(page)
    return backend, dict(table.entries)


class Slot:
    """A table and the checkpoints that are taken of it."""

    def __init__(self, restored=None, **changes):
        restore = None if restored is None else Restore(1, {}, [restored], continued=True)
        self.checkpoints = made(restore, **changes)
        self.backend = KeyedStateBackend() if restored is None else loaded(restored)[0]
        self.table = self.backend.table(STATE)

    def take(self, number, savepoint=False):
        order = CheckpointOrder(number, 0, f"driver://chk-{number}", savepoint=savepoint)
        self.checkpoints.take(order, lambda extent: self.snapshot(order, extent))
        (answer,) = self.checkpoints.answers()
        return answer

    def snapshot(self, order, extent):
        into = SubtaskSnapshot("u", order.number, 0, extent)
        into.keyed(self.backend, "")
        return into.states

    def complete(self, number):
        self.checkpoints.complete(number)
        self.table.confirm(number)


class Chains(RuleBasedStateMachine):
    """Writes, checkpoints that complete or never do, savepoints, and failures, in any order."""

    @initialize(incremental=st.booleans(), compress=st.booleans())
    def begin(self, incremental, compress):
        self.settings = {"incremental": incremental, "compress": compress}
        self.slot = Slot(**self.settings)
        self.number = 0
        self.pending, self.last = {}, None

    @rule(key=st.integers(0, 5), value=st.integers(0, 99))
    def write(self, key, value):
        self.slot.table.put(key, value)

    @rule(key=st.integers(0, 5))
    def remove(self, key):
        self.slot.table.remove(key)

    @rule()
    def take(self):
        self.number += 1
        answer = self.slot.take(self.number)
        self.pending[self.number] = (answer.snapshot, dict(self.slot.table.entries))

    @rule()
    def take_a_savepoint(self):
        self.number += 1
        snapshot = self.slot.take(self.number, savepoint=True).snapshot
        assert len(snapshot.files) == 1 and loaded(snapshot)[1] == self.slot.table.entries

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def complete(self, data):
        number = data.draw(st.sampled_from(sorted(self.pending)))
        self.last = self.pending[number]
        self.pending = {later: held for later, held in self.pending.items() if later > number}
        self.slot.complete(number)

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def forget(self, data):
        """Give up a checkpoint that failed in another slot; no notice comes."""
        del self.pending[data.draw(st.sampled_from(sorted(self.pending)))]

    @precondition(lambda self: self.last is not None)
    @rule()
    def fail(self):
        self.slot = Slot(self.last[0], **self.settings)
        self.pending = {}
        assert self.slot.table.entries == self.last[1]

    @invariant()
    def every_checkpoint_holds_the_state_of_its_time(self):
        for snapshot, entries in getattr(self, "pending", {}).values():
            assert loaded(snapshot)[1] == entries


TestChains = Chains.TestCase
TestChains.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


class TestChain:
    def fill(self, slot, keys=200):
        for key in range(keys):
            slot.table.put(key, "x" * 20)

    def taken(self, slot, number):
        answer = slot.take(number)
        slot.complete(number)
        return answer

    def test_the_second_holds_only_what_changed(self):
        slot = Slot()
        self.fill(slot)
        first = self.taken(slot, 1)
        slot.table.put(7, "y")
        second = self.taken(slot, 2)
        assert second.written < first.written / 5
        assert second.snapshot.files[0].url == first.snapshot.files[0].url

    def test_unless_checkpoints_are_not_incremental(self):
        slot = Slot(incremental=False)
        self.fill(slot)
        first, second = self.taken(slot, 1), self.taken(slot, 2)
        assert len(second.snapshot.files) == 1 and second.written == first.written

    def test_it_is_cut_when_its_tail_has_outgrown_its_head(self):
        slot = Slot()
        self.fill(slot, 20)
        lengths = []
        for number in range(1, 30):
            self.fill(slot, 10)
            lengths.append(len(self.taken(slot, number).snapshot.files))
        assert lengths.count(1) >= 3 and max(lengths) < 8

    def test_it_is_cut_when_it_is_long(self):
        slot = Slot()
        self.fill(slot, 3000)
        lengths = []
        for number in range(1, 102):
            slot.table.put(0, number)
            lengths.append(len(self.taken(slot, number).snapshot.files))
        assert lengths == [*range(1, 51), *range(1, 51), 1]

    def test_one_that_is_not_complete_is_not_built_on(self):
        slot = Slot()
        self.fill(slot)
        self.taken(slot, 1)
        slot.table.put(1, "lost")
        slot.take(2)
        third = slot.take(3)
        assert [ref.url.split("/")[2] for ref in third.snapshot.files] == ["chk-1", "chk-3"]
        assert loaded(third.snapshot)[1][1] == "lost"

    def test_a_savepoint_changes_nothing_for_checkpoints(self):
        slot = Slot()
        self.fill(slot)
        self.taken(slot, 1)
        slot.table.put(1, "y")
        slot.take(2, savepoint=True)
        third = slot.take(3)
        assert len(third.snapshot.files) == 2 and loaded(third.snapshot)[1][1] == "y"

    def test_a_slot_that_goes_on_builds_on_what_was_there(self):
        slot = Slot()
        self.fill(slot)
        first = self.taken(slot, 1)
        after = Slot(first.snapshot)
        after.table.put(1, "y")
        second = after.take(2)
        assert second.snapshot.files[0] == first.snapshot.files[0] and len(second.snapshot.files) == 2

    def test_two_processes_never_write_the_same_file(self):
        names = {Slot().take(1).snapshot.files[0].url for _ in range(50)}
        assert len(names) == 50

    def test_a_snapshot_that_fails_is_an_answer_too(self):
        slot = made()

        def refuse(extent):
            raise OperatorFailed(failure_of(ValueError("no"), "Map", "m", 0))

        slot.take(CheckpointOrder(1, 0, "driver://chk-1"), refuse)
        (answer,) = slot.answers()
        assert answer.snapshot is None and "ValueError: no" in answer.failure.describe()
        assert slot.answers() == []

    @pytest.mark.parametrize("largest", [50, 100_000])
    def test_the_limit_of_the_drivers_memory(self, largest):
        slot = Slot(largest_inline=largest)
        self.fill(slot)
        answer = slot.take(1)
        assert (answer.failure is None) is (largest == 100_000)
