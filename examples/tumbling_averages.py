"""Averages each sensor's readings over windows of ten seconds."""

from collections.abc import Iterable, Iterator

from penstock.common import Duration, Time, WatermarkStrategy
from penstock.datastream import AggregateFunction, ProcessWindowFunction, StreamExecutionEnvironment
from penstock.datastream.window import TimeWindow, TumblingEventTimeWindows

READINGS = [  # (sensor, event time in milliseconds, degrees), a little out of order
    ("kitchen", 1_000, 20.0),
    ("cellar", 4_000, 12.0),
    ("kitchen", 12_000, 24.0),
    ("kitchen", 9_000, 22.0),
    ("cellar", 11_000, 13.0),
    ("kitchen", 19_999, 26.0),
    ("kitchen", 20_000, 25.0),
]


class Average(AggregateFunction):
    """Only the sum and the count are kept for a window, not the readings."""

    def create_accumulator(self) -> tuple[float, int]:
        return 0.0, 0

    def add(self, value: tuple[str, int, float], accumulator: tuple[float, int]) -> tuple[float, int]:
        return accumulator[0] + value[2], accumulator[1] + 1

    def get_result(self, accumulator: tuple[float, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[float, int], acc_b: tuple[float, int]) -> tuple[float, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class WithWindow(ProcessWindowFunction):
    """Gets the one result of the aggregation, and adds what it belongs to."""

    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[float]
    ) -> Iterator[tuple[int, int, str, float]]:
        for average in elements:
            yield context.window().start, context.window().end, key, average


def main() -> None:
    environment = StreamExecutionEnvironment.create_local_environment(parallelism=2)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5)).with_timestamp_assigner(
        lambda reading: reading[1]
    )
    averages = (
        environment.from_collection(READINGS)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda reading: reading[0])
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .aggregate(Average(), WithWindow())
    )
    with averages.execute_and_collect("tumbling averages") as results:
        for start, end, sensor, average in sorted(results):
            print(f"{start}-{end} {sensor} {average:.1f}")


if __name__ == "__main__":
    main()
