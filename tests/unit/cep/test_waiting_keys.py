"""Keys that wait for the watermark come when it reaches them, against a list that is searched each time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.cep.waiting_keys import WaitingKeys

TIMES = st.integers(0, 12)
STEPS = st.lists(
    st.one_of(st.tuples(st.just("add"), TIMES), st.tuples(st.just("due"), TIMES), st.just(("clear", 0))), max_size=40
)


@given(st.lists(TIMES, max_size=6), STEPS)
def test_each_key_comes_once_when_the_watermark_reaches_its_time(
    first: list[int], steps: list[tuple[str, int]]
) -> None:
    waiting = [(time, f"restored {number}") for number, time in enumerate(first)]
    keys = WaitingKeys(waiting)
    for number, (step, time) in enumerate(steps):
        if step == "add":
            keys.add((time, f"key {number}"))
            waiting.append((time, f"key {number}"))
        elif step == "due":
            reached = [key for at, key in waiting if at <= time]
            assert sorted(keys.due(time)) == sorted(reached)
            waiting = [(at, key) for at, key in waiting if at > time]
        else:
            keys.clear()
            waiting.clear()
    assert len(list(keys.due(12))) == len(waiting)


def test_keys_that_arrived_together_come_in_the_order_of_their_times() -> None:
    keys = WaitingKeys()
    for time, key in ((3, "c"), (1, "a"), (9, "later"), (3, "d"), (2, "b"), (7, "soon")):
        keys.add((time, key))
    assert list(keys.due(3)) == ["a", "b", "c", "d"]
    assert list(keys.due(6)) == []
    assert list(keys.due(9)) == ["soon", "later"]


def test_keys_of_one_time_that_waited_longer_come_in_the_order_of_their_arrival() -> None:
    keys = WaitingKeys([(5, "x"), (5, "y")])
    keys.add((5, "z"))
    assert list(keys.due(4)) == []
    assert list(keys.due(5)) == ["x", "y", "z"]


def test_keys_that_waited_longer_come_before_those_that_have_just_arrived() -> None:
    keys = WaitingKeys()
    keys.add((8, "waited"))
    assert list(keys.due(1)) == []
    keys.add((2, "new"))
    assert list(keys.due(8)) == ["waited", "new"]
