"""A nudge wakes whoever waits, once until it is reset, and is never lost."""

import select

from penstock.spark.links.nudge import Nudge


def is_woken(nudge):
    return bool(select.select([nudge.sock], [], [], 0)[0])


def test_nudges_wake_once_until_reset():
    nudge = Nudge()
    assert not is_woken(nudge)
    nudge.give()
    nudge.give()
    assert is_woken(nudge)
    nudge.drain()
    nudge.give()
    assert not is_woken(nudge)
    nudge.reset()
    nudge.give()
    assert is_woken(nudge)


def test_draining_what_is_empty_does_nothing():
    nudge = Nudge()
    nudge.drain()
    assert not is_woken(nudge)
