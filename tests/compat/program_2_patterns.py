"""The patterns whose savepoints are in `savepoints/before-0.2-patterns-…`. They must not change."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from penstock.cep import (
    CEP,
    AfterMatchSkipStrategy,
    EventComparator,
    IterativeCondition,
    Pattern,
    PatternProcessFunction,
    TimedOutPartialMatchHandler,
    WithinType,
)
from penstock.common import Duration, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor
from penstock.testing import scripted

TIMEOUTS = OutputTag("timeouts")


class Event(NamedTuple):
    """An event of a class that must stay importable."""

    key: str
    kind: str
    number: int
    time: int


class FromEvent(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value.time


class ByNumber(EventComparator):
    def compare(self, first, second):
        return second.number - first.number


class AboveAll(IterativeCondition):
    """The number of the event modulo 7 exceeds those that the element holds so far."""

    def filter(self, value, ctx):
        return all(value.number % 7 > event.number % 7 for event in ctx.get_events_for_pattern("ups"))


class Found(PatternProcessFunction, TimedOutPartialMatchHandler):
    def __init__(self, name):
        self.name = name

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_match(self, match, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield (self.name, self.count.value(), *numbers(match))

    def process_timed_out_match(self, match, ctx):
        ctx.output(TIMEOUTS, (f"{self.name} timeout", *numbers(match)))


class FoundOnly(PatternProcessFunction):
    def __init__(self, name):
        self.name = name

    def process_match(self, match, ctx):
        yield (self.name, *numbers(match))


def numbers(match: dict[str, list[Event]]) -> list[Any]:
    return [(name, *(event.number for event in taken)) for name, taken in match.items()]


def events() -> list[Event]:
    """Events in order of time, some at the same time."""
    chance, now, made = random.Random(28), 1000, []
    for number in range(60):
        now += chance.choice([0, 4, 10, 20])
        made.append(Event(chance.choice("xy"), chance.choice("aabc"), number, now))
    return made


def is_kind(kind: str) -> Any:
    return lambda event: event.kind == kind


def patterns() -> dict[str, Pattern]:
    millis, skip = Duration.of_millis, AfterMatchSkipStrategy
    start = Pattern.begin("a").where(is_kind("a"))
    ups = Pattern.begin("ups", skip.skip_past_last_event()).where(is_kind("a")).where(AboveAll()).one_or_more()
    group = Pattern.begin(Pattern.begin("g").where(is_kind("a")).followed_by("h").where(is_kind("b"))).times(2)
    return {
        "strict": Pattern.begin("a").where(is_kind("a")).next("b").where(is_kind("b")),
        "within": start.followed_by("b").where(is_kind("b")).followed_by("c").where(is_kind("c")).within(millis(150)),
        "iterative": ups.followed_by("end").where(is_kind("c")).within(millis(300)),
        "any": Pattern.begin("a").where(is_kind("b")).followed_by_any("c").where(is_kind("c")).within(millis(90)),
        "not": Pattern.begin("a").where(is_kind("b")).not_followed_by("c").where(is_kind("c")).within(millis(60)),
        "between": Pattern.begin("b", skip.skip_to_next()).where(is_kind("b")).times_or_more(2).greedy().consecutive()
        .followed_by("a").where(is_kind("a")).within(millis(50), WithinType.PREVIOUS_AND_CURRENT),
        "group": group.within(millis(400)),
        "text": Pattern.parse("a+(f1 = 'a') !-> n(f1 = 'c') -> b(f1 = 'b' and f2 > first(a.f2)) within 120 ms"),
    }  # fmt: skip


def build(env: StreamExecutionEnvironment) -> DataStream:
    """The matches and timeouts of all patterns in one stream."""
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(FromEvent())
    stream = scripted(env, *events()).uid("events").assign_timestamps_and_watermarks(times).uid("times")
    stream = stream.set_parallelism(1)
    keyed = stream.key_by(lambda event: event.key)
    found = []
    for name, pattern in patterns().items():
        comparator = ByNumber() if name in ("within", "group") else None
        made = CEP.pattern(keyed, pattern, comparator).process(Found(name)).uid(f"pattern {name}")
        found += [made, made.get_side_output(TIMEOUTS)]
    alone = Pattern.begin("a").where(is_kind("a")).followed_by("c").where(is_kind("c")).within(Duration.of_millis(80))
    found.append(CEP.pattern(stream, alone).process(FoundOnly("alone")).uid("pattern without keys"))
    updates = scripted(env, "a{2}(f1 = 'a') -> b(f1 = 'b') within 150 ms").uid("updates")
    first = Pattern.parse("a(f1 = 'a') -> b(f1 = 'b') within 150 ms")
    found.append(CEP.dynamic_pattern(keyed, first, updates).process(FoundOnly("replaced")).uid("dynamic pattern"))
    first, *others = found
    return first.union(*others)
