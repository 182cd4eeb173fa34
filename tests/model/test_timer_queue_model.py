"""TimerQueue against a sorted list."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.runtime.core.timers import TimerQueue

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
