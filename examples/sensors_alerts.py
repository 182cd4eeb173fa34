"""Watches temperature sensors: an alert when a reading jumps, and one when a sensor falls silent."""

from collections.abc import Iterator
from typing import Any

from penstock.common import Types, Watermark, WatermarkGenerator, WatermarkOutput, WatermarkStrategy
from penstock.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor

JUMP_DEGREES = 10.0
SILENT_MILLIS = 5_000
READINGS = [  # (sensor, event time in milliseconds, degrees)
    ("kitchen", 1_000, 20.0),
    ("cellar", 1_500, 12.0),
    ("kitchen", 2_000, 34.5),
    ("kitchen", 4_000, 33.0),
    ("kitchen", 9_000, 32.0),
    ("cellar", 9_500, 12.5),
]


class BehindEach(WatermarkGenerator):
    """Event time follows every reading at once; the ready-made strategies emit at the end of an epoch."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(Watermark(event_timestamp - 1))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class Watch(KeyedProcessFunction):
    """Remembers each sensor's last reading and the timer that waits for its next one."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.DOUBLE()))
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer", Types.LONG()))

    def process_element(self, value: tuple[str, int, float], ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        sensor, moment, degrees = value
        last = self.last.value()
        if last is not None and abs(degrees - last) >= JUMP_DEGREES:
            yield moment, sensor, f"jumped from {last} to {degrees}"
        self.last.update(degrees)
        timers = ctx.timer_service()
        if (pending := self.timer.value()) is not None:
            timers.delete_event_time_timer(pending)
        timers.register_event_time_timer(moment + SILENT_MILLIS)
        self.timer.update(moment + SILENT_MILLIS)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        self.timer.clear()
        yield timestamp, ctx.get_current_key(), f"silent for {SILENT_MILLIS} ms"


def main() -> None:
    environment = StreamExecutionEnvironment.create_local_environment(parallelism=2)
    strategy = WatermarkStrategy.for_generator(BehindEach).with_timestamp_assigner(lambda reading: reading[1])
    alerts = (
        environment.from_collection(READINGS)
        .assign_timestamps_and_watermarks(strategy)
        .set_parallelism(1)  # as the source has, so that the readings stay in order
        .key_by(lambda reading: reading[0])
        .process(Watch())
        .name("Watch sensors")
        .uid("watch")
    )
    with alerts.execute_and_collect("sensor alerts") as results:
        for moment, sensor, text in sorted(results):
            print(f"{moment} {sensor} {text}")


if __name__ == "__main__":
    main()
