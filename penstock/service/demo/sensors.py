"""The program of the demo: rolling averages, temperature jumps, silent sensors. Each result is a line of JSON.

A server runs it; without one, `penstock run sensors.py` does.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from typing import Any, TypeAlias, cast

from penstock.api.functions.contexts import RuntimeContext
from penstock.api.functions.element_functions import AggregateFunction
from penstock.api.functions.process_functions import KeyedProcessFunction
from penstock.api.state.descriptors import AggregatingStateDescriptor, ValueStateDescriptor
from penstock.common import Duration, Time, Types, WatermarkStrategy
from penstock.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from penstock.datastream.window import TumblingEventTimeWindows

SENSORS = 6
SILENT_AFTER = 4_000
Reading: TypeAlias = tuple[str, int, float]
"""Sensor, epoch milliseconds and degrees."""
ALERTS = OutputTag("alerts", Types.TUPLE([Types.STRING(), Types.STRING()]))


class Simulate:
    """Generator of reading number n. Sensor 5 falls silent for a while now and then; any sensor may jump."""

    def __init__(self, began: int) -> None:
        self.began = began

    def __call__(self, number: int) -> Reading | None:
        sensor, moment = number % SENSORS, number // SENSORS
        if sensor == SENSORS - 1 and moment % 60 > 30:
            return None
        jump = 15 if (number * 2654435761) % 97 == 0 else 0
        temperature = 20 + 3 * sensor + 2 * math.sin(moment / 7 + sensor) + jump
        return f"sensor-{sensor}", self.began + moment * 250, round(temperature, 2)


class Average(AggregateFunction):
    """The mean of all readings so far."""

    def create_accumulator(self) -> tuple[float, int]:
        return 0.0, 0

    def add(self, value: float, accumulator: tuple[float, int]) -> tuple[float, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[float, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[float, int], acc_b: tuple[float, int]) -> tuple[float, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Watch(KeyedProcessFunction):
    """Computes a sensor's rolling average. Alerts if two readings differ by 10 degrees or the sensor is silent."""

    def open(self, runtime_context: RuntimeContext) -> None:
        average = AggregatingStateDescriptor("average", Average())
        average.set_queryable("average")
        last = ValueStateDescriptor("last", Types.DOUBLE())
        last.set_queryable("last-reading")
        self.average = runtime_context.get_aggregating_state(average)
        self.last = runtime_context.get_state(last)
        self.timer = runtime_context.get_state(ValueStateDescriptor("timer", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        sensor, moment, temperature = value
        last = self.last.value()
        if last is not None and abs(temperature - last) >= 10:
            yield ALERTS, (sensor, f"jumped from {last:.1f} to {temperature:.1f} °C")
        self.last.update(temperature)
        self.average.add(temperature)
        if self.timer.value() is not None:
            ctx.timer_service().delete_event_time_timer(self.timer.value())
        self.timer.update(moment + SILENT_AFTER)
        ctx.timer_service().register_event_time_timer(moment + SILENT_AFTER)
        yield sensor, temperature, self.average.get()

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        self.timer.clear()
        yield ALERTS, (ctx.get_current_key(), f"silent for {SILENT_AFTER // 1000} s")


def hotter(one: Reading, other: Reading) -> Reading:
    """Return the hotter one of two readings."""
    return one if one[2] >= other[2] else other


def build(environment: StreamExecutionEnvironment, rate: float) -> Any:
    """Build the program, and return its stream of readings, alerts and hottest readings of ten seconds."""
    readings = environment.generate(Simulate(time.time_ns() // 1_000_000), rate=rate).name("Sensors").uid("sensors")
    heard = readings.filter(lambda reading: reading is not None).name("heard")
    present = cast("DataStream[Reading]", heard)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(500)).with_timestamp_assigner(
        lambda reading: reading[1]
    )
    by_sensor = present.assign_timestamps_and_watermarks(strategy).key_by(lambda reading: reading[0], Types.STRING())
    watched = by_sensor.process(Watch()).name("Watch sensors").uid("watch")
    hottest = by_sensor.window(TumblingEventTimeWindows.of(Time.seconds(10))).reduce(hotter)
    hottest = hottest.name("Hottest in ten seconds").uid("hottest")
    alerts = watched.get_side_output(ALERTS).map(lambda alert: ("alert", *alert)).name("alerts")
    return (
        watched.map(lambda row: ("reading", *row))
        .name("readings")
        .union(alerts, hottest.map(lambda row: ("hottest", row[0], row[2])).name("hottest"))
    )


def main() -> None:
    """Build and run the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=24.0, help="readings a second")
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.enable_checkpointing(5_000)
    environment.get_config().set_latency_tracking_interval(1_000)
    results = build(environment, parser.parse_args().rate)
    results.map(json.dumps).name("to lines").print().name("Terminal")
    environment.execute("sensors")


if __name__ == "__main__":
    main()
