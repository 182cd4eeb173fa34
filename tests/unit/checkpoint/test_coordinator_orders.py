"""What the coordinator of checkpoints orders, answers and reports, order by order."""

import pytest

from penstock.base import pickling
from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.checkpoint.checkpoint_history import CheckpointsView, Restored
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
    Tidy,
)
from penstock.engine.checkpoint.coordinator import CheckpointRules, Coordinator
from penstock.engine.checkpoint.metadata import Metadata
from penstock.engine.messages.commands_and_reports import Acknowledgement, Notice
from penstock.engine.records.failures import Failure
from penstock.engine.state.snapshot_file import FileRef, SlotSnapshot
from penstock.errors import AlreadyThere, CheckpointFailed, StorageError
from penstock.service.launch.submission import plan_of

DECLINED = Failure("Map", "map-1", 0, "", "ValueError", "no", "")


def plan():
    env = StreamExecutionEnvironment().set_parallelism(1)
    env.from_sequence(1, 2).map(str).print()
    return plan_of(env, "job")


PLAN = plan()


def coordinator(first=1, **rules):
    made = Coordinator(
        PLAN, "job", CheckpointRules(**{"interval": 100, **rules}), lambda number: f"store://job/chk-{number}", first
    )
    made.start(0)
    return made


def acknowledge(number, *files):
    snapshot = SlotSnapshot([FileRef(url, 10, 5, "c") for url in files])
    return [Acknowledgement(number, 0, snapshot, written=10)]


def published(made, wanted=None, now=100, epoch=3):
    """Let the coordinator take a snapshot and hear that it was published. Return its metadata."""
    order = made.begin(now, epoch, wanted)
    made.receive(acknowledge(order.number, f"{order.folder}/f"), now + 1)
    publish = made.agenda.pop()
    assert isinstance(publish, Publish)
    made.note_published(publish.metadata, "the path", now + 2)
    return publish.metadata


def orders(made):
    taken = list(made.agenda)
    made.agenda.clear()
    return taken


def of(number, **more):
    return Metadata(number, 0, "job", "job", {}, [SlotSnapshot([])], fingerprint="", **more)


# --- what is known at the beginning ---
def test_at_the_beginning_nothing_has_happened():
    made = coordinator()
    assert made.view() == CheckpointsView()
    assert (made.last_epoch, made.last_savepoint, made.kept, made.history) == (-1, None, [], ())
    assert not made.has_news() and not made.awaits_slots() and made.next_due() == 100


def test_rules_that_are_not_given_are_those_of_flink():
    assert CheckpointRules() == CheckpointRules(None, 600_000, 0, 1, 0, 1)


def test_the_view_tells_where_the_attempt_continues():
    made = coordinator()
    checkpoint = published(made)
    savepoint = published(made, SavepointRequest("store://sp"), now=200)
    made.note_restored(checkpoint, 300)
    assert made.view().restored == Restored(1, False, 300, "the path")
    made.note_restored(savepoint, 310)
    assert made.view().restored == Restored(2, True, 310, "the path")
    made.note_restored(of(1, savepoint=True), 320)
    assert made.view().restored == Restored(1, True, 320, None), "of another job, which has the same number"
    assert made.view().restored_in_all == 3


def test_a_snapshot_in_progress_is_in_the_view():
    made = coordinator()
    made.begin(100, 0)
    (record,) = made.view().in_progress
    assert (record.number, record.started, record.ended, record.expected, record.savepoint) == (1, 100, None, 1, False)
    assert made.awaits_slots() and made.has_news()


# --- requests ---
def test_an_asked_checkpoint_is_answered_with_its_number():
    made, request = coordinator(), CheckpointRequest(full=True)
    order = made.begin(50, 3, request)
    assert order.full and not order.savepoint and order.folder == "store://job/chk-1"
    made.receive(acknowledge(1, "store://job/chk-1/f"), 60)
    (publish,) = orders(made)
    made.note_published(publish.metadata, "the path", 70)
    assert orders(made) == [Reply(request, "1"), Covered(1, 3)]
    assert made.next_due() == 150, "the interval begins anew"
    assert not made.begin(150, 4, CheckpointRequest()).full and not made.begin(150, 4).full


def test_an_asked_checkpoint_that_fails_is_answered_with_the_reason():
    made, request = coordinator(tolerable_failures=1), CheckpointRequest()
    made.begin(50, 3, request)
    made.receive([Acknowledgement(1, 0, failure=DECLINED)], 60)
    reply, discard = orders(made)
    assert reply.request is request and str(reply.error).startswith("the checkpoint failed: ")
    assert discard == Discard(1, []) and made.take_notices() == [Notice(1, complete=False)]


def test_a_savepoint_changes_nothing_for_checkpoints():
    made, request = coordinator(), SavepointRequest("store://sp")
    before = published(made)
    orders(made), made.take_notices()
    due = made.next_due()
    savepoint = published(made, request, now=150)
    assert savepoint.savepoint and not savepoint.drained
    assert orders(made) == [Reply(request, "the path")] and made.take_notices() == []
    assert made.next_due() == due and made.kept == [before] and made.last_savepoint is None


def test_the_last_savepoint_gives_up_what_is_under_way():
    made, request = coordinator(max_concurrent=2), SavepointRequest("store://sp", stop=True, drain=True)
    made.begin(100, 2)
    savepoint = published(made, request, now=150, epoch=7)
    assert savepoint.drained and (made.last_savepoint, made.last_epoch) == (savepoint, 7)
    assert orders(made) == [Reply(request, "the path"), Discard(1, [])]
    assert made.take_notices() == [Notice(1, complete=False), Notice(2, complete=True, savepoint=True)]


def test_everything_that_waits_is_answered_when_another_driver_has_the_job():
    made = coordinator(max_concurrent=3)
    savepoint, asked = SavepointRequest("store://sp"), CheckpointRequest()
    published(made)
    made.begin(200, 1, savepoint)
    made.begin(200, 1, asked)
    made.begin(200, 1)
    made.abandon("displaced")
    replies = orders(made)
    assert [reply.request for reply in replies] == [savepoint, asked]
    assert {str(reply.error) for reply in replies} == {"the savepoint failed: displaced"}
    assert not made.awaits_slots()


# --- files ---
def test_late_files_are_deleted_wherever_they_lie():
    made = coordinator()
    inline = SlotSnapshot([FileRef("store://job/chk-1/inline", 5, 0, "c", b"state")])
    made.receive([Acknowledgement(9, 0, failure=DECLINED), Acknowledgement(9, 0, inline)], 10)
    assert orders(made) == []
    made.receive(acknowledge(9, "store://job/chk-8/old", "store://job/chk-9/new"), 10)
    assert orders(made) == [Discard(0, ["store://job/chk-9/new"])], "the earlier file belongs to another one"
    made.receive(acknowledge(9, "store://other/sp/new"), 10)
    assert orders(made) == [DiscardSavepoint("store://other/sp", ["store://other/sp/new"])]


@pytest.mark.parametrize(("lasting", "uncertain"), [(True, False), (False, True)])
def test_files_of_a_checkpoint_that_may_be_there_wait_for_the_next(lasting, uncertain):
    made, error = coordinator(tolerable_failures=1), StorageError("full")
    error.lasting = lasting
    made.begin(100, 0)
    made.receive(acknowledge(1, "store://job/chk-1/f"), 101)
    (publish,) = orders(made)
    made.note_unpublished(publish.metadata, error, 102)
    discard = Discard(1, ["store://job/chk-1/f"], uncertain)
    assert orders(made) == ([] if uncertain else [discard])
    published(made, now=200)
    assert orders(made) == [*([discard] if uncertain else []), Covered(2, 3)]
    published(made, now=300)
    assert discard not in orders(made)


def test_a_number_that_is_taken_is_no_failure():
    made = coordinator()
    made.begin(100, 0)
    made.receive(acknowledge(1, "store://job/chk-1/f"), 101)
    (publish,) = orders(made)
    made.note_unpublished(publish.metadata, AlreadyThere("it is there"), 102)
    assert made.view().failed_in_all == 1


def test_older_checkpoints_go_when_no_other_builds_on_them():
    made = coordinator(max_concurrent=2, retained=2)
    earlier = of(0)
    made.adopt([earlier], "the claimed one")
    first = published(made)
    assert orders(made) == [Drop([earlier], [first]), DeleteClaimed("the claimed one"), Covered(1, 3)]
    made.begin(200, 4)
    second, third = published(made, now=300), published(made, now=400)
    assert made.line() == [second, third] and made.kept == [second, third]
    assert Drop([first], [second, third]) in orders(made), "the one under way was given up"


def test_what_one_under_way_builds_on_stays():
    made = coordinator(max_concurrent=3)
    first = published(made)
    request = SavepointRequest("store://sp")
    made.begin(150, 4, request)
    second = published(made, now=200)
    assert made.kept == [second] and made.line() == [first, second]
    assert not [one for one in orders(made) if isinstance(one, Drop)]
    made.receive([Acknowledgement(2, 0, failure=DECLINED)], 210)
    third = published(made, now=300)
    assert Drop([first, second], [third]) in orders(made) and made.line() == [third]


@pytest.mark.parametrize("keep", [True, False])
def test_the_end_keeps_what_was_asked(keep):
    made = coordinator(first=4)
    kept = published(made)
    orders(made)
    made.release(keep, finished=not keep)
    assert orders(made) == [Tidy([kept] if keep else [], 4, not keep)]


# --- answers ---
def test_positions_of_enumerators_are_part_of_the_checkpoint():
    made = coordinator()
    made.begin(100, 0)
    made.locate(1, {"s": {"at": 5}})
    made.receive([Acknowledgement(1, 0)], 101)
    (publish,) = orders(made)
    assert {uid: pickling.loads(data) for uid, data in publish.metadata.enumerators.items()} == {"s": {"at": 5}}
    assert publish.metadata.slots == [SlotSnapshot([])] and publish.savepoint_folder is None


def test_an_answer_that_comes_twice_publishes_once():
    made = coordinator()
    made.begin(100, 0)
    made.receive(acknowledge(1, "store://job/chk-1/f") * 2, 101)
    assert [type(order) for order in orders(made)] == [Publish]


def test_a_checkpoint_is_late_at_its_deadline():
    made = coordinator(timeout=50, tolerable_failures=0)
    made.begin(100, 0)
    made.expire(149)
    assert made.awaits_slots()
    with pytest.raises(
        CheckpointFailed, match=r"checkpoint 1 failed, and 0 failures in a row are tolerated .* after 50 ms"
    ):
        made.expire(150)


def test_what_is_under_way_when_a_job_ends_is_no_failure_that_counts():
    made, request = coordinator(), SavepointRequest("store://sp")
    made.begin(100, 0)
    made.begin(100, 0, request)
    made.close("the job was cancelled", 200)
    found = orders(made)
    assert found[:2] == [Discard(1, []), DiscardSavepoint("store://sp", [], False)]
    assert str(found[2].error) == "the savepoint failed: the job was cancelled" and not made.awaits_slots()
    assert [record.failure for record in made.view().failed] == ["the job was cancelled"] * 2
