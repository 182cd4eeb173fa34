"""Mistakes in programs. Above each stands what mypy and pyright say about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from penstock.cep import CEP, Pattern, PatternProcessFunction, PatternSelectFunction
from penstock.common import Duration, Time, Types, WatermarkStrategy
from penstock.common.serialization import SimpleStringSchema
from penstock.datastream import (
    AggregateFunction,
    AsyncDataStream,
    AsyncFunction,
    BroadcastProcessFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    JoinFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
    ReduceFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    SinkFunction,
    SourceContext,
    SourceFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.connectors.file_system import FileSource, StreamFormat
from penstock.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink, KafkaSource
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from penstock.datastream.window import CountTrigger, TimeWindow, TumblingEventTimeWindows


@dataclass(frozen=True)
class Order:
    customer: str
    amount: int


class Lengths(MapFunction[str, int]):
    def map(self, value: str) -> int:
        return len(value)


class Customers(KeySelector[Order, str]):
    def get_key(self, value: Order) -> str:
        return value.customer


class Upper(MapFunction[str, str]):
    def map(self, value: str) -> str:
        return value.upper()


class Long(FilterFunction[str]):
    def filter(self, value: str) -> bool:
        return len(value) > 10


class Letters(FlatMapFunction[str, str]):
    def flat_map(self, value: str) -> Iterator[str]:
        yield from value


class Larger(ReduceFunction[int]):
    def reduce(self, value1: int, value2: int) -> int:
        return max(value1, value2)


class Mean(AggregateFunction[int, tuple[int, int], float]):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Total(KeyedProcessFunction[str, Order, int]):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG(), 0))
        self.names = runtime_context.get_list_state(ListStateDescriptor("names", Types.STRING()))
        self.limits = runtime_context.get_map_state(MapStateDescriptor("limits", Types.STRING(), Types.LONG()))
        self.most = runtime_context.get_reducing_state(ReducingStateDescriptor("most", max, Types.LONG()))
        self.mean = runtime_context.get_aggregating_state(AggregatingStateDescriptor("mean", Mean()))
        # by mypy: "ListStateDescriptor[str]"; expected "ValueStateDescriptor
        # by pyright: cannot be assigned to parameter "state_descriptor"
        runtime_context.get_state(ListStateDescriptor("names", Types.STRING()))

    def process_element(self, value: Order, ctx: KeyedProcessFunction.Context[str]) -> Iterator[int]:
        # by mypy: Unsupported operand types for + ("None" and "int")
        # by pyright: Operator "+" not supported for "None"
        self.total.update(self.total.value() + value.amount)

        # by mypy: Argument 1 to "update" of "ValueState" has incompatible type "str"; expected "int | None"
        # by pyright: "Literal['three']" is not assignable to "int"
        self.count.update("three")

        # by mypy: "int" has no attribute "upper"
        # by pyright: Cannot access attribute "upper" for class "int"
        self.count.value().upper()

        # by mypy: Argument 1 to "add" of "AppendingState" has incompatible type "int"; expected "str"
        # by pyright: "Literal[3]" is not assignable to "str"
        self.names.add(3)

        # by mypy: Argument 1 to "add_all" of "ListState" has incompatible type "str"; expected "list[str]"
        # by pyright: "Literal['names']" is not assignable to "list[str]"
        self.names.add_all("names")

        # by mypy: Argument 2 to "put" of "WritableMapState" has incompatible type "str"; expected "int"
        # by pyright: "Literal['ten']" is not assignable to "int"
        self.limits.put("ann", "ten")

        # by mypy: Argument 1 to "get" of "ReadableMapState" has incompatible type "int"; expected "str"
        # by pyright: "Literal[3]" is not assignable to "str"
        self.limits.get(3)

        # by mypy: Unsupported operand types for + ("None" and "int")
        # by pyright: Operator "+" not supported for "None"
        self.limits.get("ann") + 1

        # by mypy: Argument 1 to "add" of "AppendingState" has incompatible type "str"; expected "int"
        # by pyright: "Literal['much']" is not assignable to "int"
        self.most.add("much")

        # by mypy: Argument 1 to "add" of "AppendingState" has incompatible type "Order"; expected "int"
        # by pyright: "Order" is not assignable to "int"
        self.mean.add(value)

        # by mypy: "str" has no attribute "amount"
        # by pyright: Cannot access attribute "amount" for class "str"
        ctx.get_current_key().amount

        # by mypy: "Context[str]" has no attribute "register_timer"
        # by pyright: Cannot access attribute "register_timer" for class "Context[str]"
        ctx.register_timer(3)

        # by mypy: Argument 1 to "register_event_time_timer" of "TimerService" has incompatible type "float"
        # by pyright: "float" is not assignable to "int"
        ctx.timer_service().register_event_time_timer(1.5)

        # by mypy: Cannot infer value of type parameter "T" of "output" of "SideOutputContext"
        # by pyright: "Literal['three']" is not assignable to "int"
        ctx.output(NUMBERS, "three")

        # by mypy: "Order" has no attribute "price"
        # by pyright: Cannot access attribute "price" for class "Order"
        yield value.price

        # by mypy: Incompatible types in "yield" (actual type "str", expected type "int")
        # by pyright: "str" is not assignable to "int"
        yield value.customer


NUMBERS = OutputTag("numbers", Types.LONG())
env = StreamExecutionEnvironment.get_execution_environment()
words = env.from_collection(["to", "be"])
orders = env.from_collection([Order("ann", 3)])
pairs = words.map(lambda word: (word, 1))
by_customer = orders.key_by(lambda order: order.customer)
windows = by_customer.window(TumblingEventTimeWindows.of(Time.seconds(10)))

# --- one record at a time ---
# by mypy: "str" has no attribute "nonexistent"
# by pyright: Cannot access attribute "nonexistent" for class "str"
words.map(lambda w: w.nonexistent())

# by mypy: "str" has no attribute "amount"
# by pyright: Cannot access attribute "amount" for class "str"
words.filter(lambda w: w.amount > 3)

# by mypy: "str" has no attribute "words"
# by pyright: Cannot access attribute "words" for class "str"
words.flat_map(lambda w: w.words())

# by mypy: Incompatible return value type (got "int", expected "Iterable[Any] | None")
# by pyright: No overloads for "flat_map" match
words.flat_map(lambda w: len(w))

# by mypy: Argument 1 to "map" of "DataStream" has incompatible type "Lengths"; expected "MapFunction[Order
# by pyright: No overloads for "map" match
orders.map(Lengths())

# by mypy: Argument 1 to "map" of "DataStream" has incompatible type "type[Lengths]"
# by pyright: Type "type[Lengths]" is not assignable to type
orders.map(Lengths)

# by mypy: Argument 1 to "filter" of "DataStream" has incompatible type "Long"
# by pyright: "Order" is not assignable to "str"
orders.filter(Long())

# by mypy: "flat_map" of "DataStream"
# by pyright: No overloads for "flat_map" match
orders.flat_map(Letters())

# by mypy: No overload variant of "map" of "DataStream" matches argument type "Long"
# by pyright: "Long" is not assignable to
words.map(Long())

# by mypy: "tuple[str, int]" has no attribute "word"
# by pyright: Cannot access attribute "word" for class "tuple[str, int]"
pairs.map(lambda pair: pair.word)

# by mypy: Tuple index out of range
# by pyright: Index 2 is out of range for type tuple[str, int]
pairs.map(lambda pair: pair[2])

# by mypy: Incompatible return value type (got "int", expected "str")
# by pyright: "str" is not the same as "int"
words.map(lambda w: len(w), Types.STRING())

# by mypy: "int" has no attribute "upper"
# by pyright: Cannot access attribute "upper" for class "int"
words.map(Lengths()).map(lambda n: n.upper())

# by mypy: Unexpected keyword argument "type_info" for overloaded function "map"
# by pyright: No overloads for "map" match the provided arguments
words.map(len, type_info=Types.LONG())

# by mypy: Argument 1 to "process" of "DataStream" has incompatible type "Total"
# by pyright: "Total" is not assignable to "ProcessFunction[Order
orders.process(Total())

# --- keys ---
# by mypy: "Order" has no attribute "name"
# by pyright: Cannot access attribute "name" for class "Order"
orders.key_by(lambda order: order.name)

# by mypy: incompatible type "Customers"
# by pyright: "str" is not assignable to "Order"
words.key_by(Customers())

# by mypy: "process" of "KeyedStream" has incompatible type "Upper"
# by pyright: "Upper" is not assignable to "KeyedProcessFunction[str, Order
by_customer.process(Upper())

# by mypy: "process" of "KeyedStream" has incompatible type "Total"
# by pyright: "int" is not assignable to "str"
orders.key_by(lambda order: order.amount).process(Total())

# by mypy: "process" of "KeyedStream" has incompatible type "Total"
# by pyright: "str" is not assignable to "Order"
words.key_by(lambda word: word).process(Total())

# by mypy: Incompatible return value type (got "int", expected "Order")
# by pyright: "int" is not assignable to "Order"
by_customer.reduce(lambda one, other: one.amount + other.amount)

# by mypy: "reduce" of "KeyedStream" has incompatible type "Larger"
# by pyright: "Larger" is not assignable to "ReduceFunction[Order]"
by_customer.reduce(Larger())

# by mypy: Argument 1 to "sum" of "FoldsFields" has incompatible type "float"; expected "int | str"
# by pyright: "float" is not assignable to "int"
by_customer.sum(1.5)

# by mypy: "DataStream[str]" has no attribute "reduce"
# by pyright: Cannot access attribute "reduce" for class "DataStream[str]"
words.reduce(lambda one, other: one + other)

# by mypy: "DataStream[Order]" has no attribute "window"
# by pyright: Cannot access attribute "window" for class "DataStream[Order]"
orders.window(TumblingEventTimeWindows.of(Time.seconds(1)))

# --- settings ---
# by mypy: Argument 1 to "set_parallelism" of "Settings" has incompatible type "str"; expected "int"
# by pyright: "Literal['4']" is not assignable to "int"
words.name("words").uid("words").set_parallelism("4")

# by mypy: "DataStream[str]" has no attribute "set_paralelism"
# by pyright: Cannot access attribute "set_paralelism" for class "DataStream[str]"
words.name("words").set_paralelism(4)

# by mypy: "DataStreamSink" has no attribute "map"
# by pyright: Cannot access attribute "map" for class "DataStreamSink"
words.print().name("out").map(lambda w: w)

# by mypy: Argument 1 to "set_runtime_mode" of "StreamExecutionEnvironment" has incompatible type "str"
# by pyright: "Literal['batch']" is not assignable to "RuntimeExecutionMode"
env.set_parallelism(2).set_runtime_mode("batch")

# by mypy: "type[RuntimeExecutionMode]" has no attribute "STREAM"
# by pyright: Cannot access attribute "STREAM" for class "type[RuntimeExecutionMode]"
env.set_runtime_mode(RuntimeExecutionMode.STREAM)

# by mypy: Argument 1 to "enable_checkpointing" of "StreamExecutionEnvironment" has incompatible type "Duration"
# by pyright: "Duration" is not assignable to "int"
env.enable_checkpointing(Duration.of_seconds(3))

# --- windows ---
# by mypy: Argument 1 to "window" of "KeyedStream" has incompatible type "Time"
# by pyright: "Time" is not assignable to "WindowAssigner[Order
by_customer.window(Time.seconds(10))

# by mypy: "Order" has no attribute "size"
# by pyright: Cannot access attribute "size" for class "Order"
windows.reduce(lambda one, other: one if one.size > 1 else other)

# by mypy: "TimeWindow" has no attribute "until"
# by pyright: Cannot access attribute "until" for class "TimeWindow"
windows.apply(lambda key, window, found: [window.until])

# by mypy: "aggregate" of "WindowedStream" has incompatible type "Mean"
# by pyright: "Order" is not assignable to "int"
windows.aggregate(Mean())

# by mypy: "trigger" of "_Windowed" has incompatible type "type[CountTrigger]"
# by pyright: Type "type[CountTrigger]" is not assignable to type "Trigger[
windows.trigger(CountTrigger)

# by mypy: has no attribute "allow_lateness"
# by pyright: Cannot access attribute "allow_lateness" for class "WindowedStream[str, Order, TimeWindow]"
windows.trigger(CountTrigger.of(3)).allow_lateness(3)


class Sizes(ProcessWindowFunction[int, str, str, TimeWindow]):
    # by mypy: Argument 3 of "process" is incompatible with supertype
    # by pyright: Method "process" overrides class "ProcessWindowFunction" in an incompatible manner
    def process(self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: int) -> Iterator[str]:
        yield key


# by mypy: "process" of "WindowedStream" has incompatible type "Sizes"
# by pyright: "Order" is not assignable to "int"
windows.process(Sizes())


# --- functions ---
class Wrong(MapFunction[str, int]):
    # by mypy: Return type "str" of "map" incompatible with return type "int"
    # by pyright: "str" is not assignable to "int"
    def map(self, value: str) -> str:
        return value


class Unfinished(ProcessFunction[str, int]):
    pass


# by mypy: Cannot instantiate abstract class "Unfinished" with abstract attribute "process_element"
# by pyright: Cannot instantiate abstract class "Unfinished"
words.process(Unfinished())


class Numbers(SourceFunction[int]):
    def run(self, ctx: SourceContext[int]) -> None:
        # by mypy: Argument 1 to "collect" of "SourceContext" has incompatible type "str"; expected "int"
        # by pyright: "Literal['one']" is not assignable to "int"
        ctx.collect("one")

    def cancel(self) -> None: ...


# by mypy: "int" has no attribute "upper"
# by pyright: Cannot access attribute "upper" for class "int"
env.add_source(Numbers()).map(lambda n: n.upper())


class Lines(SinkFunction[str]):
    def invoke(self, value: str, context: SinkFunction.Context | None = None) -> None:
        print(value)


# by mypy: Argument 1 to "add_sink" of "DataStream" has incompatible type "Lines"
# by pyright: "Order" is not assignable to "str"
orders.add_sink(Lines())


# --- several streams ---
class Both(CoMapFunction[str, int, str]):
    def map1(self, value: str) -> str:
        return value

    def map2(self, value: int) -> str:
        return str(value)


# by mypy: "map" of "ConnectedStreams" has incompatible type "Both"
# by pyright: "Order" is not assignable to "int"
words.connect(orders).map(Both())

# by mypy: "Order" has no attribute "name"
# by pyright: Cannot access attribute "name" for class "Order"
words.connect(orders).key_by(lambda word: word, lambda order: order.name)


class Limits(BroadcastProcessFunction[Order, str, str]):
    def process_element(self, value: Order, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterator[str]:
        # by mypy: "ReadOnlyBroadcastState[str, int]" has no attribute "put"
        # by pyright: Cannot access attribute "put" for class "ReadOnlyBroadcastState[str, int]"
        ctx.get_broadcast_state(LIMITS).put("ann", 3)
        yield value.customer

    def process_broadcast_element(self, value: str, ctx: BroadcastProcessFunction.Context) -> None:
        # by mypy: Argument 2 to "put" of "WritableMapState" has incompatible type "str"; expected "int"
        # by pyright: "str" is not assignable to "int"
        ctx.get_broadcast_state(LIMITS).put("ann", value)


LIMITS = MapStateDescriptor("limits", Types.STRING(), Types.LONG())

# by mypy: "process" of "BroadcastConnectedStream" has incompatible type "Limits"
# by pyright: "Limits" is not assignable to "BroadcastProcessFunction[str
words.connect(words.broadcast(LIMITS)).process(Limits())


class Joined(JoinFunction[str, str, str]):
    def join(self, first: str, second: str) -> str:
        return first + second


pairing = words.join(orders).where(lambda word: word).equal_to(lambda order: order.customer)

# by mypy: "JoinFunction[str, Order
# by pyright: "Order" is not assignable to "str"
pairing.window(TumblingEventTimeWindows.of(3)).apply(Joined())

# by mypy: "Order" has no attribute "size"
# by pyright: Cannot access attribute "size" for class "Order"
pairing.window(TumblingEventTimeWindows.of(3)).apply(lambda word, order: order.size)

# by mypy: "EqualTo[str, Order, JoinWindow[str, Order]]" has no attribute "apply"
# by pyright: Cannot access attribute "apply" for class "EqualTo[str, Order, JoinWindow[str, Order]]"
pairing.apply(lambda word, order: word)

# by mypy: Unsupported operand types for + ("str" and "int")
# by pyright: Operator "+" not supported for types "str" and "Literal[1]"
words.union(words).map(lambda word: word + 1)

# by mypy: "int" has no attribute "upper"
# by pyright: Cannot access attribute "upper" for class "int"
words.get_side_output(NUMBERS).map(lambda n: n.upper())


# --- requests to outside systems ---
class Ask(AsyncFunction[str, int]):
    async def async_invoke(self, value: str) -> Iterable[int]:
        return [len(value)]


# by mypy: Cannot infer value of type parameter "T" of "unordered_wait"
# by pyright: "Order" is not assignable to "str"
AsyncDataStream.unordered_wait(orders, Ask(), Time.seconds(1))

# --- results ---
with orders.execute_and_collect("orders") as results:
    for order in results:
        # by mypy: "Order" has no attribute "price"
        # by pyright: Cannot access attribute "price" for class "Order"
        print(order.price)

# by mypy: "list[Order]" has no attribute "close"
# by pyright: Cannot access attribute "close" for class "list[Order]"
orders.execute_and_collect(limit=3).close()

# --- sources and sinks ---
# by mypy: No overload variant of "from_source"
# by pyright: "Literal['none']" is not assignable to "WatermarkStrategy[
env.from_source(FileSource.for_record_stream_format(StreamFormat.text_line_format(), "a").build(), "none", "files")

lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "a").build()
# by mypy: "str" has no attribute "customer"
# by pyright: Cannot access attribute "customer" for class "str"
env.from_source(lines, WatermarkStrategy.no_watermarks(), "lines").map(lambda line: line.customer)

# by mypy: "KafkaSourceBuilder[str]" has no attribute "set_topic"
# by pyright: Cannot access attribute "set_topic" for class "KafkaSourceBuilder[str]"
KafkaSource.builder().set_value_only_deserializer(SimpleStringSchema()).set_group_id("g").set_topic("orders")

to_text = KafkaRecordSerializationSchema.builder().set_value_serialization_schema(SimpleStringSchema()).build()
# by mypy: Argument 1 to "sink_to" of "DataStream" has incompatible type "KafkaSink[str]"; expected "Sink[Order]"
# by pyright: "Order" is not assignable to "str"
orders.sink_to(KafkaSink.builder().set_record_serializer(to_text).build())

# by mypy: Argument 1 to "sink_to" of "DataStream" has incompatible type "str"; expected "Sink[Order]"
# by pyright: "Literal['orders']" is not assignable to "Sink[Order]"
orders.sink_to("orders")

# --- time ---
in_order: WatermarkStrategy[Order] = WatermarkStrategy.for_monotonous_timestamps()
# by mypy: "Order" has no attribute "at"
# by pyright: Cannot access attribute "at" for class "Order"
in_order.with_timestamp_assigner(lambda order: order.at)

# by mypy: has incompatible type "WatermarkStrategy[Order]"; expected "WatermarkStrategy[str]"
# by pyright: "str" is not assignable to "Order"
words.assign_timestamps_and_watermarks(in_order)

# by mypy: Argument 1 to "for_bounded_out_of_orderness" of "WatermarkStrategy" has incompatible type "int"
# by pyright: "Literal[5]" is not assignable to "Duration"
WatermarkStrategy.for_bounded_out_of_orderness(5)

# --- patterns ---
small: Pattern[Order] = Pattern.begin("small")
# by mypy: "Order" has no attribute "size"
# by pyright: Cannot access attribute "size" for class "Order"
small.where(lambda order: order.size < 5)

# by mypy: "Pattern[Order]" has no attribute "times_and_more"
# by pyright: Cannot access attribute "times_and_more" for class "Pattern[Order]"
small.where(lambda order: order.amount < 5).times_and_more(2)

# by mypy: "list[Order]" has no attribute "amount"
# by pyright: Cannot access attribute "amount" for class "list[Order]"
CEP.pattern(orders, small).select(lambda match: match["small"].amount)


class Alarm(PatternProcessFunction[str, str]):
    def process_match(self, match: dict[str, list[str]], ctx: PatternProcessFunction.Context) -> Iterator[str]:
        yield match["small"][0]


# by mypy: "process" of "PatternStream" has incompatible type "Alarm"
# by pyright: "Alarm" is not assignable to "PatternProcessFunction[Order
CEP.pattern(orders, small).process(Alarm())


class Pick(PatternSelectFunction[str, str]):
    def select(self, match: dict[str, list[str]]) -> str:
        return match["small"][0]


# by mypy: "PatternSelectFunction[Order
# by pyright: "Pick" is not assignable to "PatternSelectFunction[Order
CEP.pattern(orders, small).select(Pick())
