"""The base of operators with timers, under an operator that is neither a process function nor a window."""

import ast
import inspect

import pytest

from penstock.datastream import OutputTag
from penstock.datastream.state import ListStateDescriptor
from penstock.engine.operators.keyed_timer_operator import KeyedTimerOperator
from penstock.engine.operators.operator import Operator
from penstock.engine.records.elements import MAX_TIMESTAMP
from penstock.engine.slot import slot as task
from penstock.errors import JobFailed
from penstock.testing import OperatorHarness

LATE = OutputTag("late")


class Groups(KeyedTimerOperator):
    """Collects the records of a key, and emits them when event time is a second past the first, or after a minute.

    The function is asked about every group before it goes out.
    """

    def open(self, context):
        super().open(context)
        self.state = self.keyed.state(ListStateDescriptor("group"))

    def records(self, values, timestamps):
        self.go_through(self._add, values, timestamps)

    def _add(self, feed, stamps):
        for value, timestamp in zip(feed, stamps, strict=False):
            self.keyed.scope.key = key = self.key_selector(value)
            if timestamp <= self.timers.watermark:
                self.collected.side(LATE, value, timestamp)
                continue
            if not self.state.get():
                self.timers.event_time.register(timestamp + 1000, key, "group")
                self.timers.processing_time.register(self.context.clock.now + 60_000, key, "group")
            self.state.add(self.function.check(value))

    def on_event_time(self, time, key, namespace):
        self.keyed.scope.key = key
        if group := list(self.state.get()):
            self.collected.gather([(namespace, key, self.function.check(group))], time)
        self.state.clear()

    def on_processing_time(self, time, key, namespace):
        self.on_event_time(self.timers.watermark, key, "hurried")


class Check:
    def check(self, value):
        if value in (("bad",), [(1, "x"), (1, "y")]):
            raise ValueError("no")
        return value


def groups(stream):
    keyed = stream.key_by(0)
    return keyed.apply_operator("Groups", Groups(Check(), None, keyed.key_selector), None)


def test_timers_fire_before_the_watermark_goes_on_and_leave_nothing_behind():
    with OperatorHarness(groups, side_outputs=(LATE,)) as harness:
        harness.push((1, "a"), timestamp=10)
        harness.push((1, "b"), timestamp=20)
        harness.push((2, "c"), timestamp=500)
        assert (harness.state_entries(), harness.timers()) == (2, 4)
        harness.watermark(1010)
        assert harness.elements() == [
            ("record", ("group", 1, [(1, "a"), (1, "b")]), 1010),
            ("watermark", 1010, None),
        ]
        harness.push((3, "late"), timestamp=1010)
        assert harness.side_output(LATE) == [((3, "late"), 1010)]
        harness.advance_processing_time(60_000)
        assert harness.output() == [(("hurried", 2, [(2, "c")]), 1010)]
        harness.watermark(MAX_TIMESTAMP - 1)
        assert (harness.state_entries(), harness.timers()) == (0, 0)


def test_a_record_that_fails_is_named():
    with OperatorHarness(groups) as harness, pytest.raises(JobFailed, match=r"Groups.*no\n +on record \(.bad.,\)"):
        harness.push(("bad",), timestamp=1)


def test_a_timer_that_fails_is_named_with_its_key_and_namespace():
    with OperatorHarness(groups) as harness:
        harness.push((1, "x"), timestamp=1)
        harness.push((1, "y"), timestamp=2)
        with pytest.raises(JobFailed, match=r"ValueError: no\n +on record 'timer at 1001 of key 1 in group'"):
            harness.watermark(5000)


def test_in_batch_mode_the_timers_of_a_key_fire_when_it_is_complete(run):
    def build(env):
        stream = env.from_collection([(2, "a"), (1, "b"), (2, "c")])
        return groups(stream.map(lambda v: v).apply_operator("Stamps", Stamps(), None))

    assert run(build, mode="BATCH") == [("group", 1, [(1, "b")]), ("group", 2, [(2, "a"), (2, "c")])]


class Stamps(Operator):
    def records(self, values, timestamps):
        self.emit(values, list(range(len(values))))


def test_an_operator_without_a_use_for_timers_says_so():
    class Forgetful(KeyedTimerOperator):
        def records(self, values, timestamps):
            self.timers.event_time.register(5, 1)

    with OperatorHarness(
        lambda s: s.key_by(0).apply_operator("Forgetful", Forgetful(None, None, lambda v: v), None)
    ) as harness:
        harness.push((1,), timestamp=1)
        with pytest.raises(
            JobFailed, match="Forgetful has registered an event-time timer but does not define on_event_time"
        ):
            harness.watermark(7)


def test_the_slot_knows_no_kind_of_operator():
    """It asks operators for what it needs through `Operator` alone."""
    known = [value for value in vars(task).values() if inspect.isclass(value) and issubclass(value, Operator)]
    assert known == [Operator]
    asked = [
        node
        for node in ast.walk(ast.parse(inspect.getsource(task)))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"
    ]
    assert all("operator" not in ast.unparse(call.args[0]) for call in asked)
