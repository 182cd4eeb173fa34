"""Lengths of time and points in time."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Duration, Instant, Time
from penstock.common.time import to_millis


def test_units():
    assert Duration.of_days(1) == Duration.of_hours(24) == Duration.of_minutes(1440)
    assert Duration.of_seconds(1) == Duration.of_millis(1000) == Duration.of_nanos(10**9)
    assert Time.days(1) == Time.hours(24) == Time.minutes(1440) == Time.seconds(86400) == Time.milliseconds(86400000)
    assert hash(Time.seconds(1)) == hash(Time.milliseconds(1000))
    assert Time.seconds(1) != Duration.of_seconds(1)
    assert Duration.of_seconds(1) < Duration.of_minutes(1)


@pytest.mark.parametrize("duration", [Duration.of_days(2), Duration.of_millis(1500), Duration.of_nanos(7), Duration()])
def test_representations_can_be_run(duration):
    assert eval(repr(duration)) == duration


@pytest.mark.parametrize(
    ("value", "millis"),
    [
        (Duration.of_seconds(2), 2000),
        (Duration.of_nanos(1_999_999), 1),
        (Time.minutes(1), 60_000),
        (datetime.timedelta(seconds=1, microseconds=1500), 1001),
        (17, 17),
    ],
)
def test_to_millis(value, millis):
    assert to_millis(value) == millis


@pytest.mark.parametrize("value", ["5 s", 1.5, None, True])
def test_to_millis_refuses_anything_else(value):
    with pytest.raises(TypeError, match="must be a Duration, a Time, a timedelta or a whole number"):
        to_millis(value)


def test_only_whole_numbers():
    with pytest.raises(TypeError, match=r"seconds must be a whole number, not 0\.5"):
        Duration.of_seconds(0.5)
    with pytest.raises(TypeError):
        Time.seconds("1")


@given(st.integers(-(10**15), 10**15))
def test_instants_keep_milliseconds(millis):
    assert Instant.of_epoch_milli(millis).to_epoch_milli() == millis
    assert 0 <= Instant.of_epoch_milli(millis).nanos < 10**9
