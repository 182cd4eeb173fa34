"""The program whose savepoints are in `savepoints/1…`. It must not change: they hold the state of its operators."""

from dataclasses import dataclass

from penstock.common import Duration, Row, Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import (
    AggregateFunction,
    CheckpointedFunction,
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    ListCheckpointed,
    MapFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.testing import scripted

EVENTS = [(f"k{(n * n + n // 3) % 4}", n, 1000 + 40 * n) for n in range(60)]
RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())
ROW = Types.ROW_NAMED(["count", "last"], [Types.INT(), Types.LONG()])


@dataclass(frozen=True)
class Seen:
    """A value of a class that must stay importable."""

    times: int
    largest: int = 0


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2]


class Sum(AggregateFunction):
    def create_accumulator(self):
        return (0, 0)

    def add(self, value, accumulator):
        return (accumulator[0] + value, accumulator[1] + 1)

    def get_result(self, accumulator):
        return accumulator

    def merge(self, first, second):
        return (first[0] + second[0], first[1] + second[1])


class EveryState(KeyedProcessFunction):
    def open(self, context):
        expiring = ValueStateDescriptor("expiring", Types.INT())
        expiring.enable_time_to_live(StateTtlConfig.new_builder(Duration.of_days(10_000)).build())
        self.expiring = context.get_state(expiring)
        self.row = context.get_state(ValueStateDescriptor("row", ROW))
        self.seen = context.get_state(ValueStateDescriptor("seen"))
        self.list = context.get_list_state(ListStateDescriptor("list", Types.INT()))
        self.map = context.get_map_state(MapStateDescriptor("map", Types.INT(), Types.STRING()))
        self.reduced = context.get_reducing_state(ReducingStateDescriptor("reduced", max, Types.INT()))
        self.aggregated = context.get_aggregating_state(AggregatingStateDescriptor("aggregated", Sum()))

    def process_element(self, value, ctx):
        key, number, timestamp = value
        self.expiring.update((self.expiring.value() or 0) + 1)
        row = self.row.value() or Row(count=0, last=0)
        self.row.update(Row(count=row["count"] + 1, last=number))
        seen = self.seen.value() or Seen(0)
        self.seen.update(Seen(seen.times + 1, max(seen.largest, number)))
        self.list.add(number)
        self.map.put(number % 3, f"n{number}")
        if number % 5 == 0:
            self.map.remove((number + 1) % 3)
        self.reduced.add(number)
        self.aggregated.add(number)
        ctx.timer_service().register_event_time_timer(timestamp + 350)
        yield (
            "element",
            key,
            self.expiring.value(),
            self.row.value()["count"],
            self.seen.value().largest,
            tuple(self.list.get()),
            tuple(sorted(self.map.items())),
            self.reduced.get(),
            self.aggregated.get(),
        )

    def on_timer(self, timestamp, ctx):
        yield ("timer", ctx.get_current_key(), timestamp)


class Windowed(ProcessWindowFunction):
    def __init__(self, name):
        self.name = name

    def process(self, key, context, elements):
        total = context.global_state().get_state(ValueStateDescriptor("windows", Types.INT()))
        total.update((total.value() or 0) + 1)
        yield (self.name, key, context.window().start, sorted(n for _, n, _ in elements), total.value())


class Numbered(MapFunction, CheckpointedFunction):
    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self.numbers = store.get_list_state(ListStateDescriptor("numbers", Types.INT()))
        self.union = store.get_union_list_state(ListStateDescriptor("union"))
        self.count = sum(self.numbers.get())

    def map(self, value):
        self.count += 1
        return ("numbered", self.count, value[1])

    def snapshot_state(self, context):
        self.numbers.update([self.count])
        self.union.update([("count", self.count)])


class Remembered(MapFunction, ListCheckpointed):
    items = ()

    def map(self, value):
        self.items = (*self.items, value[1])[-3:]
        return ("remembered", self.items)

    def snapshot_state(self, checkpoint_id, timestamp):
        return list(self.items)

    def restore_state(self, state):
        self.items = tuple(state)


class Ruled(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(2**62)

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value[0], value[1])

    def on_timer(self, timestamp, ctx):
        yield ("ruled", ctx.get_current_key(), tuple(sorted(ctx.get_broadcast_state(RULES).items())))


class Pairs(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield ("pair", left[1], right[1])


def build(environment: StreamExecutionEnvironment) -> DataStream:
    """All branches in one stream. Branches whose results depend on the parallelism have one subtask."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    events = scripted(environment, *EVENTS).uid("events").assign_timestamps_and_watermarks(strategy)
    events = events.uid("times").set_parallelism(1)
    keyed = events.key_by(lambda event: event[0])
    hundred, three = Time.milliseconds(100), Time.milliseconds(300)
    rules = environment.from_collection([("a", 1), ("b", 2), ("a", 4)]).uid("rules")
    odd = events.filter(lambda event: event[1] % 2 == 1).uid("odd").set_parallelism(1).key_by(lambda event: event[0])
    even = events.filter(lambda event: event[1] % 2 == 0).uid("even").set_parallelism(1).key_by(lambda event: event[0])
    return (
        keyed.process(EveryState())
        .uid("states")
        .union(
            keyed.window(TumblingEventTimeWindows.of(three)).process(Windowed("tumbling")).uid("tumbling"),
            keyed.window(SlidingEventTimeWindows.of(three, hundred)).process(Windowed("sliding")).uid("sliding"),
            keyed.window(EventTimeSessionWindows.with_gap(hundred)).process(Windowed("session")).uid("sessions"),
            keyed.reduce(lambda a, b: (a[0], a[1] + b[1], b[2]))
            .uid("reduced")
            .map(lambda e: ("rolling", *e))
            .uid("rolling"),
            events.map(Numbered()).uid("numbered").set_parallelism(1),
            events.map(Remembered()).uid("remembered").set_parallelism(1),
            keyed.connect(rules.broadcast(RULES)).process(Ruled()).uid("ruled"),
            odd.interval_join(even).between(Time.milliseconds(-300), three).process(Pairs()).uid("pairs"),
            environment.from_sequence(1, 200).uid("sequence").map(lambda n: ("number", n)).uid("named"),
        )
    )
