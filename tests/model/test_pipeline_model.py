"""Random keyed pipelines: the same results whatever the epochs and the parallelism, as brute force says."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Duration, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import FlatMapFunction, KeyedProcessFunction
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor
from penstock.testing import in_process

SETUPS = list(product((1, 3, None), (1, 2, 3)))
RECORDS = st.lists(st.tuples(st.sampled_from("abcde"), st.integers(-20, 20)), max_size=25)


@dataclass(frozen=True)
class Plus:
    amount: int

    def __call__(self, record):
        return record[0], record[1] + self.amount

    def apply(self, stream):
        return stream.map(self)

    def oracle(self, records):
        return [self(record) for record in records]


@dataclass(frozen=True)
class Without:
    divisor: int

    def __call__(self, record):
        return record[1] % self.divisor != 0

    def apply(self, stream):
        return stream.filter(self)

    def oracle(self, records):
        return [record for record in records if self(record)]


@dataclass(frozen=True)
class Copies:
    most: int

    def __call__(self, record):
        for copy in range(record[1] % self.most):
            yield record[0], record[1] * 10 + copy

    def apply(self, stream):
        return stream.flat_map(self)

    def oracle(self, records):
        return [copy for record in records for copy in self(record)]


OPERATIONS = st.lists(
    st.one_of(
        st.builds(Plus, st.integers(-5, 5)), st.builds(Without, st.integers(2, 4)), st.builds(Copies, st.integers(1, 3))
    ),
    max_size=3,
)


def key(record: Any) -> str:
    return record[0]


def results(build: Any, epoch_records: int | None, parallelism: int) -> list[Any]:
    with in_process(epoch_records=epoch_records):
        environment = StreamExecutionEnvironment().set_parallelism(parallelism)
        with build(environment).execute_and_collect() as rows:
            return list(rows)


def by_key(rows: list[Any]) -> dict[str, list[Any]]:
    groups = defaultdict(list)
    for row in rows:
        groups[row[0]].append(row)
    return dict(groups)


def total(left, right):
    return left[0], left[1] + right[1]


class Ranked(KeyedProcessFunction):
    """Numbers the records of a key."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield value[0], self.count.value(), value[1]


class Seen(FlatMapFunction):
    """Each number of a key once."""

    def open(self, runtime_context):
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen"))

    def flat_map(self, value):
        if value[1] not in self.seen:
            self.seen.put(value[1], True)
            yield value


@settings(max_examples=12)
@given(RECORDS, OPERATIONS, st.sampled_from(["reduce", "rank", "distinct", "sum"]))
def test_keyed_results_do_not_depend_on_cuts_and_width(records, operations, last):
    def build(environment):
        stream = environment.from_collection(records).key_by(key)
        for operation in operations:
            stream = operation.apply(stream)
        keyed = stream.key_by(key)
        if last == "reduce":
            return keyed.reduce(total)
        if last == "sum":
            return keyed.sum(1)
        return keyed.process(Ranked()) if last == "rank" else keyed.flat_map(Seen())

    passed = records
    for operation in operations:
        passed = operation.oracle(passed)
    expected = {k: list(_folded(rows, last)) for k, rows in by_key(passed).items()}
    for epoch_records, parallelism in SETUPS:
        assert by_key(results(build, epoch_records, parallelism)) == {k: v for k, v in expected.items() if v}


def _folded(rows: list[Any], last: str) -> Any:
    running, seen = 0, set()
    for rank, (k, number) in enumerate(rows, 1):
        running += number
        if last in ("reduce", "sum"):
            yield k, running
        elif last == "rank":
            yield k, rank, number
        elif number not in seen:
            seen.add(number)
            yield k, number


@settings(max_examples=10)
@given(RECORDS, OPERATIONS, st.sampled_from(["rebalance", "shuffle", "rescale", "broadcast"]))
def test_distributing_records_loses_none(records, operations, distribution):
    def build(environment):
        stream = getattr(environment.from_collection(records), distribution)()
        for operation in operations:
            stream = operation.apply(stream)
        return stream

    passed = records
    for operation in operations:
        passed = operation.oracle(passed)
    for epoch_records, parallelism in SETUPS:
        # Without an operator only the collecting sink reads what was distributed, and has one subtask, as in Flink.
        copies = parallelism if distribution == "broadcast" and operations else 1
        expected = Counter({record: count * copies for record, count in Counter(passed).items()})
        assert Counter(results(build, epoch_records, parallelism)) == expected


class TumblingSum(KeyedProcessFunction):
    """Sums of ten milliseconds each, emitted by a timer at their end; a timer that is the key's last re-registers."""

    def open(self, runtime_context):
        self.sums = runtime_context.get_map_state(MapStateDescriptor("sums"))

    def process_element(self, value, ctx):
        end = (ctx.timestamp() // 10 + 1) * 10
        self.sums.put(end, (self.sums.get(end) or 0) + value[1])
        ctx.timer_service().register_event_time_timer(end)

    def on_timer(self, timestamp, ctx):
        if self.sums.contains(timestamp):
            yield ctx.get_current_key(), timestamp, self.sums.get(timestamp)
            self.sums.remove(timestamp)
            ctx.timer_service().register_event_time_timer(timestamp + 5)
        else:
            yield ctx.get_current_key(), timestamp, "echo"


@settings(max_examples=10)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(0, 60)), max_size=20))
def test_timers_do_not_depend_on_cuts_and_width(events):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(100)).with_timestamp_assigner(
        lambda event: event[2]
    )

    def build(environment):
        stream = environment.from_collection(events).assign_timestamps_and_watermarks(strategy)
        return stream.key_by(key).process(TumblingSum())

    sums: dict[Any, int] = defaultdict(int)
    for k, number, timestamp in events:
        sums[k, (timestamp // 10 + 1) * 10] += number
    expected = defaultdict(list)
    for (k, end), amount in sums.items():
        expected[k] += [(k, end, amount), (k, end + 5, "echo")]
    for epoch_records, parallelism in SETUPS:
        got = by_key(results(build, epoch_records, parallelism))
        assert got == {k: sorted(rows, key=lambda row: row[1]) for k, rows in expected.items()}


@settings(max_examples=8)
@given(RECORDS, RECORDS)
def test_unions_and_two_consumers(left, right):
    def build(environment):
        first, second = environment.from_collection(left), environment.from_collection(right)
        both = first.union(second)
        return both.map(lambda r: ("map", r)).union(both.key_by(key).map(lambda r: ("key", r)))

    expected = Counter((name, record) for name in ("map", "key") for record in left + right)
    for epoch_records, parallelism in SETUPS:
        assert Counter(results(build, epoch_records, parallelism)) == expected
