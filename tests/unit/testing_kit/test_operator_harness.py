"""The harness itself."""

import pytest

from penstock.datastream import OutputTag
from penstock.datastream.functions import KeyedProcessFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.engine.records.elements import MAX_TIMESTAMP
from penstock.errors import JobFailed, PenstockError
from penstock.testing import OperatorHarness

SIDE = OutputTag("side")


class Silence(KeyedProcessFunction):
    """The example of the documentation: reports keys that were silent for a time."""

    def __init__(self, after):
        self.after = after

    def open(self, runtime_context):
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer"))

    def process_element(self, value, ctx):
        if self.timer.value() is not None:
            ctx.timer_service().delete_event_time_timer(self.timer.value())
        self.timer.update(ctx.timestamp() + self.after)
        ctx.timer_service().register_event_time_timer(self.timer.value())

    def on_timer(self, timestamp, ctx):
        self.timer.clear()
        yield f"{ctx.get_current_key()} is silent"


def test_the_example_of_the_documentation():
    harness = OperatorHarness(lambda stream: stream.key_by(0).process(Silence(3000)))
    harness.push(("s1", 20.0), timestamp=1000)
    harness.push(("s1", 20.0), timestamp=1500)
    assert (harness.state_entries(), harness.timers()) == (1, 1)
    harness.watermark(4499)
    assert harness.output() == []
    harness.watermark(4500)
    assert harness.output() == [("s1 is silent", 4500)]
    assert (harness.state_entries(), harness.timers()) == (0, 0)
    harness.close()


def test_output_values_and_elements_are_taken_once():
    with OperatorHarness(lambda s: s.map(str)) as h:
        h.push(1, timestamp=1)
        assert h.values() == ["1"] and h.values() == []
        h.push(2)
        h.watermark(3)
        assert h.elements() == [("record", "2", None), ("watermark", 3, None)] and h.elements() == []


def test_what_is_pushed_is_serialised():
    value = [1]
    with OperatorHarness(lambda s: s.map(lambda v: v.append(2) or v)) as h:
        h.push(value)
        assert h.values() == [[1, 2]] and value == [1]


def test_an_end_brings_the_last_watermark():
    with OperatorHarness(lambda s: s.map(str)) as h:
        h.end()
        assert h.elements() == [("watermark", MAX_TIMESTAMP, None)]


def test_inputs_are_counted_from_one():
    with OperatorHarness(lambda a, b: a.map(lambda v: ("a", v)).union(b.map(lambda v: ("b", v))), inputs=2) as h:
        h.push(1, input=2)
        h.push(2)
        assert h.values() == [("b", 1), ("a", 2)]
        with pytest.raises(IndexError):
            h.push(1, input=3)


def test_idle_and_active_inputs():
    with OperatorHarness(lambda a, b: a.union(b).map(str), inputs=2) as h:
        h.watermark(5, input=1)
        assert h.elements() == []
        h.idle(input=2)
        assert h.elements() == [("watermark", 5, None)]
        h.active(input=2)
        h.watermark(9, input=1)
        assert h.elements() == [("watermark", 9, None)]


def test_errors_surface_as_from_execute_and_output_stays():
    with OperatorHarness(lambda s: s.map(lambda v: 1 // v)) as h:
        h.push(1)
        with pytest.raises(JobFailed, match=r"Map .*ZeroDivisionError"):
            h.push(0)
        assert h.values() == [1]


def test_an_error_in_open_surfaces_when_the_harness_is_made():
    class Fails(Silence):
        def open(self, runtime_context):
            raise ValueError("no")

    with pytest.raises(JobFailed, match=r"Keyed Process .*no"):
        OperatorHarness(lambda s: s.key_by(0).process(Fails(1)))


def test_processing_time_does_not_go_back():
    with OperatorHarness(lambda s: s.map(str)) as h:
        h.advance_processing_time(10)
        with pytest.raises(ValueError, match=r"is 10 and cannot be set back to 9"):
            h.advance_processing_time(9)


def test_side_outputs_must_be_named():
    with (
        OperatorHarness(lambda s: s.map(str)) as h,
        pytest.raises(PenstockError, match=r"'side': name it in side_outputs="),
    ):
        h.side_output(SIDE)


def test_several_subtasks():
    with OperatorHarness(lambda s: s.key_by(lambda v: v).sum(), parallelism=3) as h:
        h.push_all([1, 2, 3, 1])
        assert sorted(h.values()) == [1, 2, 2, 3]
        assert h.state_entries() == 3
