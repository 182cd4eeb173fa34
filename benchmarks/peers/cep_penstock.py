"""Patterns on Penstock, found by `penstock.cep` or by a process function written by hand: parallelism 2, local Spark.

Called with `pattern records keys how`, where how is `pattern` or `hand`. Event n has key n % keys, time n milliseconds,
and a kind: the kinds of a key's events are a, b, b, c in turn.
"""

import json
import sys
import time

from penstock.cep import CEP, Pattern
from penstock.common import Duration, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import KeyedProcessFunction
from penstock.datastream.state import ValueStateDescriptor

PARALLELISM = 2
ROUND = 4
A, B, C = range(3)
KINDS = (A, B, B, C)
WITHIN_ROUNDS = 3
WARM_UP_RECORDS = 4000
MATCHES_A_ROUND = {"two": 1, "three": 1, "loop": 2}


def event_of(records, keys):
    """Both subtasks of the source, which read one half each, run through the same time."""
    half = records // 2

    def event(number):
        n = 2 * number if number < half else 2 * (number - half) + 1
        return n % keys, KINDS[n // keys % ROUND], n

    return event


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2]


def pattern(name, keys):
    start = Pattern.begin("a").where(lambda event: event[1] == A).followed_by("b").where(lambda event: event[1] == B)
    if name == "two":
        return start
    if name == "loop":
        return start.one_or_more().until(lambda event: event[1] == C)
    limit = Duration.of_millis(WITHIN_ROUNDS * ROUND * keys)
    return start.followed_by("c").where(lambda event: event[1] == C).within(limit)


class ByHand(KeyedProcessFunction):
    """The same matches, for events that come in order: nothing is sorted, and nothing times out by itself."""

    def __init__(self, name, limit):
        self.name = name
        self.limit = limit

    def open(self, runtime_context):
        self.taken = runtime_context.get_state(ValueStateDescriptor("taken"))

    def process_element(self, value, ctx):
        kind = value[1]
        if kind == A:
            self.taken.update([value])
            return
        taken = self.taken.value()
        if taken is None:
            return
        if self.name == "two":
            if kind == B:
                self.taken.clear()
                yield value[0]
        elif self.name == "loop":
            if kind == B:
                self.taken.update([*taken, value])
                yield value[0]
            else:
                self.taken.clear()
        elif kind == B and len(taken) == 1:
            self.taken.update([*taken, value])
        elif kind == C and len(taken) == 2:
            self.taken.clear()
            if value[2] - taken[0][2] < self.limit:
                yield value[0]


def run(name, records, keys, how):
    env = StreamExecutionEnvironment.create_local_environment(PARALLELISM)
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    events = env.from_sequence(0, records - 1).map(event_of(records, keys)).assign_timestamps_and_watermarks(times)
    keyed = events.key_by(lambda event: event[0])
    if how == "hand":
        found = keyed.process(ByHand(name, WITHIN_ROUNDS * ROUND * keys))
    else:
        found = CEP.pattern(keyed, pattern(name, keys)).select(lambda match: match["a"][0][0])
    start = time.perf_counter()
    with found.filter(lambda key: key == 0).execute_and_collect() as results:
        count = len(list(results))
    return time.perf_counter() - start, count


def main():
    name, records, keys, how = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    run(name, WARM_UP_RECORDS, 100, how)
    seconds, matches = run(name, records, keys, how)
    expected = records // keys // ROUND * MATCHES_A_ROUND[name]
    if matches != expected:
        sys.exit(f"{matches} matches of key 0 instead of {expected}")
    print(json.dumps({"seconds": seconds, "records": records}))


if __name__ == "__main__":
    main()
