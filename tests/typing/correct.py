"""Correct programs, in which no type checker finds an error. `check` compares types as the editor sees them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict, assert_type

from penstock.cep import CEP, Pattern, PatternProcessFunction
from penstock.common import Duration, Row, Time, Types, WatermarkStrategy
from penstock.common.serialization import SimpleStringSchema
from penstock.datastream import (
    AggregateFunction,
    AsyncDataStream,
    AsyncFunction,
    CloseableIterator,
    DataStream,
    KeyedProcessFunction,
    KeyedStream,
    MapFunction,
    OutputTag,
    ProcessWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    WindowedStream,
)
from penstock.datastream.connectors.file_system import FileSource, StreamFormat
from penstock.datastream.connectors.kafka import KafkaSource
from penstock.datastream.state import MapStateDescriptor, ValueState, ValueStateDescriptor
from penstock.datastream.window import TimeWindow, TumblingEventTimeWindows


@dataclass(frozen=True)
class Order:
    customer: str
    amount: int


@dataclass(frozen=True)
class Refund(Order):
    reason: str


class Place(NamedTuple):
    name: str
    height: float


class Payment(TypedDict):
    card: str
    amount: float


LATE = OutputTag("late", Order)
environment = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).enable_checkpointing(1000)


# --- a word count as PyFlink's users write it ---
def word_count() -> None:
    lines = environment.from_collection(["to be", "or not"], Types.STRING())
    counts = (
        lines.flat_map(lambda line: line.split(), Types.STRING())
        .map(lambda word: (word, 1), Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0])
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
    )
    counts.print().name("counts").uid("counts")
    untyped = lines.map(lambda word: (word, 1)).key_by(lambda pair: pair[0], Types.STRING())
    assert_type(untyped, KeyedStream[str, tuple[str, int]])
    assert_type(untyped.sum(1), DataStream[tuple[str, int]])
    assert_type(untyped.reduce(lambda one, other: (one[0], one[1] + other[1])), DataStream[tuple[str, int]])


# --- rows ---
def rows() -> None:
    order = Types.ROW_NAMED(["customer", "amount"], [Types.STRING(), Types.DOUBLE()])
    stream = environment.from_collection([("ann", 10.0)], order)
    assert_type(stream, DataStream[Row])
    stream.map(lambda row: (row.customer, row.amount * 2), order).key_by(lambda row: row.customer).sum("amount")
    stream.key_by("customer").max("amount").map(lambda row: row["amount"])
    environment.from_elements(("ann", 1.0), type_info=order).map(lambda row: row.customer)


# --- records of classes ---
def records() -> None:
    places = environment.from_collection([Place("Galdhøpiggen", 2469.0)])
    assert_type(places.map(lambda place: place.height), DataStream[float])
    card: Payment = {"card": "visa", "amount": 3.0}
    assert_type(environment.from_collection([card]).key_by(lambda payment: payment["card"]), KeyedStream[str, Payment])
    orders = environment.from_collection([Order("ann", 3)], Order)
    refunds = environment.from_collection([Refund("ann", 3, "broken")])
    everything: DataStream[Order] = refunds
    orders.union(everything).map(lambda order: order.customer.upper())
    assert_type(orders.filter(lambda order: order.amount > 3).uid("large"), DataStream[Order])


# --- functions, with and without parameters ---
class Upper(MapFunction[str, str]):
    def map(self, value: str) -> str:
        return value.upper()


class PlainUpper(MapFunction):
    def map(self, word: str) -> str:
        return word.upper()


class Total(KeyedProcessFunction[str, Order, tuple[str, int]]):
    count: ValueState[int]

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", int, 0))
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG(), default_value=0))
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Order))
        self.by_day = runtime_context.get_map_state(MapStateDescriptor("days", str, int))

    def process_element(
        self, value: Order, ctx: KeyedProcessFunction.Context[str]
    ) -> Iterator[tuple[str, int] | tuple[OutputTag[Order], Order]]:
        assert_type(self.total.value(), int)
        assert_type(self.count.value(), int | None)
        assert_type(self.last.value(), Order | None)
        assert_type(ctx.get_current_key(), str)
        self.total.update(self.total.value() + value.amount)
        self.by_day["monday"] = (self.by_day["monday"] or 0) + 1
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 1000)
        ctx.output(LATE, value)
        yield LATE, value
        yield ctx.get_current_key(), self.total.value()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext[str]) -> Iterator[tuple[str, int]]:
        yield ctx.get_current_key(), timestamp


class PlainTotal(KeyedProcessFunction):
    def open(self, context: RuntimeContext) -> None:
        self.total: ValueState = context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, order: Order, context: KeyedProcessFunction.Context) -> Iterator[int]:
        total = (self.total.value() or 0) + order.amount
        self.total.update(total)
        yield total


def functions() -> None:
    words = environment.from_collection(["to", "be"])
    assert_type(words.map(Upper()), DataStream[str])
    words.map(PlainUpper()).map(lambda word: word.lower())
    assert_type(words.map(len), DataStream[int])
    by_customer = environment.from_collection([Order("ann", 3)]).key_by(lambda order: order.customer)
    totals = by_customer.process(Total()).name("totals").uid("totals").set_parallelism(2)
    assert_type(totals, DataStream[tuple[str, int]])
    assert_type(totals.get_side_output(LATE), DataStream[Order])
    by_customer.process(PlainTotal(), Types.LONG()).print()
    assert_type(by_customer.map_with_state(lambda order, n: (order.amount, (n or 0) + 1)), DataStream[int])


# --- windows ---
class Mean(AggregateFunction[Order, tuple[int, int], float]):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: Order, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value.amount, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Describe(ProcessWindowFunction[float, str, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[float]
    ) -> Iterable[str]:
        return [f"{key} until {context.window().end}: {mean}" for mean in elements]


def windows() -> None:
    times: WatermarkStrategy[Order] = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    orders = environment.from_collection([Order("ann", 3)])
    stamped = orders.assign_timestamps_and_watermarks(times.with_timestamp_assigner(lambda order: order.amount))
    loose = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda order: order.amount * 1000)
    orders.assign_timestamps_and_watermarks(loose)
    windowed = stamped.key_by(lambda order: order.customer).window(TumblingEventTimeWindows.of(Time.seconds(10)))
    assert_type(windowed.allowed_lateness(5), WindowedStream[str, Order, TimeWindow])
    assert_type(windowed.aggregate(Mean()), DataStream[float])
    assert_type(windowed.aggregate(Mean(), Describe()), DataStream[str])
    assert_type(windowed.reduce(lambda one, other: one), DataStream[Order])
    assert_type(windowed.apply(lambda key, window, found: [(key, window.start)]), DataStream[tuple[str, int]])
    orders.window_all(TumblingEventTimeWindows.of(3)).reduce(lambda one, other: other)


# --- several streams, patterns, requests, sources ---
class Ask(AsyncFunction[str, int]):
    async def async_invoke(self, value: str) -> list[int]:
        return [len(value)]

    def timeout(self, value: str) -> list[int]:
        return []


class Alarm(PatternProcessFunction[Order, str]):
    def process_match(self, match: dict[str, list[Order]], ctx: PatternProcessFunction.Context) -> Iterator[str]:
        yield match["small"][0].customer


def others() -> None:
    words = environment.from_collection(["to", "be"])
    orders = environment.from_collection([Order("ann", 3)])
    joined = words.join(orders).where(lambda word: word).equal_to(lambda order: order.customer)
    pairs = joined.window(TumblingEventTimeWindows.of(3)).apply(lambda word, order: (word, order.amount))
    assert_type(pairs, DataStream[tuple[str, int]])
    assert_type(AsyncDataStream.unordered_wait(words, Ask(), Time.seconds(1), 10), DataStream[int])
    small = Pattern.begin("small").where(lambda order: order.amount < 5).times(3).within(Duration.of_seconds(3))
    assert_type(CEP.pattern(orders, small).process(Alarm()), DataStream[str])
    assert_type(CEP.pattern(orders, small).select(lambda match: match["small"][0].amount), DataStream[int])
    lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "folder").build()
    stream = environment.from_source(lines, WatermarkStrategy.no_watermarks(), "lines").uid("lines")
    assert_type(stream, DataStream[str])
    topic = KafkaSource.builder().set_topics("a").set_value_only_deserializer(SimpleStringSchema()).build()
    assert_type(environment.from_source(topic, WatermarkStrategy.no_watermarks(), "topic"), DataStream[str])
    assert_type(environment.generate(lambda number: str(number), rate=5), DataStream[str])
    assert_type(environment.from_sequence(1, 5), DataStream[int])


# --- results ---
def results(stream: DataStream[Any], orders: DataStream[Order]) -> None:
    assert_type(orders.execute_and_collect(), CloseableIterator[Order])
    assert_type(orders.execute_and_collect(limit=3), list[Order])
    with orders.execute_and_collect("orders") as found:
        print([order.amount for order in found])
    stream.map(lambda record: record.anything)
    stream.map(lambda record: record.anything).map(lambda thing: thing.other)
    stream.map(json.loads).map(lambda thing: thing["other"])
    stream.flat_map(json.loads).filter(lambda thing: thing.other)
