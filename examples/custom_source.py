"""A source written in Python that attaches timestamps and emits watermarks, and a timer that closes each minute."""

from collections.abc import Iterator
from typing import Any

from penstock.common import Types, Watermark
from penstock.datastream import (
    KeyedProcessFunction,
    RuntimeContext,
    SourceContext,
    SourceFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import ValueStateDescriptor

MINUTE = 60_000
CLICKS = [("home", 5_000), ("home", 59_000), ("shop", 61_000), ("home", 62_000), ("shop", 119_000), ("shop", 125_000)]


class Clicks(SourceFunction):
    """Replays recorded clicks. `run` lives in a thread of its slot; returning from it ends the stream."""

    def __init__(self) -> None:
        self.running = True

    def run(self, ctx: SourceContext) -> None:
        for page, moment in CLICKS:
            if not self.running:
                return
            ctx.emit_watermark(Watermark(moment - 1))  # the clicks are in order: nothing earlier will follow
            ctx.collect_with_timestamp(page, moment)

    def cancel(self) -> None:
        self.running = False


class PerMinute(KeyedProcessFunction):
    """Counts a page's clicks and emits the count when event time reaches the end of the minute."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT(), default_value=0))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> None:
        self.count.update(self.count.value() + 1)
        end_of_minute = ctx.timestamp() - ctx.timestamp() % MINUTE + MINUTE - 1
        ctx.timer_service().register_event_time_timer(end_of_minute)  # the same timer again changes nothing

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield timestamp // MINUTE, ctx.get_current_key(), self.count.value()
        self.count.clear()


def main() -> None:
    environment = StreamExecutionEnvironment.create_local_environment(parallelism=2)
    clicks = environment.add_source(Clicks(), "Clicks", Types.STRING())
    counts = clicks.key_by(lambda page: page).process(PerMinute())
    with counts.execute_and_collect("clicks per minute") as results:
        for minute, page, count in sorted(results):
            print(f"minute {minute}: {page} {count}")


if __name__ == "__main__":
    main()
