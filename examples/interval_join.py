"""Finds for every alarm what happened on the same machine in the five seconds before it."""

from collections.abc import Iterator

from penstock.common import Time, WatermarkStrategy
from penstock.datastream import ProcessJoinFunction, StreamExecutionEnvironment

ALARMS = [("press", 10_000, "too hot"), ("drill", 12_000, "stuck"), ("press", 30_000, "too hot")]
EVENTS = [
    ("press", 4_999, "started"),
    ("press", 5_000, "door opened"),
    ("press", 9_000, "pump failed"),
    ("drill", 11_000, "tool changed"),
    ("press", 12_000, "stopped"),
]


class Cause(ProcessJoinFunction):
    def process_element(
        self, left: tuple[str, int, str], right: tuple[str, int, str], ctx: ProcessJoinFunction.Context
    ) -> Iterator[str]:
        before = ctx.left_timestamp() - ctx.right_timestamp()
        yield f"{left[0]} {left[2]}: {right[2]} {before} ms before"


def main() -> None:
    environment = StreamExecutionEnvironment.create_local_environment(parallelism=2)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event: event[1])
    alarms, events = (
        environment.from_collection(data).assign_timestamps_and_watermarks(strategy).key_by(lambda event: event[0])
        for data in (ALARMS, EVENTS)
    )
    causes = alarms.interval_join(events).between(Time.seconds(-5), Time.seconds(0)).process(Cause())
    with causes.execute_and_collect("interval join") as results:
        for line in sorted(results):
            print(line)


if __name__ == "__main__":
    main()
