"""Rates are taken over the last seconds, and begin anew with the counters."""

from penstock.engine.messages.commands_and_reports import Report
from penstock.engine.observe.rates import SPAN_SECONDS, Rates
from penstock.engine.observe.slot_activity import Figures


def asked(rates, **figures):
    return rates.metrics([Report(0, 1, activity={"a": Figures(**figures)})])[0]


def test_a_rate_is_taken_over_the_last_seconds_and_not_over_all_time():
    rates = Rates()
    assert asked(rates, records_in=1000, since=10.0)["a.numRecordsInPerSecond"] == 100
    later = 10.0 + SPAN_SECONDS
    asked(rates, records_in=1000, since=later)
    found = asked(rates, records_in=1000 + 50, since=later + 4.0)
    assert found["a.numRecordsInPerSecond"] == 50 / (SPAN_SECONDS + 4.0)
    assert found["a.numRecordsIn"] == 1050


def test_counters_that_begin_anew_give_no_negative_rate():
    rates = Rates()
    asked(rates, records_in=10_000, busy=60.0, since=100.0)
    found = asked(rates, records_in=10, busy=0.5, since=1.0)
    assert found["a.numRecordsInPerSecond"] == 10 and found["a.busyTimeMsPerSecond"] == 500


def test_busy_idle_and_held_back_make_a_whole_second():
    found = asked(Rates(), busy=3.0, held=6.0, since=10.0)
    parts = [found[f"a.{kind}TimeMsPerSecond"] for kind in ("busy", "backPressured", "idle")]
    assert parts == [300, 600, 100]
