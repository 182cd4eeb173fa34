"""Counts votes in windows of ten seconds: late ones correct the count for a while, later ones go to a side output."""

from collections.abc import Iterable, Iterator
from typing import Any

from penstock.common import Time, Watermark, WatermarkGenerator, WatermarkOutput, WatermarkStrategy
from penstock.datastream import OutputTag, ProcessWindowFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import TimeWindow, TumblingEventTimeWindows

TOO_LATE = OutputTag("too late")
VOTES = [("yes", 1), ("no", 4), ("yes", 11), ("no", 3), ("yes", 16), ("no", 2), ("no", 19)]  # (vote, second)


class BehindEach(WatermarkGenerator):
    """Event time follows every vote at once; the ready-made strategies emit periodically."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class Count(ProcessWindowFunction):
    """Remembers for each window what it said last."""

    SAID = ValueStateDescriptor("said")

    def process(
        self, key: int, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[tuple[str, int]]
    ) -> Iterator[str]:
        yes = sum(vote == "yes" for vote, _ in elements)
        text = f"{yes} of {len(list(elements))}"
        said = context.window_state().get_state(self.SAID)
        before = f", not {said.value()}" if said.value() else ""
        yield f"until second {context.window().end // 1000}: {text}{before}"
        said.update(text)

    def clear(self, context: ProcessWindowFunction.Context[TimeWindow]) -> None:
        context.window_state().get_state(self.SAID).clear()


def main() -> None:
    environment = StreamExecutionEnvironment.create_local_environment(parallelism=1)
    strategy = WatermarkStrategy.for_generator(BehindEach).with_timestamp_assigner(lambda vote: vote[1] * 1000)
    counts = (
        environment.from_collection(VOTES)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(lambda vote: 0)
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .allowed_lateness(Time.seconds(5))
        .side_output_late_data(TOO_LATE)
        .process(Count())
    )
    counts.print("count")
    counts.get_side_output(TOO_LATE).print("too late")
    environment.execute("late data")


if __name__ == "__main__":
    main()
