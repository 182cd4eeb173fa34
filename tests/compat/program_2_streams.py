"""The program whose savepoints are in `savepoints/before-0.2-streams-…`. It must not change."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass
from typing import Any

import fsspec

from penstock.common import Duration, Encoder, Row, Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner, Watermark, WatermarkGenerator
from penstock.datastream import (
    AggregateFunction,
    AsyncDataStream,
    AsyncFunction,
    BroadcastProcessFunction,
    CheckpointedFunction,
    CoGroupFunction,
    DataStream,
    JoinFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessJoinFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    FileSource,
    RollingPolicy,
    StreamFormat,
)
from penstock.datastream.connectors.two_phase_commit import TwoPhaseCommitSinkFunction
from penstock.datastream.connectors.write_ahead import CheckpointCommitter, GenericWriteAheadSink
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
    TimeEvictor,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.testing import scripted

FILES = "memory://before-0.2"
"""The file system of the process, so that the paths in the savepoints are the same everywhere."""
EVENTS = [(f"k{(n * n + n // 3) % 4}", n, 1000 + 40 * n) for n in range(60)]
DISORDERED = [(key, n, time - 900 * (n % 7 == 6)) for key, n, time in EVENTS]
FIRST = 8
"""The number of events that surely come before the savepoint."""
RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())
LATE = OutputTag("late")
ALARM = 50_000_000
"""A processing time between the run that writes the savepoint and those that start from it."""
OUTSIDE: dict[str, dict[str, Any]] = {"prepared": {}, "committed": {}, "sent": {}}
"""The outside systems of the two-phase-commit sink and of the write-ahead sink."""
ANSWERING = [True]
"""Whether asynchronous requests are answered."""


@dataclass(frozen=True)
class Seen:
    """A value of a class that must stay importable."""

    times: int
    largest: int = 0


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2]


class AfterEveryRecord(WatermarkGenerator):
    """Event time follows each record at once, so that early firings do not depend on where epochs end."""

    def __init__(self):
        self.latest = 0

    def on_event(self, event, event_timestamp, output):
        self.latest = max(self.latest, event_timestamp)
        output.emit_watermark(Watermark(self.latest - 1))

    def on_periodic_emit(self, output):
        pass


class Sum(AggregateFunction):
    def create_accumulator(self):
        return (0, 0)

    def add(self, value, accumulator):
        return (accumulator[0] + (value if isinstance(value, int) else value[1]), accumulator[1] + 1)

    def get_result(self, accumulator):
        return accumulator

    def merge(self, first, second):
        return (first[0] + second[0], first[1] + second[1])


# --- keyed state and timers ---
class States(KeyedProcessFunction):
    """Every kind of keyed state, with a time to live or without."""

    def __init__(self, name: str, ttl: Duration | None) -> None:
        self.name, self.ttl = name, ttl

    def open(self, runtime_context):
        descriptors = [
            ValueStateDescriptor("value", Types.INT()),
            ValueStateDescriptor("seen"),
            ValueStateDescriptor("row", Types.ROW_NAMED(["n", "text"], [Types.INT(), Types.STRING()])),
            ListStateDescriptor("list", Types.INT()),
            MapStateDescriptor("map", Types.INT(), Types.STRING()),
            ReducingStateDescriptor("reduced", max, Types.INT()),
            AggregatingStateDescriptor("aggregated", Sum()),
        ]
        if self.ttl is not None:
            for descriptor in descriptors:
                descriptor.enable_time_to_live(StateTtlConfig.new_builder(self.ttl).build())
        value, seen, row, listed, mapped, reduced, aggregated = descriptors
        self.value, self.seen = runtime_context.get_state(value), runtime_context.get_state(seen)
        self.row, self.list = runtime_context.get_state(row), runtime_context.get_list_state(listed)
        self.map, self.reduced = runtime_context.get_map_state(mapped), runtime_context.get_reducing_state(reduced)
        self.aggregated = runtime_context.get_aggregating_state(aggregated)

    def process_element(self, value, ctx):
        number = value[1]
        self.value.update((self.value.value() or 0) + 1)
        seen = self.seen.value() or Seen(0)
        self.seen.update(Seen(seen.times + 1, max(seen.largest, number)))
        row = self.row.value() or Row(n=0, text="")
        self.row.update(Row(n=row["n"] + number, text=f"{row['text'][-2:]}{number % 10}"))
        self.list.add(number)
        self.list.update(list(self.list.get())[-4:])
        self.map.put(number % 3, f"n{number}")
        if number % 5 == 0:
            self.map.remove((number + 1) % 3)
        self.reduced.add(number)
        self.aggregated.add(number)
        known = (self.value.value(), self.seen.value(), tuple(self.row.value()), tuple(self.list.get()))
        yield (self.name, *known, tuple(sorted(self.map.items())), self.reduced.get(), self.aggregated.get())


class Timers(KeyedProcessFunction):
    """Event-time timers, some of which are deleted, and one processing-time timer of each key."""

    def open(self, runtime_context):
        self.rung = runtime_context.get_state(ValueStateDescriptor("rung", Types.INT()))

    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        timers.register_event_time_timer(value[2] + 450)
        if value[1] % 3 == 0:
            timers.delete_event_time_timer(value[2] + 290)
        timers.register_event_time_timer(10**9)
        if value[1] < FIRST:
            timers.register_processing_time_timer(ALARM)

    def on_timer(self, timestamp, ctx):
        if timestamp == ALARM:
            yield ("alarm", ctx.get_current_key())
            return
        self.rung.update((self.rung.value() or 0) + 1)
        yield ("timer", ctx.get_current_key(), timestamp, self.rung.value())


# --- windows ---
class Windowed(ProcessWindowFunction):
    """Counts the firings of the key in global state, and those of the window in its own."""

    def __init__(self, name: str, merging: bool = False) -> None:
        self.name, self.merging = name, merging

    def process(self, key, context, elements):
        fired = ValueStateDescriptor("fired", Types.INT())
        states = [context.global_state().get_state(fired)]
        if not self.merging:
            states.append(context.window_state().get_state(fired))
        for state in states:
            state.update((state.value() or 0) + 1)
        numbers = sorted(e[1] if len(e) == 3 else e for e in elements)
        yield (self.name, key, context.window().max_timestamp(), numbers, *(state.value() for state in states))

    def clear(self, context):
        if not self.merging:
            context.window_state().get_state(ValueStateDescriptor("fired", Types.INT())).clear()


def windows(keyed: Any, disordered: Any) -> list[DataStream]:
    hundred, three = Time.milliseconds(100), Time.milliseconds(300)
    early = ContinuousEventTimeTrigger.of(Time.milliseconds(70))
    tumbling, everything = TumblingEventTimeWindows.of(three), GlobalWindows.create()
    late = (
        disordered.window(tumbling).allowed_lateness(700).side_output_late_data(LATE)
        .process(Windowed("allowed late")).uid("allowed late")
    )  # fmt: skip
    made = {
        "tumbling": keyed.window(tumbling).process(Windowed("tumbling")),
        "early": keyed.window(tumbling).trigger(early).process(Windowed("early")),
        "sliding": keyed.window(SlidingEventTimeWindows.of(three, hundred)).aggregate(Sum(), Windowed("sliding")),
        "sessions": keyed.window(EventTimeSessionWindows.with_gap(hundred)).process(Windowed("sessions", True)),
        "summed sessions": keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(170))).aggregate(
            Sum(), Windowed("summed sessions", True)
        ),
        "reduced": keyed.window(tumbling).reduce(lambda a, b: (a[0], a[1] + b[1], b[2]), Windowed("reduced")),
        "evicted": keyed.window(tumbling).evictor(CountEvictor.of(2)).process(Windowed("evicted")),
        "evicted by time": keyed.window(SlidingEventTimeWindows.of(three, hundred))
        .evictor(TimeEvictor.of(hundred)).process(Windowed("evicted by time")),
        "evicted sessions": keyed.window(EventTimeSessionWindows.with_gap(hundred))
        .evictor(CountEvictor.of(3)).process(Windowed("evicted sessions", True)),
        "global": keyed.window(everything).trigger(PurgingTrigger.of(CountTrigger.of(4))).process(Windowed("global")),
        "delta": keyed.window(everything).trigger(DeltaTrigger.of(200, lambda a, b: b[2] - a[2]))
        .evictor(CountEvictor.of(5)).process(Windowed("delta")),
        "by the clock": keyed.window(TumblingProcessingTimeWindows.of(Time.milliseconds(20_000_000)))
        .process(ByTheClock()),
    }  # fmt: skip
    counted = keyed.count_window(5, 2).reduce(lambda a, b: (a[0], a[1] + b[1], b[2])).uid("count windows")
    return [
        late,
        late.get_side_output(LATE).map(lambda event: ("late", *event)).uid("late"),
        counted.map(lambda e: ("count windows", *e)).uid("counted"),
        *(stream.uid(name) for name, stream in made.items()),
    ]


class ByTheClock(ProcessWindowFunction):
    """Shows how many there were in the windows before the savepoint."""

    def process(self, key, context, elements):
        yield ("by the clock", key, context.window().max_timestamp(), sorted(e[1] for e in elements))


# --- two streams ---
class Pairs(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield ("interval join", left[1], right[1], ctx.timestamp())


class Joined(JoinFunction):
    def join(self, first, second):
        return ("window join", first[1], second[1])


class Together(CoGroupFunction):
    def co_group(self, first, second):
        return [("co-group", sorted(e[1] for e in first), sorted(e[1] for e in second))]


class Latest(KeyedCoProcessFunction):
    """Keeps what either input has brought for a key, and tells of it at the end of time."""

    def open(self, runtime_context):
        self.sides = runtime_context.get_map_state(MapStateDescriptor("sides", Types.STRING(), Types.INT()))

    def process_element1(self, value, ctx):
        self.sides.put("one", (self.sides.get("one") or 0) + value[1])
        ctx.timer_service().register_event_time_timer(10**9)

    def process_element2(self, value, ctx):
        self.sides.put("two", (self.sides.get("two") or 0) + 1)

    def on_timer(self, timestamp, ctx):
        yield ("connected", ctx.get_current_key(), sorted(self.sides.items()))


class Ruled(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(2**62)

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(*value)

    def on_timer(self, timestamp, ctx):
        yield ("ruled", ctx.get_current_key(), sorted(ctx.get_broadcast_state(RULES).items()))


class RuledAlone(BroadcastProcessFunction):
    """Broadcast state without keys: an event that comes late knows all rules."""

    def process_element(self, value, ctx):
        if value[1] == EVENTS[-1][1]:
            yield ("ruled alone", sorted(ctx.get_broadcast_state(RULES).items()))

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(*value)


def pairs(environment: StreamExecutionEnvironment, events: DataStream, keyed: Any) -> list[DataStream]:
    three = Time.milliseconds(300)
    odd = events.filter(lambda event: event[1] % 2 == 1).uid("odd").set_parallelism(1)
    even = events.filter(lambda event: event[1] % 2 == 0).uid("even").set_parallelism(1)
    odds, evens = (stream.key_by(lambda event: event[0]) for stream in (odd, even))
    rules = scripted(environment, ("a", 1), ("b", 2), ("a", 4)).uid("rules").broadcast(RULES)
    joined = odd.join(even).where(lambda event: event[0]).equal_to(lambda event: event[0])
    grouped = odd.co_group(even).where(lambda event: event[0]).equal_to(lambda event: event[0])
    return [
        odds.interval_join(evens).between(Time.milliseconds(-300), three).process(Pairs()).uid("interval join"),
        joined.window(TumblingEventTimeWindows.of(three)).apply(Joined()).uid("window join"),
        grouped.window(SlidingEventTimeWindows.of(Time.milliseconds(600), three)).apply(Together()).uid("co-group"),
        odds.connect(evens).process(Latest()).uid("connected"),
        keyed.connect(rules).process(Ruled()).uid("ruled"),
        events.connect(rules).process(RuledAlone()).uid("ruled alone").set_parallelism(1),
    ]


# --- operator state and requests ---
class Numbered(MapFunction, CheckpointedFunction):
    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self.numbers = store.get_list_state(ListStateDescriptor("numbers", Types.INT()))
        self.union = store.get_union_list_state(ListStateDescriptor("union"))
        self.count, self.seen = sum(self.numbers.get()), list(self.union.get())

    def map(self, value):
        self.count += 1
        return ("numbered", self.count, value[1], self.seen)

    def snapshot_state(self, context):
        self.numbers.update([self.count // 2, self.count - self.count // 2])
        self.union.update([Seen(self.count)])


class Asked(AsyncFunction):
    """Answers nothing while ANSWERING says no."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def async_invoke(self, value):
        while not ANSWERING[0]:
            await asyncio.sleep(0.001)
        return [(self.name, value[1])]


# --- files and sinks ---
class Transactions(TwoPhaseCommitSinkFunction):
    """Writes into OUTSIDE. A transaction is its name."""

    def open(self, runtime_context):
        self.prefix = f"{runtime_context.get_job_id()}-{runtime_context.get_index_of_this_subtask()}"
        self.number, self.records = 0, {}

    def begin_transaction(self):
        self.number += 1
        return f"{self.prefix}-{self.number}"

    def invoke(self, transaction, value, context):
        self.records.setdefault(transaction, []).append(value)

    def pre_commit(self, transaction):
        OUTSIDE["prepared"][transaction] = self.records.pop(transaction, [])

    def commit(self, transaction):
        OUTSIDE["committed"][transaction] = OUTSIDE["prepared"].pop(transaction)

    def recover_and_commit(self, transaction):
        if transaction in OUTSIDE["prepared"]:
            self.commit(transaction)

    def abort(self, transaction):
        self.records.pop(transaction, None)


class Remembering(CheckpointCommitter):
    """Remembers nothing: sections are sent again."""

    def create_resource(self):
        pass

    def open(self):
        pass

    def close(self):
        pass

    def commit_checkpoint(self, subtask_idx, checkpoint_id):
        pass

    def is_checkpoint_committed(self, subtask_idx, checkpoint_id):
        return False


class Sent(GenericWriteAheadSink):
    def send_values(self, values, checkpoint_id, timestamp):
        OUTSIDE["sent"].update(dict.fromkeys(values, checkpoint_id))
        return True


def sinks(environment: StreamExecutionEnvironment, events: DataStream) -> None:
    plain = events.map(lambda event: event[1]).uid("plain").set_parallelism(1)
    base, text = BucketAssigner.base_path_bucket_assigner(), Encoder.simple_string_encoder()
    rows = FileSink.for_row_format(f"{FILES}/rows", text).with_bucket_assigner(base)
    rows = rows.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=25))
    plain.sink_to(rows.build()).uid("rows").set_parallelism(1)
    compacted = FileSink.for_row_format(f"{FILES}/compacted", text).with_bucket_assigner(base)
    compacted = compacted.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).enable_compact(
        FileCompactStrategy.builder().enable_compaction_on_checkpoint(50).build(),
        FileCompactor.concat_file_compactor(),
    )
    plain.sink_to(compacted.build()).uid("compacted")
    plain.add_sink(Transactions()).uid("transactions")
    plain.sink_to(Sent(Remembering())).uid("write ahead")


def reset() -> None:
    """Forget what earlier runs left outside, and put the files there that the program reads."""
    files = fsspec.filesystem("memory")
    if files.exists("/before-0.2"):
        files.rm("/before-0.2", recursive=True)
    for name in "abc":
        files.pipe(f"/before-0.2/input/{name}.txt", "".join(f"{name}{n}\n" for n in range(60)).encode())
    for records in OUTSIDE.values():
        records.clear()


def outside() -> dict[str, Any]:
    """Everything outside the job, as if what was committed behind the savepoint had not arrived."""
    files = fsspec.filesystem("memory")
    contents = {path: files.cat(path) for path in files.find("/before-0.2") if "/input/" not in path}
    return {
        "files": {path: base64.b64encode(content).decode() for path, content in sorted(contents.items())},
        "prepared": {**OUTSIDE["prepared"], **OUTSIDE["committed"]},
    }


def put_back(saved: dict[str, Any]) -> None:
    """Make the outside what it was at a savepoint."""
    files = fsspec.filesystem("memory")
    for path, content in saved["files"].items():
        files.pipe(path, base64.b64decode(content))
    OUTSIDE["prepared"].update(saved["prepared"])


def results() -> list[tuple[Any, ...]]:
    """What the sinks have made visible."""
    files = fsspec.filesystem("memory")
    found = [("committed", n) for records in OUTSIDE["committed"].values() for n in records]
    found += [("sent", number) for number in OUTSIDE["sent"]]
    for folder in ("rows", "compacted"):
        for path in files.find(f"/before-0.2/{folder}"):
            if not path.rpartition("/")[2].startswith((".", "_")):
                found += [(folder, int(line)) for line in files.cat(path).split()]
    return found


def build(environment: StreamExecutionEnvironment) -> DataStream:
    """All branches in one stream. Branches whose results depend on the parallelism have one subtask."""
    times = WatermarkStrategy.for_generator(lambda context: AfterEveryRecord()).with_timestamp_assigner(EventTime())
    events = scripted(environment, *EVENTS).uid("events").assign_timestamps_and_watermarks(times)
    events = events.uid("times").set_parallelism(1)
    keyed = events.key_by(lambda event: event[0])
    disordered = scripted(environment, *DISORDERED).uid("disordered").assign_timestamps_and_watermarks(times)
    disordered = disordered.uid("disordered times").set_parallelism(1).key_by(lambda event: event[0])
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), f"{FILES}/input").build()
    lines = environment.from_source(source, WatermarkStrategy.no_watermarks(), "lines").uid("lines")
    sinks(environment, events)
    day = Time.days(1)
    streams = [
        keyed.process(States("states", None)).uid("states"),
        keyed.process(States("lasting", Duration.of_days(10_000))).uid("lasting"),
        keyed.process(States("expired", Duration.of_millis(ALARM))).uid("expired"),
        keyed.process(Timers()).uid("timers"),
        *windows(keyed, disordered),
        *pairs(environment, events, keyed),
        events.map(Numbered()).uid("numbered").set_parallelism(1),
        AsyncDataStream.ordered_wait(events, Asked("ordered"), day, 1000).uid("ordered requests"),
        AsyncDataStream.unordered_wait(events, Asked("unordered"), day, 1000).uid("unordered requests"),
        keyed.map_with_state(lambda e, s: (("with state", e[0], (s or 0) + e[1]), (s or 0) + e[1])).uid("with state"),
        keyed.reduce(lambda a, b: (a[0], a[1] + b[1], b[2])).uid("rolling").map(lambda e: ("rolling", *e)).uid("r"),
        keyed.sum(1).uid("sums").map(lambda e: ("sum", e[0], e[1])).uid("s"),
        lines.map(lambda line: ("line", line)).uid("lined"),
        environment.from_sequence(1, 200).uid("sequence").map(lambda n: ("number", n)).uid("named"),
        environment.from_collection(list(range(100))).uid("collection").map(lambda n: ("item", n)).uid("items"),
    ]
    first, *others = streams
    return first.union(*others)
