"""Date patterns as Java writes them, and time zones."""

from types import SimpleNamespace

import pytest

from penstock.datastream.connectors.file_system import BucketAssigner

MOMENT = 1_709_290_805_043
"""2024-03-01 11:00:05.043 in UTC."""


def bucket(pattern, zone="UTC", moment=MOMENT):
    assigner = BucketAssigner.date_time_bucket_assigner(pattern, zone)
    return assigner.get_bucket_id("any", SimpleNamespace(current_processing_time=lambda: moment))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("yyyy-MM-dd--HH", "2024-03-01--11"),
        ("yyyy/MM/dd/HH/mm/ss", "2024/03/01/11/00/05"),
        ("uuuu.M.d H:m:s", "2024.3.1 11:0:5"),
        ("yy y", "24 2024"),
        ("ss.SSS", "05.043"),
        ("S SS SSSSSSSSS", "0 04 043000000"),
        ("'day='dd'T'HH", "day=01T11"),
        ("HH 'o''clock' ''", "11 o'clock '"),
        ("", ""),
    ],
)
def test_patterns(pattern, expected):
    assert bucket(pattern) == expected


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("Z", "11:00"),
        ("Asia/Kolkata", "16:30"),
        ("GMT-08:00", "03:00"),
        ("UTC+2", "13:00"),
        ("+0530", "16:30"),
        ("America/Los_Angeles", "03:00"),
    ],
)
def test_time_zones(zone, expected):
    assert bucket("HH:mm", zone) == expected


def test_before_1970():
    assert bucket("yyyy-MM-dd HH:mm:ss.SSS", moment=-1) == "1969-12-31 23:59:59.999"


@pytest.mark.parametrize("pattern", ["yyyy-ww", "hh a", "MMM", "yyyyy", "E", "dd 'open", "[yyyy]", "SSSSSSSSSS"])
def test_what_is_not_understood(pattern):
    with pytest.raises(ValueError, match=r"the date pattern '.*' has '.*'; allowed are yyyy"):
        BucketAssigner.date_time_bucket_assigner(pattern)


@pytest.mark.parametrize("zone", ["Mars/Crater", "", "../etc", "GMT+99:00"])
def test_unknown_time_zones(zone):
    with pytest.raises(ValueError, match="unknown time zone"):
        BucketAssigner.date_time_bucket_assigner(timezone_id=zone)
