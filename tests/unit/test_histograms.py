"""Histograms: quantiles within the promised error, and merging that loses nothing."""

import math
import pickle
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.messages.commands_and_reports import Report
from penstock.engine.messages.metric_totals import combine_metrics
from penstock.metrics import Histogram, MetricGroup
from penstock.metrics.histogram import ACCURACY, QUANTILES, HistogramState, merge_histograms
from penstock.metrics.sketch import Sketch

VALUES = st.lists(
    st.one_of(st.just(0.0), st.floats(-1e6, -1e-6), st.floats(1e-6, 1e9), st.integers(-1000, 1000)), max_size=200
)


def of(values, recent=None):
    histogram = Histogram(recent)
    for value in values:
        histogram.update(value)
    return histogram


@given(VALUES.filter(bool))
def test_quantiles_are_those_of_the_values_but_for_the_promised_error(values):
    found, in_order = of(values).readings(), sorted(values)
    assert (found["count"], found["min"], found["max"]) == (len(values), in_order[0], in_order[-1])
    assert math.isclose(found["mean"], statistics.fmean(values), rel_tol=1e-6, abs_tol=1e-6)
    for name, share in QUANTILES.items():
        exact = in_order[math.floor(share * (len(values) - 1))]
        above = in_order[math.ceil(share * (len(values) - 1))]
        assert min(exact, above) - ACCURACY * abs(min(exact, above)) - 1e-9 <= found[name]
        assert found[name] <= max(exact, above) + ACCURACY * abs(max(exact, above)) + 1e-9


@given(st.lists(VALUES, max_size=5))
def test_merged_histograms_are_the_histogram_of_all_values(parts):
    apart = merge_histograms(of(part).state() for part in parts)
    together = of([value for part in parts for value in part]).state()
    assert (apart.seen, apart.zeros, apart.min, apart.max) == (
        together.seen,
        together.zeros,
        together.min,
        together.max,
    )
    assert (apart.positive, apart.negative) == (together.positive, together.negative)
    assert math.isclose(apart.mean, together.mean, rel_tol=1e-6, abs_tol=1e-6)
    assert math.isclose(apart.squares, together.squares, rel_tol=1e-6, abs_tol=1e-3)


@given(VALUES)
def test_a_state_survives_its_way_to_the_driver(values):
    state = of(values).state()
    assert pickle.loads(pickle.dumps(state)) == state
    assert merge_histograms([HistogramState(), state, HistogramState()]) == state


def test_recent_values_count_and_old_ones_are_forgotten():
    histogram = of([1000.0] * 500 + [1.0] * 100, recent=50)
    found = histogram.readings()
    assert found["count"] == 600
    assert found["max"] == 1.0


def test_nothing_but_the_count_is_known_of_no_values():
    assert Histogram().readings() == {"count": 0}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_finite_number_is_refused(value):
    with pytest.raises(ValueError, match="finite"):
        Histogram().update(value)


def test_histograms_of_several_slots_are_merged_and_gauges_are_not_summed():
    def report(slot, *values):
        root = MetricGroup()
        group = root.add_group("op")
        for value in values:
            group.histogram("sizes").update(value)
        group.gauge("plain", lambda: 5)
        group.gauge("lag", lambda: slot, combining="sum")
        group.gauge("slowest", lambda: slot, combining="min")
        group.gauge("newest", lambda: slot, combining="last")
        return Report(slot, 0, metrics=group.changes({}), described=group.described)

    totals = combine_metrics([report(2, *range(1, 51)), report(7, *range(51, 101))])
    assert totals["op.sizes.count"] == 100
    assert totals["op.sizes.p50"] == pytest.approx(50, rel=0.03)
    assert totals["op.sizes.max"] == 100
    assert (totals["op.lag"], totals["op.slowest"], totals["op.newest"]) == (9, 2, 7)
    assert "op.plain" not in totals
    with pytest.raises(ValueError, match="not by 'average'"):
        MetricGroup().gauge("g", lambda: 1, combining="average")


def test_only_what_changed_is_reported():
    group, last = MetricGroup("op"), {}
    counter, histogram = group.counter("c"), group.histogram("h")
    group.gauge("same", lambda: 4)
    kept = [1]
    group.gauge("growing", lambda: kept)
    histogram.update(3)
    assert set(group.changes(last)) == {"op.c", "op.h", "op.same", "op.growing"}
    kept.append(2)
    assert group.changes(last) == {"op.growing": [1, 2]}
    counter.inc()
    histogram.update(4)
    assert set(group.changes(last)) == {"op.c", "op.h", "op.growing"}


@given(VALUES.filter(bool))
def test_quantiles_are_those_of_the_library(values):
    sketch = Sketch(*of(values).state()[-3:])
    shares = [0.0, 0.001, *QUANTILES.values(), 1.0]
    assert sketch.quantiles(shares) == [sketch.get_quantile_value(share) for share in shares]


@given(st.lists(st.lists(st.floats(1e-300, 1e300), max_size=5), max_size=5))
def test_histograms_of_values_far_apart_are_merged_as_the_library_does(parts):
    apart = merge_histograms(of(part).state() for part in parts)
    sketch = Sketch(0, (0, b""), (0, b""))
    for part in parts:
        sketch.merge(Sketch(*of(part).state()[-3:]))
    assert (apart.positive, apart.negative) == sketch.bins()
    assert all(map(math.isfinite, apart.readings().values()))
