"""Finds the visits of each user: clicks that are less than half an hour apart."""

from collections.abc import Iterable, Iterator

from penstock.common import Duration, Time, WatermarkStrategy
from penstock.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from penstock.datastream.window import EventTimeSessionWindows, TimeWindow

MINUTE = 60_000
CLICKS = [  # (user, minute, page); the click at minute 25 arrives late and makes one visit out of two
    ("ann", 0, "home"),
    ("bo", 5, "home"),
    ("ann", 10, "search"),
    ("ann", 45, "basket"),
    ("ann", 25, "product"),
    ("bo", 50, "home"),
    ("ann", 120, "home"),
]


class Visit(ProcessWindowFunction):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[tuple[str, int, str]]
    ) -> Iterator[tuple[int, str, str]]:
        clicks = sorted(elements, key=lambda click: click[1])
        yield context.window().start // MINUTE, key, " > ".join(page for _, _, page in clicks)


def main() -> None:
    environment = StreamExecutionEnvironment.create_local_environment(parallelism=2)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(30)).with_timestamp_assigner(
        lambda click: click[1] * MINUTE
    )
    visits = (
        environment.from_collection(CLICKS)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda click: click[0])
        .window(EventTimeSessionWindows.with_gap(Time.minutes(30)))
        .process(Visit())
    )
    with visits.execute_and_collect("sessions") as results:
        for minute, user, pages in sorted(results):
            print(f"minute {minute} {user}: {pages}")


if __name__ == "__main__":
    main()
