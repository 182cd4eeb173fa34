"""TimerQueue against a sorted list."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.operators.timers import TimerQueue
from penstock.engine.state.tables import Layout, Table, pack_page

TIMES = st.integers(-5, 20)
KEYS = st.sampled_from(["a", "b", 1, ("x", 2)])
NAMESPACES = st.sampled_from([None, "w1", (0, 10)])
TIMERS = st.tuples(TIMES, KEYS, NAMESPACES)
# What firing a timer does next: register another one some time later, delete one, or nothing.
REACTIONS = st.lists(
    st.one_of(
        st.none(),
        st.tuples(st.just("register"), st.integers(-3, 6), KEYS, NAMESPACES),
        st.tuples(st.just("delete"), TIMERS),
    ),
    max_size=12,
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("register"), TIMERS),
        st.tuples(st.just("delete"), TIMERS),
        st.tuples(st.just("fire"), st.integers(-6, 30), REACTIONS),
    ),
    max_size=40,
)


class SortedList:
    """The oracle: a list of (time, registration number, key, namespace), kept sorted."""

    def __init__(self) -> None:
        self.timers: list[tuple[int, int, Any, Any]] = []
        self.registered = 0

    def register(self, time: int, key: Any, namespace: Any) -> None:
        if all((t, k, n) != (time, key, namespace) for t, _, k, n in self.timers):
            self.registered += 1
            self.timers = sorted([*self.timers, (time, self.registered, key, namespace)], key=lambda t: t[:2])

    def delete(self, time: int, key: Any, namespace: Any) -> None:
        self.timers = [t for t in self.timers if (t[0], t[2], t[3]) != (time, key, namespace)]

    def fire(self, until: int, on_timer) -> None:
        while self.timers and self.timers[0][0] <= until:
            time, _, key, namespace = self.timers.pop(0)
            on_timer(time, key, namespace)

    def waiting(self) -> list[tuple[int, Any, Any]]:
        return [(time, key, namespace) for time, _, key, namespace in self.timers]


def fire(queue: Any, until: int, reactions: list[Any]) -> list[tuple[int, Any, Any]]:
    fired, plan = [], iter(reactions)

    def on_timer(time: int, key: Any, namespace: Any) -> None:
        fired.append((time, key, namespace))
        reaction = next(plan, None)
        if reaction is None:
            return
        if reaction[0] == "register":
            queue.register(time + reaction[1], reaction[2], reaction[3])
        else:
            queue.delete(*reaction[1])

    queue.fire(until, on_timer)
    return fired


@given(STEPS)
def test_timers_fire_as_a_sorted_list_would(steps):
    queue, oracle = TimerQueue(), SortedList()
    for step in steps:
        if step[0] == "fire":
            assert fire(queue, step[1], step[2]) == fire(oracle, step[1], step[2])
        else:
            getattr(queue, step[0])(*step[1])
            getattr(oracle, step[0])(*step[1])
        assert queue.timers() == oracle.waiting()
        assert len(queue) == len(oracle.timers)
        assert queue.next_time() == (oracle.timers[0][0] if oracle.timers else None)


@given(st.lists(TIMERS, max_size=30), st.integers(-6, 25))
def test_each_timer_fires_once_and_in_order_of_time(timers, until):
    queue = TimerQueue()
    for timer in timers:
        queue.register(*timer)
    fired: list[Any] = []
    queue.fire(until, lambda *timer: fired.append(timer))
    assert sorted(map(repr, fired)) == sorted(map(repr, {t for t in timers if t[0] <= until}))
    assert [t[0] for t in fired] == sorted(t[0] for t in fired)
    queue.fire(until, lambda *timer: fired.append("again"))
    assert "again" not in fired


@given(TIMES, TIMES)
def test_a_timer_deleted_and_registered_again_takes_its_new_place(first, second):
    queue = TimerQueue()
    queue.register(first, "a")
    queue.register(first, "b")
    queue.delete(first, "a")
    queue.register(first, "a")
    queue.delete(second, "gone")
    fired: list[Any] = []
    queue.fire(first, lambda time, key, namespace: fired.append(key))
    assert fired == ["b", "a"] and len(queue) == 0


def test_one_failing_timer_leaves_the_others_waiting():
    queue = TimerQueue()
    for time in (1, 2, 3):
        queue.register(time, "k")

    def fail(time, key, namespace):
        if time == 2:
            raise ValueError("no")

    with pytest.raises(ValueError, match=r"no"):
        queue.fire(5, fail)
    assert queue.timers() == [(3, "k", None)]


@given(st.lists(TIMERS, max_size=20), st.integers(-6, 25), REACTIONS)
def test_a_clock_that_stands_still_leaves_timers_for_the_past_waiting(timers, until, reactions):
    queue, fired, plan = TimerQueue(), [], iter(reactions)
    for timer in timers:
        queue.register(*timer)
    due = {timer for timer in timers if timer[0] <= until}
    behind: set[Any] = set()

    def on_timer(time: int, key: Any, namespace: Any) -> None:
        fired.append((time, key, namespace))
        assert (time, key, namespace) not in behind, "this timer was set for no later time, during this call"
        reaction = next(plan, None)
        if reaction is None:
            return
        if reaction[0] == "delete":
            due.discard(reaction[1])
            behind.discard(reaction[1])
            queue.delete(*reaction[1])
            return
        added = (time + reaction[1], reaction[2], reaction[3])
        if reaction[1] <= 0 and added not in queue.timers():
            behind.add(added)
        queue.register(*added)

    queue.fire_once(until, on_timer)
    assert due <= set(fired)
    assert [time for time, *_ in fired] == sorted(time for time, *_ in fired)
    assert behind <= set(queue.timers())
    waiting, again = {timer for timer in queue.timers() if timer[0] <= until}, []
    assert queue.next_time() == min((timer[0] for timer in queue.timers()), default=None)
    queue.fire_once(until, lambda *timer: again.append(timer))
    assert set(again) == waiting
    assert all(timer[0] > until for timer in queue.timers())


def test_a_processing_time_timer_set_for_now_fires_at_the_next_tick():
    queue, fired = TimerQueue(), []

    def set_again(time, key, namespace):
        fired.append(key)
        if key == "first":
            queue.register(time, "second")

    queue.register(5, "first")
    queue.fire_once(5, set_again)
    assert (fired, queue.timers(), queue.next_time()) == (["first"], [(5, "second", None)], 5)
    queue.fire_once(5, set_again)
    assert (fired, queue.timers()) == (["first", "second"], [])


def test_a_deleted_timer_does_not_hide_later_ones_that_are_due():
    queue, fired = TimerQueue(), []
    for time in (1, 2, 3):
        queue.register(time, "k")
    queue.delete(1, "k")
    queue.fire_once(5, lambda time, *_: fired.append(time))
    assert fired == [2, 3]


@given(st.lists(TIMERS, min_size=1, max_size=12, unique=True), st.lists(TIMERS, max_size=12, unique=True))
def test_timers_registered_after_a_restore_come_after_restored_ones_of_the_same_time(before, after):
    table = Table("timers", Layout.TIMER)
    first = TimerQueue(table)
    for timer in before:
        first.register(*timer)
    again = TimerQueue(table)
    for timer in after:
        again.register(*timer)
    expected = [*before, *(timer for timer in after if timer not in before)]
    assert again.timers() == sorted(expected, key=lambda timer: timer[0])
    fired: list[Any] = []
    again.fire(100, lambda *timer: fired.append(timer))
    assert fired == sorted(expected, key=lambda timer: timer[0])


def test_every_change_of_a_timer_is_part_of_the_next_checkpoint():
    table = Table("timers", Layout.TIMER)
    queue, changed = TimerQueue(table), set()
    for step in (
        lambda: queue.register(1, "k"),
        lambda: queue.delete(1, "k"),
        lambda: queue.register(1, "k"),
        lambda: queue.fire(1, lambda *_: None),
        lambda: queue.register(1, "k"),
        lambda: queue.fire_once(1, lambda *_: None),
    ):
        table.changed.clear()
        step()
        changed.add(frozenset(table.changed))
    assert changed == {frozenset({(1, "k", None)})}
    table.changed.clear()
    queue.delete(1, "k")
    assert table.changed == set(), "there was no such timer"


def test_timers_of_several_slots_that_counted_for_themselves_are_counted_anew():
    table = Table("timers", Layout.TIMER)
    table.load(pack_page([((5, "a", None), 0), ((5, 1, None), 0), ((5, None, None), 1), ((4, "b", None), 1)]))
    queue, fired = TimerQueue(table), []
    queue.register(5, "new")
    queue.fire(5, lambda time, key, namespace: fired.append(key))
    assert fired == ["b", "a", 1, None, "new"]
