"""Metrics and the groups they live in."""

import pytest

from penstock.metrics import Counter, Gauge, Meter, MetricGroup


def test_the_same_name_is_the_same_metric():
    group = MetricGroup("job")
    assert group.counter("c") is group.counter("c")
    assert group.meter("m") is group.meter("m")
    assert group.distribution("d") is group.distribution("d")
    assert group.add_group("g").counter("c") is group.add_group("g").counter("c")
    assert group.add_group("g").counter("c") is not group.counter("c")
    with pytest.raises(ValueError, match=r"job\.c is a Counter already, so it cannot be a Meter"):
        group.meter("c")


def test_snapshots_have_dotted_names():
    group = MetricGroup("job", "op")
    group.counter("c").inc(5)
    group.counter("c").dec(2)
    level = 7
    group.gauge("level", lambda: level)
    group.add_group("key", "value").distribution("d").update(4)
    group.add_group("key", "value").distribution("d").update(1)
    group.distribution("empty")
    assert group.snapshot() == {
        "job.op.c": 3,
        "job.op.level": 7,
        "job.op.empty.count": 0,
        "job.op.empty.sum": 0,
        "job.op.key.value.d.count": 2,
        "job.op.key.value.d.sum": 5,
        "job.op.key.value.d.min": 1,
        "job.op.key.value.d.max": 4,
        "job.op.key.value.d.mean": 2.5,
    }


def test_key_value_groups_define_a_variable():
    group = MetricGroup("job").add_group("region", "north")
    assert group.get_all_variables() == {"region": "north"}
    assert group.add_group("deeper").get_all_variables() == {"region": "north"}
    assert group.get_scope_components() == ["job", "region", "north"]


def test_metrics_of_ones_own():
    group = MetricGroup()
    counter = Counter()
    assert group.counter("c", counter) is counter
    group.gauge("g", Gauge(lambda: 1))
    group.gauge("g", lambda: 2)
    assert group.snapshot() == {"c": 0, "g": 2}


def test_an_object_that_knows_its_value_is_a_gauge():
    class Watermark:
        current = -1

        def get_value(self) -> int:
            return self.current

    group, watermark = MetricGroup(), Watermark()
    group.gauge("watermark", watermark)
    watermark.current = 5
    assert group.snapshot() == {"watermark": 5}
    with pytest.raises(TypeError, match=r"obj must be a function, an object with get_value\(\) or a Gauge, not 5"):
        group.gauge("g", 5)


def test_a_meter_forgets_what_lies_behind_its_span():
    now = [100.0]
    meter = Meter(10, clock=lambda: now[0])
    meter.mark_event(20)
    now[0] += 9.5
    meter.mark_event()
    meter.mark_event()
    assert (meter.get_count(), meter.rate()) == (22, 2.2)
    now[0] += 1
    assert meter.rate() == 0.2
    now[0] += 100
    assert (meter.get_count(), meter.rate()) == (22, 0.0)
    with pytest.raises(ValueError):
        Meter(0)
