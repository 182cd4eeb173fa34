"""`make demo`: simulated sensors, watched live: rolling averages, temperature jumps, silent sensors, until Ctrl-C."""

from __future__ import annotations

import argparse
import math
import threading
import time
from collections import deque
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from penstock.common import Duration, Types, WatermarkStrategy
from penstock.datastream import OutputTag, StreamExecutionEnvironment
from penstock.vocabulary.functions.contexts import RuntimeContext
from penstock.vocabulary.functions.element_functions import AggregateFunction
from penstock.vocabulary.functions.process_functions import KeyedProcessFunction
from penstock.vocabulary.state.descriptors import AggregatingStateDescriptor, ValueStateDescriptor

SENSORS = 6
SILENT_AFTER = 4_000
READING = Types.TUPLE([Types.STRING(), Types.LONG(), Types.DOUBLE()])
ALERTS = OutputTag("alerts", Types.TUPLE([Types.STRING(), Types.STRING()]))


class Simulate:
    """Reading number n. Sensor 5 falls silent for a while now and then; any sensor may jump."""

    def __init__(self, began: int) -> None:
        self.began = began

    def __call__(self, number: int) -> tuple[str, int, float] | None:
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
    """Per sensor: the rolling average, an alert when two readings differ by 10 degrees, and a timer for silence."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.average = runtime_context.get_aggregating_state(AggregatingStateDescriptor("average", Average()))
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.DOUBLE()))
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


class Screen:
    """What the terminal shows."""

    def __init__(self) -> None:
        self._readings: dict[str, tuple[float, float, int]] = {}
        self._alerts: deque[tuple[str, str, str]] = deque(maxlen=8)
        self._lock = threading.Lock()
        self._seen = 0

    def reading(self, sensor: str, temperature: float, average: float) -> None:
        with self._lock:
            self._seen += 1
            count = self._readings.get(sensor, (0.0, 0.0, 0))[2] + 1
            self._readings[sensor] = (temperature, average, count)

    def alert(self, sensor: str, text: str) -> None:
        with self._lock:
            self._alerts.append((time.strftime("%H:%M:%S"), sensor, text))

    def __rich__(self) -> Group:
        with self._lock:
            table = Table("sensor", "now °C", "average °C", "readings", expand=True)
            for sensor, (now, average, count) in sorted(self._readings.items()):
                table.add_row(sensor, f"{now:.1f}", f"{average:.2f}", str(count))
            alerts = Text("\n".join(f"{when}  {sensor}  {text}" for when, sensor, text in self._alerts) or "none yet")
            foot = f"{self._seen} readings · Spark local[2] · Ctrl-C stops"
        return Group(table, Panel(alerts, title="alerts"), Text(foot, style="dim"))

    def lines(self) -> str:
        """The same without a terminal."""
        with self._lock:
            return f"{self._seen} readings from {len(self._readings)} sensors, {len(self._alerts)} recent alerts"


def build(environment: StreamExecutionEnvironment, rate: float) -> Any:
    """The streaming job: readings → keyed process → (sensor, temperature, average), alerts aside."""
    readings = environment.generate(Simulate(time.time_ns() // 1_000_000), rate=rate).name("Sensors")
    present = readings.filter(lambda reading: reading is not None)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(500)).with_timestamp_assigner(
        lambda reading: reading[1]
    )
    timed = present.assign_timestamps_and_watermarks(strategy)
    watched = timed.key_by(lambda reading: reading[0]).process(Watch()).name("Watch sensors").uid("watch")
    alerts = watched.get_side_output(ALERTS).map(lambda alert: ("alert", *alert))
    return watched.map(lambda row: ("reading", *row)).union(alerts)


def show(seconds: float | None, rate: float) -> None:
    """Run the job and show its results as they come."""
    console = Console()
    console.print("Penstock demo: starting Spark …", style="dim")
    environment = StreamExecutionEnvironment.create_local_environment(2)
    screen = Screen()
    began = time.monotonic()
    with build(environment, rate).execute_and_collect("sensors") as results:
        with Live(screen, console=console, refresh_per_second=4):
            for kind, *row in results:
                (screen.alert if kind == "alert" else screen.reading)(*row)
                if seconds is not None and time.monotonic() - began > seconds:
                    break
        console.print(f"stopping after {screen.lines()} …", style="dim")
    console.print("stopped cleanly", style="green")


def main() -> None:
    """Entry point of `python -m penstock.demo`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, help="stop by itself after so long")
    parser.add_argument("--rate", type=float, default=24.0, help="readings a second")
    options = parser.parse_args()
    try:
        show(options.seconds, options.rate)
    except KeyboardInterrupt:
        Console().print("stopped cleanly", style="green")


if __name__ == "__main__":
    main()
