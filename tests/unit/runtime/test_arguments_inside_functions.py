"""What functions call while they run refuses arguments of the wrong type, and says what is allowed."""

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from penstock.common import Row, RowKind, Types, WatermarkStrategy
from penstock.common.time import Time
from penstock.common.watermark_strategy import Watermark, WatermarkGenerator, WatermarkOutput
from penstock.datastream import (
    KeyedProcessFunction,
    RuntimeContext,
    SourceFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.errors import InvalidArgument, JobFailed
from penstock.testing import in_process

VALUE = ValueStateDescriptor("value", Types.INT())
LIST = ListStateDescriptor("list", Types.INT())
MAP = MapStateDescriptor("map", Types.STRING(), Types.INT())
REDUCING = ReducingStateDescriptor("reducing", max, Types.INT())
LASTING = ListStateDescriptor("lasting", Types.STRING())
LASTING.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())


class Calling(KeyedProcessFunction):
    """Calls a function with itself and its context for each record."""

    def __init__(self, call: Callable[[Any, Any], Any]) -> None:
        self.call = call

    def open(self, runtime_context: RuntimeContext) -> None:
        self.runtime = runtime_context

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield repr(self.call(self.runtime, ctx))

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield timestamp


def run(call: Callable[[Any, Any], Any]) -> list[Any]:
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        return list(env.from_collection([1]).key_by(lambda _: 0).process(Calling(call)).execute_and_collect())


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda r, c: r.get_state(MAP), "RuntimeContext.get_state: the argument state_descriptor must be a Value"),
        (lambda r, c: r.get_state("x"), "RuntimeContext.get_state: the argument state_descriptor must be a Value"),
        (lambda r, c: r.get_state(VALUE.get_name), "get_state: the argument state_descriptor must be a ValueState"),
        (lambda r, c: r.get_list_state(VALUE), "get_list_state: the argument state_descriptor must be a ListState"),
        (lambda r, c: r.get_map_state(VALUE), "get_map_state: the argument state_descriptor must be a MapState"),
        (lambda r, c: r.get_reducing_state(LIST), "get_reducing_state: the argument state_descriptor must be a Reduc"),
        (lambda r, c: r.get_aggregating_state(LIST), "get_aggregating_state: the argument state_descriptor must be a"),
        (lambda r, c: r.get_folding_state(REDUCING), "get_folding_state: the argument state_descriptor must be a Fol"),
        (lambda r, c: r.get_list_state(LIST).add_all("ab"), "ListState.add_all: the argument values must be a list"),
        (lambda r, c: r.get_list_state(LIST).update(b"ab"), "ListState.update: the argument values must be a list of"),
        (lambda r, c: r.get_list_state(LASTING).add_all("ab"), "ListState.add_all: the argument values must be a li"),
        (lambda r, c: r.get_list_state(LASTING).update("ab"), "ListState.update: the argument values must be a list"),
        (lambda r, c: r.get_job_parameter(5, "x"), "RuntimeContext.get_job_parameter: the argument key must be a str"),
        (lambda r, c: c.output("late", 1), "Context.output: the argument tag must be an OutputTag, not 'late' (str)"),
        (lambda r, c: r.get_metrics_group().counter("n").inc(1.5), "Counter.inc: the argument n must be a whole num"),
        (lambda r, c: r.get_metrics_group().counter("n").dec("1"), "Counter.dec: the argument n must be a whole num"),
        (lambda r, c: r.get_metrics_group().meter("m").mark_event(True), "Meter.mark_event: the argument value must"),
    ],
)
def test_a_function_learns_what_it_did_wrong(call: Callable[[Any, Any], Any], says: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(says)):
        run(call)


@pytest.mark.parametrize("time", [True, "20", None, Decimal("nan")])
def test_a_timer_has_a_number_of_milliseconds(time: Any) -> None:
    with pytest.raises(JobFailed, match="the time of a timer must be a whole number of milliseconds, not"):
        run(lambda r, c: c.timer_service().register_event_time_timer(time))


class Emitting(SourceFunction):
    """Calls a function with the context of the source."""

    def __init__(self, call: Callable[[Any], Any]) -> None:
        self.call = call

    def run(self, ctx: SourceFunction.SourceContext) -> None:
        self.call(ctx)

    def cancel(self) -> None:
        pass


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda ctx: ctx.collect_with_timestamp(1, "5"),
            "SourceContext.collect_with_timestamp: the argument timestamp",
        ),
        (lambda ctx: ctx.collect_with_timestamp(1, True), "must be a number of milliseconds, not True (bool)"),
        (lambda ctx: ctx.emit_watermark(5), "SourceContext.emit_watermark: the argument mark must be a Watermark, not"),
        (lambda ctx: ctx.emit_watermark(Watermark("5")), "Watermark: the argument timestamp must be a whole number of"),  # type: ignore[arg-type]
    ],
)
def test_a_source_learns_what_it_did_wrong(call: Callable[[Any], Any], says: str) -> None:
    with in_process(), pytest.raises(InvalidArgument, match=re.escape(says)):
        env = StreamExecutionEnvironment.get_execution_environment()
        list(env.add_source(Emitting(call)).execute_and_collect())


class Marking(WatermarkGenerator):
    """Emits the number of a record in place of a watermark."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(event)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


def test_a_generator_learns_what_it_did_wrong() -> None:
    strategy = WatermarkStrategy.for_generator(lambda context: Marking()).with_timestamp_assigner(lambda e, t: e)
    with (
        in_process(),
        pytest.raises(InvalidArgument, match=re.escape("the argument watermark must be a Watermark")),
    ):
        env = StreamExecutionEnvironment.get_execution_environment()
        list(env.from_collection([1]).assign_timestamps_and_watermarks(strategy).execute_and_collect())


def test_a_watermark_of_a_fraction_is_whole() -> None:
    assert Watermark(5.7) == Watermark(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="Watermark: the argument timestamp must be"):
        Watermark(float("nan"))  # type: ignore[arg-type]


def test_a_row_has_a_kind_and_a_list_of_names() -> None:
    row = Row("a", 1)
    row.set_row_kind("DELETE")  # type: ignore[arg-type]
    assert row.get_row_kind() is RowKind.DELETE
    for wrong in (5, None, "-D", RowKind):
        with pytest.raises(InvalidArgument, match="set_row_kind: the argument row_kind must be a RowKind or its"):
            row.set_row_kind(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"Row.set_field_names: the argument field_names must be a list of names"):
        row.set_field_names("ab")


@pytest.mark.parametrize("names", [5, [5], None])
def test_a_selector_gives_names(names: Any) -> None:
    with in_process(), pytest.raises(JobFailed, match="an OutputSelector must return a name or a list of names, not"):
        env = StreamExecutionEnvironment.get_execution_environment()
        list(env.from_collection([1]).split(lambda value: names).select("5").execute_and_collect())
