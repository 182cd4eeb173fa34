"""Questions for one slot: how they are put together, answered and refused, and when epochs become short for them."""

import pytest

from penstock.engine.job import slot_queries as module
from penstock.engine.job.epochs import EpochOptions
from penstock.engine.job.queued_queries import ATTENTION_MILLIS, BRISK_MILLIS, SLOW_MILLIS, Lookups
from penstock.engine.job.slot_queries import Asides, AsideTimes
from penstock.engine.job.state_queries import MOST_ASIDE_BYTES, Parts, StateQuery
from penstock.engine.queryable.query_requests import Cut, QueryRequest
from penstock.engine.queryable.slot_states import Finding, Findings, Question
from penstock.errors import StateUnavailable

NOW = 5_000


class Desk:
    """Knows where every query belongs, and keeps what it is told."""

    def __init__(self):
        self.answered = []

    def put(self, query, number, questions):
        if not query.future.set_running_or_notify_cancel():
            return False
        for slot, question in query.parts.by_slot.items():
            questions.setdefault(slot, {})[number] = question
        return True

    def answer(self, query, found, cut):
        self.answered.append((query, found, cut))


@pytest.fixture
def desk():
    return Desk()


@pytest.fixture
def asides(desk):
    return Asides(desk, lambda: NOW)


def query(slot=0, size=1, *more_slots):
    slots = (slot, *more_slots)
    parts = Parts("uid", {each: Question("q", b"k" * size) for each in slots})
    return StateQuery(QueryRequest.of("q", *range(len(slots))), parts=parts)


def findings(slot, numbers, step=1):
    return Findings(slot, 0, 7, tuple(map(Finding, numbers)), step)


def test_a_slot_is_asked_while_it_works_for_few_keys_that_are_all_its_own():
    assert query().is_aside
    assert not query(0, 1, 1).is_aside
    assert not StateQuery(QueryRequest.of("q", 1)).is_aside  # where it belongs is not known
    assert query(0, MOST_ASIDE_BYTES).is_aside and not query(0, MOST_ASIDE_BYTES + 1).is_aside
    scan = StateQuery(QueryRequest("q"), parts=Parts("uid", {0: Question("q")}))
    assert not scan.is_aside and scan.size == 0


def test_questions_go_to_their_slots_and_answers_to_their_queries(asides, desk):
    queries = [query(0), query(1), query(0)]
    for each in queries:
        asides.add(each)
    lookups = asides.questions()
    assert {slot: list(lookup.questions) for slot, lookup in lookups.items()} == {0: [0, 2], 1: [1]}
    assert {lookup.now for lookup in lookups.values()} == {NOW}
    asides.answer(findings(1, [1], step=3))
    assert asides.are_open() and asides.are_open(0) and not asides.are_open(1)
    asides.answer(findings(0, [0, 2], step=0))
    assert not asides.are_open()
    assert [(each, cut) for each, _, cut in desk.answered] == [
        (queries[1], Cut(0, 7, NOW, 1, 3)),
        (queries[0], Cut(0, 7, NOW)),  # it had ended the epoch by then
        (queries[2], Cut(0, 7, NOW)),
    ]
    assert asides.times().answered == 3 and asides.times() == AsideTimes()


def test_nothing_more_is_asked_before_answers_have_come_and_a_pause_is_over(asides):
    assert asides.due_in() is None
    asides.add(query())
    assert asides.due_in() == 0
    asides.questions()
    asides.add(query())
    assert asides.due_in() is None
    asides.answer(findings(0, [0]))
    assert 0 < asides.due_in() <= module.PAUSE_SECONDS


def test_what_is_too_much_for_a_slot_that_does_not_read_waits(asides):
    for _ in range(4):
        asides.add(query(0, MOST_ASIDE_BYTES // 2))
    assert len(asides.questions()[0].questions) == 2
    assert len(list(asides.left())) == 2 and asides.due_in() is None


def test_a_query_that_nobody_waits_for_any_more_is_not_asked(asides):
    gone = query()
    asides.add(gone)
    gone.future.cancel()
    assert asides.questions() == {} and not asides.are_open()


def test_what_was_asked_is_refused_when_the_slot_is_gone(asides):
    asked, waits = query(), query()
    asides.add(asked)
    asides.questions()
    asides.add(waits)
    asides.refuse(StateUnavailable("gone"))
    with pytest.raises(StateUnavailable, match="gone"):
        asked.future.result(0)
    assert not waits.future.done() and list(asides.left()) == [waits] and not asides.are_open()


def test_slots_are_slow_if_more_than_a_quarter_of_the_answers_is_late():
    times = AsideTimes().with_answers(75, late=False)
    assert not times.with_answers(25, late=True).are_slow
    assert times.with_answers(26, late=True).are_slow
    assert not AsideTimes().are_slow


# --- short epochs ---
OPTIONS = EpochOptions(max_millis=1000)
SLOW, QUICK, NONE = AsideTimes(10, 10), AsideTimes(10, 0), AsideTimes()


def millis(lookups, now):
    return lookups.limits(OPTIONS, 1_000_000, 0, now)[1]


def test_epochs_stay_long_while_slots_answer_within_them():
    lookups = Lookups(OPTIONS)
    lookups.add(query())
    lookups.take(0)
    lookups.epoch_ran(900, 1000, QUICK, 100)
    assert millis(lookups, 200) == 1000


def test_epochs_are_short_while_somebody_asks_several_slots():
    lookups = Lookups(OPTIONS)
    lookups.add(query(0, 1, 1))
    lookups.take(0)
    assert millis(lookups, ATTENTION_MILLIS) == BRISK_MILLIS
    assert millis(lookups, ATTENTION_MILLIS + 1) == 1000


def test_epochs_are_short_while_somebody_asks_for_many_keys():
    lookups = Lookups(OPTIONS)
    lookups.add(query(0, MOST_ASIDE_BYTES + 1))
    lookups.take(0)
    assert millis(lookups, 1) == BRISK_MILLIS


def test_epochs_are_short_if_steps_are_long_as_long_as_somebody_asks():
    lookups = Lookups(OPTIONS)
    lookups.epoch_ran(900, 1000, SLOW, 0)
    assert millis(lookups, 10) == BRISK_MILLIS
    assert millis(lookups, ATTENTION_MILLIS + 1) == 1000  # nobody asks
    lookups.epoch_ran(15, 10, QUICK, SLOW_MILLIS - 1)
    assert millis(lookups, SLOW_MILLIS) == BRISK_MILLIS  # quick, since epochs are short
    assert millis(lookups, SLOW_MILLIS + 1) == 1000
    lookups.epoch_ran(15, 10, NONE, SLOW_MILLIS + 2)
    assert millis(lookups, SLOW_MILLIS + 3) == 1000
