"""Metrics of several slots become one."""

from penstock.engine.messages.commands_and_reports import Report
from penstock.engine.messages.metric_totals import combine_metrics
from penstock.metrics import MetricGroup


def report(slot, *values, level=None):
    root = MetricGroup()
    group = root.add_group("op")
    group.counter("records").inc(len(values))
    group.meter("seen").mark_event(len(values))
    group.gauge("level", lambda: level)
    sizes = group.distribution("sizes")
    for value in values:
        sizes.update(value)
    return Report(slot, 0, metrics=group.changes({}), described=group.described)


def test_each_kind_in_its_own_way():
    totals = combine_metrics([report(0, 1, 2, 9, level=5), report(1, 4, level=7)])
    rate = totals.pop("op.seen.rate")
    assert totals == {
        "op.records": 4,
        "op.seen.count": 4,
        "op.sizes.count": 4,
        "op.sizes.sum": 16,
        "op.sizes.min": 1,
        "op.sizes.max": 9,
        "op.sizes.mean": 4.0,
    }
    assert rate >= 0


def test_a_slot_without_values_does_not_count():
    totals = combine_metrics([report(0), report(1, 3)])
    assert (totals["op.sizes.min"], totals["op.sizes.max"], totals["op.sizes.mean"]) == (3, 3, 3.0)


def test_nothing_is_nothing():
    assert combine_metrics([]) == {}
