"""A job with every kind of state in it, whose result does not depend on where epochs end or what dies on the way."""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.common import Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import (
    AggregateFunction,
    CheckpointedFunction,
    CheckpointListener,
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    KeyedStream,
    ListCheckpointed,
    MapFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    SinkFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.connectors.base import Committer, Sink
from penstock.datastream.connectors.prepared import PreparingWriter
from penstock.datastream.connectors.two_phase_commit import TwoPhaseCommitSinkFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from penstock.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from penstock.testing import pause, scripted
from penstock.testing.crashes import StoreSink, crash_point, current_store, new_name

KEYS = 4
EVENTS = [(f"k{(n * n + n // 3) % KEYS}", n, 1000 + 40 * n + (300 if n % 11 == 0 else 0)) for n in range(36)]
ENDING = 30
"""Pauses at the end of the stream, in which processing time goes on."""
PARALLELISM = 2
RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2]


class Sum(AggregateFunction):
    def create_accumulator(self):
        return [0, 0]

    def add(self, value, accumulator):
        crash_point("aggregating")
        return [accumulator[0] + value, accumulator[1] + 1]

    def get_result(self, accumulator):
        return tuple(accumulator)

    def merge(self, first, second):
        return [first[0] + second[0], first[1] + second[1]]


class EveryState(KeyedProcessFunction):
    """Keeps a key's numbers in every kind of state, and tells of them with each record and each timer."""

    def open(self, context):
        crash_point("open")
        self.value = context.get_state(ValueStateDescriptor("value", Types.INT()))
        self.list = context.get_list_state(ListStateDescriptor("list", Types.INT()))
        self.map = context.get_map_state(MapStateDescriptor("map", Types.INT(), Types.INT()))
        self.reduced = context.get_reducing_state(ReducingStateDescriptor("reduced", lambda a, b: max(a, b)))
        self.aggregated = context.get_aggregating_state(AggregatingStateDescriptor("aggregated", Sum()))

    def process_element(self, value, ctx):
        crash_point("process_element")
        key, number, timestamp = value
        if self.value.value() is None:
            ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 7)
        self.value.update((self.value.value() or 0) + 1)
        self.list.add(number)
        if self.value.value() % 4 == 0:
            self.list.clear()
        self.map.put(number % 3, number)
        if number % 5 == 0:
            self.map.remove((number + 1) % 3)
        self.reduced.add(number)
        self.aggregated.add(number)
        ctx.timer_service().register_event_time_timer(timestamp + 150)
        if number % 3 == 0:
            ctx.timer_service().delete_event_time_timer(timestamp + 110)
        yield (
            "element",
            key,
            self.value.value(),
            tuple(self.list.get()),
            tuple(sorted(self.map.items())),
            self.reduced.get(),
            self.aggregated.get(),
        )

    def on_timer(self, timestamp, ctx):
        crash_point("on_timer")
        if ctx.time_domain().name == "PROCESSING_TIME":
            yield ("processing timer", ctx.get_current_key())
        else:
            yield ("event timer", ctx.get_current_key(), timestamp)


class Sessions(ProcessWindowFunction):
    def process(self, key, context, elements):
        crash_point("window process")
        total = context.global_state().get_state(ValueStateDescriptor("windows", Types.INT()))
        total.update((total.value() or 0) + 1)
        window = context.window()
        yield ("session", key, window.start, window.end, sorted(n for _, n, _ in elements), total.value())


class Numbered(MapFunction, CheckpointedFunction):
    """Numbers the records of its subtask: in list state, and its offset in union state."""

    def initialize_state(self, context):
        crash_point("initialize_state")
        store = context.get_operator_state_store()
        self.numbers = store.get_list_state(ListStateDescriptor("numbers", Types.INT()))
        self.union = store.get_union_list_state(ListStateDescriptor("union"))
        self.count = sum(self.numbers.get())
        self.index = None

    def open(self, context):
        self.index = context.get_index_of_this_subtask()
        known = dict(self.union.get())
        assert known.get(self.index, 0) == self.count, (known, self.index, self.count)

    def map(self, value):
        crash_point("map")
        self.count += 1
        return ("numbered", self.index, self.count, value[1])

    def snapshot_state(self, context):
        crash_point("snapshot_state")
        self.numbers.update([1] * self.count)
        self.union.update([(self.index, self.count)])


class Remembered(MapFunction, ListCheckpointed):
    def __init__(self):
        self.items = []

    def map(self, value):
        self.items.append(value[1])
        return ("remembered", tuple(self.items[-3:]))

    def snapshot_state(self, checkpoint_id, timestamp):
        crash_point("snapshot list")
        return list(self.items)

    def restore_state(self, state):
        self.items = list(state)


class Ruled(KeyedBroadcastProcessFunction):
    """At the end of time, tells which rules there were: all, whenever they came."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(2**62)

    def process_broadcast_element(self, value, ctx):
        crash_point("broadcast")
        ctx.get_broadcast_state(RULES).put(value[0], value[1])

    def on_timer(self, timestamp, ctx):
        yield ("ruled", ctx.get_current_key(), tuple(sorted(ctx.get_broadcast_state(RULES).items())))


class Pairs(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        crash_point("join")
        yield ("pair", left[1], right[1])


class OwnTransactions(SinkFunction, CheckpointedFunction, CheckpointListener):
    """A sink that a user might write: batches wait in operator state until their checkpoint is complete."""

    def initialize_state(self, context):
        crash_point("sink initialize_state")
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("batches"))
        self.waiting = list(self.state.get())
        self.records = []
        for _, transaction in self.waiting:
            current_store().commit(transaction)
        self.waiting = []

    def invoke(self, value, context=None):
        crash_point("invoke")
        self.records.append(value)

    def snapshot_state(self, context):
        crash_point("sink snapshot_state")
        if self.records:
            transaction = new_name("own/")
            current_store().prepare(transaction, self.records)
            self.records = []
            self.waiting.append((context.get_checkpoint_id(), transaction))
        self.state.update(self.waiting)

    def notify_checkpoint_complete(self, checkpoint_id):
        crash_point("notify")
        for number, transaction in self.waiting:
            if number <= checkpoint_id:
                current_store().commit(transaction)
        self.waiting = [(n, t) for n, t in self.waiting if n > checkpoint_id]


class PreparedTransactions(TwoPhaseCommitSinkFunction):
    """Transactions that are prepared at a checkpoint, and aborted by whoever goes on from an earlier one."""

    def __init__(self):
        super().__init__()
        self.records = {}

    def begin_transaction(self):
        return new_name("phases/")

    def invoke(self, transaction, value, context):
        crash_point("invoke two-phase")
        self.records.setdefault(transaction, []).append(value)

    def pre_commit(self, transaction):
        current_store().prepare(transaction, self.records.pop(transaction, []))

    def commit(self, transaction):
        current_store().commit_prepared(transaction)

    def abort(self, transaction):
        self.records.pop(transaction, None)
        current_store().abort(transaction)


class MarkedSink(Sink):
    """Into a system that remembers only the last few transactions of a writer, as those with markers do."""

    def create_writer(self, context, restored):
        return MarkedWriter(context, "marked")

    def create_committer(self):
        return MarkedCommitter()


class MarkedWriter(PreparingWriter):
    def to_record(self, value, context):
        crash_point("write marked")
        return value


class MarkedCommitter(Committer):
    def commit(self, committables):
        for prepared in committables:
            name = f"marked/{prepared.id}"
            current_store().commit_marked(prepared.origin, name, prepared.records, self.check_owner)


PARTS = ("states", "windows", "operator state", "broadcast", "join", "sinks")
"""The parts of the program. Each can run without the others."""


@dataclass(frozen=True)
class Program:
    """The program, or some parts of it, over the first events, with pauses at the end of the stream."""

    parts: tuple[str, ...] = PARTS
    events: int = len(EVENTS)
    ending: int = ENDING

    def __call__(self, environment: StreamExecutionEnvironment) -> None:
        environment.set_parallelism(PARALLELISM)
        events = self._events(environment)
        keyed = events.key_by(lambda event: event[0])
        built = {part: BUILDERS[part](environment, events, keyed) for part in self.parts}
        main, own = (
            [stream for part in self.parts for place, stream in built[part] if place == sink]
            for sink in ("main", "own")
        )
        if main:
            main[0].union(*main[1:]).sink_to(StoreSink("main")).uid("main")
        if own:
            own[0].union(*own[1:]).add_sink(OwnTransactions()).uid("own").set_parallelism(1)

    def _events(self, environment: StreamExecutionEnvironment) -> DataStream:
        ordered = sorted(EVENTS[: self.events], key=lambda event: event[2])
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
        return (
            scripted(environment, *ordered, *[pause()] * self.ending)
            .uid("events")
            .assign_timestamps_and_watermarks(strategy)
            .uid("times")
            .set_parallelism(1)
        )


WHOLE = Program()

Sent = list[tuple[str, DataStream]]
"""Streams, each with the name of the sink that it goes to."""


def _states(environment: StreamExecutionEnvironment, events: DataStream, keyed: KeyedStream) -> Sent:
    return [("main", keyed.process(EveryState()).uid("states"))]


def _windows(environment: StreamExecutionEnvironment, events: DataStream, keyed: KeyedStream) -> Sent:
    tumbling = (
        keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(200)))
        .aggregate(_Numbers(), accumulator_type=None)
        .map(lambda result: ("tumbling", *result))
        .uid("tumbling-name")
    )
    sessions = keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(70))).process(Sessions()).uid("sessions")
    return [("own", tumbling), ("main", sessions)]


def _operator_state(environment: StreamExecutionEnvironment, events: DataStream, keyed: KeyedStream) -> Sent:
    numbered = events.rebalance().map(Numbered()).uid("numbered")
    remembered = events.map(Remembered()).uid("remembered").set_parallelism(1)
    return [("own", numbered), ("own", remembered)]


def _broadcast(environment: StreamExecutionEnvironment, events: DataStream, keyed: KeyedStream) -> Sent:
    rules = environment.from_collection([("a", 1), ("b", 2), ("c", 3), ("a", 4)]).uid("rules")
    return [("main", keyed.connect(rules.broadcast(RULES)).process(Ruled()).uid("ruled"))]


def _join(environment: StreamExecutionEnvironment, events: DataStream, keyed: KeyedStream) -> Sent:
    odd = events.filter(lambda event: event[1] % 2 == 1).key_by(lambda event: event[0])
    even = events.filter(lambda event: event[1] % 2 == 0).key_by(lambda event: event[0])
    pairs = odd.interval_join(even).between(Time.milliseconds(-120), Time.milliseconds(120)).process(Pairs())
    return [("main", pairs.map(lambda pair: pair))]


def _sinks(environment: StreamExecutionEnvironment, events: DataStream, keyed: KeyedStream) -> Sent:
    numbers = (
        environment.from_sequence(1, 20)
        .uid("sequence")
        .key_by(lambda n: n % 3)
        .flat_map_with_state(lambda n, seen: ([("number", n), ("counted", n % 3, (seen or 0) + 1)], (seen or 0) + 1))
        .uid("counted")
    )
    numbers.sink_to(StoreSink("numbers")).uid("numbers")
    numbers.add_sink(PreparedTransactions()).uid("phases")
    numbers.sink_to(MarkedSink()).uid("marked")
    return []


BUILDERS: dict[str, Callable[[StreamExecutionEnvironment, DataStream, KeyedStream], Sent]] = {
    "states": _states,
    "windows": _windows,
    "operator state": _operator_state,
    "broadcast": _broadcast,
    "join": _join,
    "sinks": _sinks,
}


class _Numbers(AggregateFunction):
    def create_accumulator(self):
        return ("", 0, 0)

    def add(self, value, accumulator):
        return (value[0], accumulator[1] + value[1], accumulator[2] + 1)

    def get_result(self, accumulator):
        return accumulator

    def merge(self, first, second):
        return (first[0] or second[0], first[1] + second[1], first[2] + second[2])
