"""TimeWindow against brute force, and the other windows."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.datastream.window import (
    CountWindow,
    GlobalWindow,
    MergingWindowAssigner,
    TimeWindow,
    Trigger,
    TriggerResult,
)
from penstock.errors import UnsupportedOperation

windows = st.builds(
    lambda start, length: TimeWindow(start, start + length),
    st.integers(-50, 50),
    st.integers(min_value=1, max_value=20),
)


class Merges(MergingWindowAssigner.MergeCallback[TimeWindow]):
    def __init__(self) -> None:
        self.calls: list[tuple[set[TimeWindow], TimeWindow]] = []

    def merge(self, to_be_merged, merge_result):
        self.calls.append((set(to_be_merged), merge_result))


def merges_of(windows):
    merges = Merges()
    TimeWindow.merge_windows(windows, merges)
    return merges.calls


@given(st.integers(-1000, 1000), st.integers(-100, 100), st.integers(min_value=1, max_value=60))
def test_window_start_is_the_last_multiple_of_the_size_from_the_offset(timestamp, offset, size):
    start = TimeWindow.get_window_start_with_offset(timestamp, offset, size)
    starts = [offset + n * size for n in range(-1200, 1200)]
    assert start == max(s for s in starts if s <= timestamp)


@given(windows, windows)
def test_windows_intersect_if_they_share_a_point_of_time_or_touch(a, b):
    closed = range(a.start, a.end + 1)
    assert a.intersects(b) == any(b.start <= point <= b.end for point in closed)
    assert a.intersects(b) == b.intersects(a)


@given(windows, windows)
def test_cover_holds_every_millisecond_of_both_and_no_more_at_the_ends(a, b):
    cover = a.cover(b)
    assert cover.start == min([*range(a.start, a.end), *range(b.start, b.end)])
    assert cover.max_timestamp() == max([*range(a.start, a.end), *range(b.start, b.end)])


def connected_groups(windows):
    """Join groups until none intersect: slow and obvious."""
    groups = [{window} for window in set(windows)]
    joined = True
    while joined:
        joined = False
        for left in groups:
            for right in groups:
                if left is not right and any(a.intersects(b) for a in left for b in right):
                    groups = [g for g in groups if g is not left and g is not right] + [left | right]
                    joined = True
                    break
            if joined:
                break
    return groups


@given(st.lists(windows, max_size=12))
def test_merge_windows_finds_the_connected_groups(windows):
    expected = [
        (group, TimeWindow(min(w.start for w in group), max(w.end for w in group)))
        for group in connected_groups(windows)
        if len(group) > 1
    ]
    found = merges_of(windows)
    assert sorted(found, key=lambda call: call[1]) == sorted(expected, key=lambda call: call[1])


@given(st.permutations([TimeWindow(0, 5), TimeWindow(4, 9), TimeWindow(9, 12), TimeWindow(13, 14)]))
def test_merging_does_not_depend_on_the_order_of_arrival(windows):
    assert merges_of(windows) == [({TimeWindow(0, 5), TimeWindow(4, 9), TimeWindow(9, 12)}, TimeWindow(0, 12))]


def test_nothing_is_merged_where_nothing_intersects():
    assert merges_of([]) == []
    assert merges_of([TimeWindow(0, 5)]) == []
    assert merges_of([TimeWindow(0, 5), TimeWindow(0, 5)]) == []
    assert merges_of([TimeWindow(0, 5), TimeWindow(6, 9)]) == []


@given(windows, windows)
def test_windows_are_values(a, b):
    assert (a == b) == ((a.start, a.end) == (b.start, b.end))
    assert a == TimeWindow(a.start, a.end)
    assert hash(a) == hash(TimeWindow(a.start, a.end))
    assert (a < b) == ((a.start, a.end) < (b.start, b.end))
    assert pickle.loads(pickle.dumps(a)) == a


def test_count_and_global_windows_end_with_time_itself():
    assert CountWindow(3) == CountWindow(3) != CountWindow(4)
    assert GlobalWindow.get() is GlobalWindow.get()
    assert pickle.loads(pickle.dumps(GlobalWindow.get())) == GlobalWindow()
    assert CountWindow(3).max_timestamp() == GlobalWindow.get().max_timestamp() == 2**63 - 1
    assert len({CountWindow(1), GlobalWindow(), TimeWindow(0, 1), CountWindow(1), GlobalWindow()}) == 3


def test_trigger_results_say_what_to_do():
    answers = {result.name: (result.is_fire(), result.is_purge()) for result in TriggerResult}
    assert answers == {
        "CONTINUE": (False, False),
        "FIRE": (True, False),
        "PURGE": (False, True),
        "FIRE_AND_PURGE": (True, True),
    }


class Never(Trigger):
    def on_element(self, element, timestamp, window, ctx):
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def clear(self, window, ctx):
        pass


def test_a_trigger_without_on_merge_says_so():
    assert not Never().can_merge()
    with pytest.raises(UnsupportedOperation, match="Never"):
        Never().on_merge(GlobalWindow.get(), None)
