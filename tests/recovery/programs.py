"""One program that holds every kind of state, source and sink, and the outside system that it writes to.

Every branch of it yields (branch, key, value). What it yields does not depend on parallelism, on where epochs end or on
what the clock says, so that a run which was stopped and started again can be compared with one that never stopped: in
order for each key where a branch promises that (`IN_ORDER`), else as a bag.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from penstock.common import Time, Types
from penstock.common.watermark_strategy import (
    TimestampAssigner,
    Watermark,
    WatermarkGenerator,
    WatermarkStrategy,
)
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.connectors.base import Committer, Sink, SinkWriter
from penstock.datastream.functions import (
    AggregateFunction,
    CheckpointedFunction,
    FlatMapFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    ListCheckpointed,
    MapFunction,
    ParallelSourceFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    SourceFunction,
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
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountTrigger,
    DeltaTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.engine.operators.sources.readers import FedSource, IteratorEnumerator
from penstock.testing import at, pause, scripted, watermark

# --- what is read ---
KEYS = "abcdefg"
Event = tuple[str, int, int]
"""(key, timestamp, number)"""


def made_up_events(number: int, seed: int) -> list[Event]:
    """Events in order of time, some at the same time, some after a gap."""
    chance, now, made = random.Random(seed), 0, list[Event]()
    for n in range(number):
        now += chance.choice([0, 1, 2, 5, 9, 40])
        made.append((chance.choice(KEYS), now, n))
    return made


EVENTS = made_up_events(60, seed=1)
OTHER_EVENTS = made_up_events(45, seed=2)
PARTITIONS = {name: [f"{name}{n}" for n in range(6)] for name in "pqrstuvwxyz"}
RULES = [at((f"rule {n}", n), n) for n in range(6)]
QUIET_EPOCHS = 30
"""How long the rules' source goes on when all others have ended, so that every processing-time timer comes due."""


# --- the outside system ---
@dataclass
class Store:
    """An outside system with transactions, which knows nothing of jobs and outlives them."""

    prepared: dict[str, list[Any]] = field(default_factory=dict)
    committed: dict[str, list[Any]] = field(default_factory=dict)
    ledger: list[tuple[str, Any]] = field(default_factory=list)
    """What functions of the last run had left when they were closed."""

    def prepare(self, transaction: str, records: list[Any]) -> None:
        assert transaction not in self.prepared, f"{transaction} is prepared twice"
        self.prepared[transaction] = records

    def commit(self, transaction: str) -> None:
        """Committing again changes nothing."""
        self.committed.setdefault(transaction, self.prepared[transaction])

    def records(self, sink: str) -> list[Any]:
        """What a sink made visible, in order of commits."""
        mine = [records for name, records in self.committed.items() if name.startswith(f"{sink}/")]
        return [record for records in mine for record in records]


STORES: dict[str, Store] = defaultdict(Store)
"""By name. Slots are in this process, so that what they write here can be seen from outside."""
_tokens = count()


@dataclass
class StoreSink(Sink):
    """Writes into a store, exactly once. With `batch`, whole batches only: what is left over is state of the writer."""

    store: str
    name: str = "out"
    batch: int = 1

    def create_writer(self, context: Any, restored: list[Any]) -> SinkWriter:
        prefix = f"{self.name}/{context.runtime.get_index_of_this_subtask()}-{next(_tokens)}"
        return _StoreWriter(STORES[self.store], prefix, self.batch, restored)

    def create_committer(self) -> Committer:
        return _StoreCommitter(STORES[self.store])


class _StoreWriter(SinkWriter):
    def __init__(self, store: Store, prefix: str, batch: int, restored: list[Any]) -> None:
        self._store = store
        self._prefix = prefix
        self._batch = batch
        self._records = list(restored)
        self._numbers = count()
        self._ended = False

    def write(self, value: Any, context: Any) -> None:
        self._records.append(value)

    def flush(self, end_of_input: bool) -> None:
        self._ended = self._ended or end_of_input

    def prepare_commit(self) -> list[str]:
        whole = len(self._records) if self._ended else len(self._records) // self._batch * self._batch
        ready, self._records = self._records[:whole], self._records[whole:]
        if not ready:
            return []
        transaction = f"{self._prefix}-{next(self._numbers)}"
        self._store.prepare(transaction, ready)
        return [transaction]

    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        return list(self._records)


class _StoreCommitter(Committer):
    def __init__(self, store: Store) -> None:
        self._store = store

    def commit(self, committables: list[Any]) -> None:
        for transaction in committables:
            self._store.commit(transaction)


# --- event time ---
class SecondField(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value[1]


class AfterEveryRecord(WatermarkGenerator):
    """Event time follows each record at once, so that early firings do not depend on where epochs end."""

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        output.emit_watermark(Watermark(event_timestamp - 1))

    def on_periodic_emit(self, output: Any) -> None:
        pass


def punctuated(stream: DataStream, uid: str) -> DataStream:
    strategy = WatermarkStrategy.for_generator(lambda context: AfterEveryRecord())
    stamped = stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(SecondField()))
    return stamped.uid(uid).set_parallelism(1)


def periodic(stream: DataStream, uid: str) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    return stream.assign_timestamps_and_watermarks(strategy).uid(uid)


def key_of(event: Event) -> str:
    return event[0]


def labelled(stream: DataStream, branch: str, key: Callable[[Any], Any] = lambda _: "-") -> DataStream:
    """Records as (branch, key, value)."""
    return stream.map(lambda value: (branch, key(value), value)).uid(f"labels of {branch}")


# --- keyed state ---
class Mean(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: Any, accumulator: tuple[int, int]) -> tuple[int, int]:
        number = value if isinstance(value, int) else value[2]
        return accumulator[0] + number, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return round(accumulator[0] / accumulator[1], 6)

    def merge(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return a[0] + b[0], a[1] + b[1]


def total(left: int, right: int) -> int:
    return left + right


class Everything(KeyedProcessFunction):
    """Holds every kind of keyed state, without and with a time to live that never ends, and tells what is in each."""

    def open(self, runtime_context: Any) -> None:
        self.plain = self._states(runtime_context, "plain", None)
        self.lasting = self._states(runtime_context, "lasting", StateTtlConfig.new_builder(Time.days(100)).build())

    @staticmethod
    def _states(context: Any, prefix: str, ttl: StateTtlConfig | None) -> list[Any]:
        descriptors = [
            ValueStateDescriptor(f"{prefix} value", Types.INT()),
            ListStateDescriptor(f"{prefix} list", Types.INT()),
            MapStateDescriptor(f"{prefix} map", Types.INT(), Types.INT()),
            ReducingStateDescriptor(f"{prefix} sum", total, Types.INT()),
            AggregatingStateDescriptor(f"{prefix} mean", Mean(), Types.PICKLED_BYTE_ARRAY()),
        ]
        for descriptor in descriptors:
            if ttl is not None:
                descriptor.enable_time_to_live(ttl)
        value, listed, mapped, summed, mean = descriptors
        return [
            context.get_state(value),
            context.get_list_state(listed),
            context.get_map_state(mapped),
            context.get_reducing_state(summed),
            context.get_aggregating_state(mean),
        ]

    def process_element(self, value: Event, ctx: Any) -> Iterable[Any]:
        plain, lasting = self._seen(self.plain, value[2]), self._seen(self.lasting, value[2])
        assert plain == lasting
        yield "states", value[0], plain

    @staticmethod
    def _seen(states: list[Any], number: int) -> Any:
        value, listed, mapped, summed, mean = states
        value.update(None if number % 11 == 0 else (value.value() or 0) + 1)
        listed.add(number)
        listed.update(list(listed.get())[-3:])
        mapped.put(number % 4, number)
        mapped.remove((number + 1) % 4)
        if number % 13 == 0:
            summed.clear()
        summed.add(number)
        mean.add(number)
        return value.value(), list(listed.get()), sorted(mapped.items()), summed.get(), mean.get()


class Alarms(KeyedProcessFunction):
    """An event-time timer a little after each element; some are deleted, some set again."""

    def open(self, runtime_context: Any) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))
        self.rung = runtime_context.get_state(ValueStateDescriptor("rung", Types.INT()))

    def process_element(self, value: Event, ctx: Any) -> None:
        timers = ctx.timer_service()
        if value[2] % 3 == 0 and self.last.value() is not None:
            timers.delete_event_time_timer(self.last.value())
        self.last.update(value[1] + 15)
        timers.register_event_time_timer(value[1] + 15)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        self.rung.update((self.rung.value() or 0) + 1)
        yield "event timers", ctx.get_current_key(), (timestamp, self.rung.value())


class Delayed(KeyedProcessFunction):
    """Hands each element on a while later, by the clock."""

    def open(self, runtime_context: Any) -> None:
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting"))

    def process_element(self, value: Event, ctx: Any) -> None:
        due = ctx.timer_service().current_processing_time() + 25
        self.waiting.add((due, value[2]))
        ctx.timer_service().register_processing_time_timer(due)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        waiting = list(self.waiting.get())
        self.waiting.update([(due, number) for due, number in waiting if due > timestamp])
        for due, number in waiting:
            if due <= timestamp:
                yield "processing timers", ctx.get_current_key(), number


def keyed_states(env: StreamExecutionEnvironment, events: DataStream) -> list[DataStream]:
    keyed = events.key_by(key_of)
    return [
        keyed.process(Everything()).uid("states"),
        keyed.process(Alarms()).uid("alarms"),
        keyed.process(Delayed()).uid("delayed"),
        labelled(keyed.reduce(lambda a, b: (a[0], b[1], a[2] + b[2])).uid("rolling"), "rolling", key_of),
        keyed.map_with_state(lambda e, s: (("with state", e[0], (s or 0) + e[2]), (s or 0) + e[2])).uid("with state"),
    ]


# --- windows ---
class Firings(ProcessWindowFunction):
    """Counts firings of the window in per-window state, and of the key in global state."""

    def __init__(self, branch: str, per_window: bool = True) -> None:
        self.branch = branch
        self.per_window = per_window

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        descriptor = ValueStateDescriptor("fired", Types.INT())
        states = [context.global_state().get_state(descriptor)]
        if self.per_window:
            states.append(context.window_state().get_state(descriptor))
        for state in states:
            state.update((state.value() or 0) + 1)
        window = context.window()
        yield self.branch, key, (window.max_timestamp(), [s.value() for s in states], [e[2] for e in elements])

    def clear(self, context: Any) -> None:
        if self.per_window:
            context.window_state().get_state(ValueStateDescriptor("fired", Types.INT())).clear()


@dataclass
class EachOf(ProcessWindowFunction):
    """Every element by itself: what does not depend on which window it fell into."""

    branch: str

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        for element in elements:
            yield self.branch, key, element[2]


@dataclass
class Result(ProcessWindowFunction):
    """One folded value a window."""

    branch: str

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield self.branch, key, (context.window().max_timestamp(), list(elements))


def windows(env: StreamExecutionEnvironment, events: DataStream) -> list[DataStream]:
    keyed = events.key_by(key_of)
    early = ContinuousEventTimeTrigger.of(Time.milliseconds(7))
    purging = PurgingTrigger.of(CountTrigger.of(3))
    return [
        keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(50))).trigger(early)
        .process(Firings("tumbling")).uid("tumbling"),
        keyed.window(SlidingEventTimeWindows.of(Time.milliseconds(40), Time.milliseconds(15)))
        .reduce(lambda a, b: (a[0], a[1], a[2] + b[2]), Result("sliding")).uid("sliding"),
        keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(30)))
        .aggregate(Mean(), Result("session")).uid("session"),
        keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(45))).trigger(early)
        .process(Firings("early session", per_window=False)).uid("early session"),
        keyed.count_window(3).process(EachOf("count")).uid("count"),
        labelled(
            keyed.count_window(4, 2).reduce(lambda a, b: (a[0], 0, a[2] + b[2])).uid("sliding count"),
            "sliding count", key_of,
        ),
        keyed.window(GlobalWindows.create()).trigger(purging).process(EachOf("global")).uid("global"),
        keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(2)).evictor(CountEvictor.of(3))
        .process(Firings("evicted")).uid("evicted"),
        keyed.window(GlobalWindows.create()).trigger(DeltaTrigger.of(12, lambda a, b: b[1] - a[1]))
        .process(Firings("delta")).uid("delta"),
        keyed.window(TumblingProcessingTimeWindows.of(Time.milliseconds(40)))
        .process(EachOf("by the clock")).uid("by the clock"),
        labelled(events.count_window_all(7).reduce(lambda a, b: ("all", 0, a[2] + b[2])).uid("all"), "window all"),
    ]  # fmt: skip


# --- two streams ---
class Pair(ProcessJoinFunction):
    def process_element(self, left: Event, right: Event, ctx: Any) -> Iterable[Any]:
        yield "interval join", left[0], (left[2], right[2], ctx.timestamp())


RULES_STATE = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Judge(KeyedBroadcastProcessFunction):
    """Tells at the end of time how much of each key there was, and which rules had come by then."""

    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.INT()))

    def process_element(self, value: Event, ctx: Any) -> None:
        self.seen.update((self.seen.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(1 << 50)

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(RULES_STATE).put(value[0], value[1])

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        rules = sorted(ctx.get_broadcast_state(RULES_STATE).items())
        yield "broadcast", ctx.get_current_key(), (self.seen.value(), rules)


def joins(env: StreamExecutionEnvironment, events: DataStream) -> list[DataStream]:
    left = periodic(env.from_collection(EVENTS).uid("left source"), "left time")
    right = periodic(env.from_collection(OTHER_EVENTS).uid("right source"), "right time")
    between = left.key_by(key_of).interval_join(right.key_by(key_of))
    together = left.join(right).where(key_of).equal_to(key_of)
    steps: list[Any] = [step for rule in RULES for step in (rule, watermark(rule.timestamp), pause())]
    rules = scripted(env, *steps, *[pause()] * QUIET_EPOCHS).uid("rules")
    return [
        between.between(Time.milliseconds(-20), Time.milliseconds(10)).process(Pair()).uid("interval join"),
        together.window(TumblingEventTimeWindows.of(Time.milliseconds(60)))
        .apply(lambda a, b: ("window join", a[0], (a[2], b[2]))).uid("window join"),
        events.key_by(key_of).connect(rules.broadcast(RULES_STATE)).process(Judge()).uid("judge"),
    ]  # fmt: skip


# --- sources and operator state ---
class Positioned(SourceFunction, CheckpointedFunction):
    """Counts, with its position in operator list state."""

    def __init__(self, end: int, pace: float = 0.001) -> None:
        self.end = end
        self.pace = pace
        self.next = 0
        self.running = True

    def initialize_state(self, context: Any) -> None:
        self.position = context.get_operator_state_store().get_list_state(ListStateDescriptor("position", Types.INT()))
        self.next = next(iter(self.position.get()), 0)

    def snapshot_state(self, context: Any) -> None:
        self.position.update([self.next])

    def run(self, ctx: Any) -> None:
        while self.running and self.next < self.end:
            with ctx.get_checkpoint_lock():
                ctx.collect(("source function", str(self.next % 3), self.next))
                self.next += 1
            time.sleep(self.pace)

    def cancel(self) -> None:
        self.running = False


class Partitions(ParallelSourceFunction, CheckpointedFunction):
    """Partitions with an offset each, in union list state: every subtask takes those that are its own."""

    def __init__(self) -> None:
        self.offsets: dict[str, int] = {}
        self.running = True

    def initialize_state(self, context: Any) -> None:
        descriptor = ListStateDescriptor("offsets", Types.TUPLE([Types.STRING(), Types.INT()]))
        self.state = context.get_operator_state_store().get_union_list_state(descriptor)
        self.restored = dict(self.state.get())

    def open(self, runtime_context: Any) -> None:
        width, mine = runtime_context.get_number_of_parallel_subtasks(), runtime_context.get_index_of_this_subtask()
        self.offsets = {name: self.restored.get(name, 0) for name in sorted(PARTITIONS)[mine::width]}

    def snapshot_state(self, context: Any) -> None:
        self.state.update(sorted(self.offsets.items()))

    def run(self, ctx: Any) -> None:
        for name in self.offsets:
            while self.running and self.offsets[name] < len(PARTITIONS[name]):
                with ctx.get_checkpoint_lock():
                    ctx.collect(("partitions", name, PARTITIONS[name][self.offsets[name]]))
                    self.offsets[name] += 1
                time.sleep(0.001)

    def cancel(self) -> None:
        self.running = False


@dataclass
class InThrees(FlatMapFunction, CheckpointedFunction):
    """Hands elements on three at a time; those that wait are operator list state."""

    store: str
    branch: str = "in threes"

    def initialize_state(self, context: Any) -> None:
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("waiting"))
        self.waiting = list(self.state.get())

    def snapshot_state(self, context: Any) -> None:
        self.state.update(self.waiting)

    def flat_map(self, value: Any) -> list[Any]:
        self.waiting.append(value)
        if len(self.waiting) < 3:
            return []
        ready, self.waiting = self.waiting, []
        return [(self.branch, "-", value) for value in ready]

    def close(self) -> None:
        STORES[self.store].ledger += [(self.branch, value) for value in self.waiting]


@dataclass
class Tally(MapFunction, ListCheckpointed[int]):
    """Counts what passes."""

    store: str
    passed: int = 0

    def map(self, value: Any) -> Any:
        self.passed += 1
        return value

    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> list[int]:
        return [self.passed]

    def restore_state(self, state: list[int]) -> None:
        self.passed = sum(state)

    def close(self) -> None:
        STORES[self.store].ledger.append(("tally", self.passed))


class Nth(KeyedProcessFunction):
    """Numbers the elements of a key."""

    def __init__(self, branch: str) -> None:
        self.branch = branch

    def open(self, runtime_context: Any) -> None:
        self.number = runtime_context.get_state(ValueStateDescriptor("number", Types.INT()))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.number.update((self.number.value() or 0) + 1)
        yield self.branch, ctx.get_current_key(), self.number.value()


def sources(env: StreamExecutionEnvironment, store: str, folder: Path) -> list[DataStream]:
    sequence = env.from_sequence(1, 150).uid("sequence").map(Tally(store)).uid("tally")
    lines = env.read_text_file(str(folder)).uid("lines")
    generated = env.generate(lambda n: n, rate=200.0, count=25).uid("generator")
    fed = env._source("Fed Source", FedSource(lambda: IteratorEnumerator(iter(range(700)))), None).uid("fed")
    return [
        sequence.key_by(lambda n: n % 9).process(Nth("sequence")).uid("sequence numbers"),
        sequence.flat_map(InThrees(store)).uid("in threes"),
        env.add_source(Positioned(40)).uid("positioned"),
        env.add_source(Partitions()).uid("partitions"),
        labelled(lines, "lines"),
        labelled(generated, "generator"),
        labelled(fed, "fed"),
    ]


# --- all of it ---
IN_ORDER = {
    "states", "event timers", "rolling", "with state", "tumbling", "sliding", "session", "early session", "count",
    "sliding count", "global", "evicted", "delta", "window all", "broadcast", "sequence", "source function",
}  # fmt: skip
"""Branches whose results of one key come in one order."""
IN_BAGS = {
    "processing timers", "by the clock", "interval join", "window join", "in threes", "partitions", "lines",
    "generator", "fed", "batched", "tally",
}  # fmt: skip


def write_lines(folder: Path) -> Path:
    """A folder of small files for the text source."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(7):
        (folder / f"{number}.txt").write_text("".join(f"{number}.{line}\n" for line in range(5)))
    return folder


def build_everything(store: str, folder: Path) -> Callable[[StreamExecutionEnvironment], None]:
    """The whole program, writing into a store. A new run starts a new ledger."""

    def build(env: StreamExecutionEnvironment) -> None:
        STORES[store].ledger.clear()
        events = punctuated(env.from_collection(EVENTS).uid("events"), "event time")
        families = {
            "states": keyed_states(env, events),
            "windows": windows(env, events),
            "joins": joins(env, events),
            "sources": sources(env, store, folder),
        }
        for family, (first, *rest) in families.items():
            together = first.union(*rest).key_by(lambda r: (r[0], r[1]))
            together.sink_to(StoreSink(store)).uid(f"sink of {family}")
        numbers = env.from_sequence(1, 50).uid("numbers")
        numbers.sink_to(StoreSink(store, "batched", batch=4)).uid("batching sink")

    return build


def seen(store: str) -> dict[str, Any]:
    """What came of the program, by branch: lists by key, or sorted where order means nothing."""
    in_order: dict[str, dict[Any, list[Any]]] = {branch: {} for branch in IN_ORDER}
    in_bags: dict[str, list[Any]] = {branch: [] for branch in IN_BAGS}
    for branch, key, value in STORES[store].records("out"):
        if branch in in_order:
            in_order[branch].setdefault(key, []).append(value)
        else:
            in_bags[branch].append((key, value))
    in_bags["batched"] = STORES[store].records("batched")
    for branch, value in STORES[store].ledger:
        in_bags[branch].append(("-", value))
    in_bags["tally"] = [sum(value for _, value in in_bags["tally"])]
    return {**in_order, **{branch: sorted(values) for branch, values in in_bags.items()}}
