"""Adds up each shop's sales of the last minute, every twenty seconds."""

from collections.abc import Iterable, Iterator

from penstock.common import Time, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.window import SlidingEventTimeWindows, TimeWindow

SALES = [("oslo", 5, 10), ("rome", 15, 7), ("oslo", 30, 20), ("oslo", 50, 5), ("rome", 70, 1)]  # shop, second, amount


def total(shop: str, window: TimeWindow, sales: Iterable[tuple[str, int, int]]) -> Iterator[tuple[int, str, int]]:
    yield window.end // 1000, shop, sum(amount for _, _, amount in sales)


def main() -> None:
    environment = StreamExecutionEnvironment.create_local_environment(parallelism=2)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda sale: sale[1] * 1000)
    totals = (
        environment.from_collection(SALES)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda sale: sale[0])
        .window(SlidingEventTimeWindows.of(Time.minutes(1), Time.seconds(20)))
        .apply(total)
    )
    with totals.execute_and_collect("sliding totals") as results:
        for second, shop, amount in sorted(results):
            print(f"until {second}s {shop} {amount}")


if __name__ == "__main__":
    main()
