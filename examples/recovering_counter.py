"""Counts readings by sensor with checkpoints, fails once, and goes on where the last checkpoint left it."""

from collections import Counter
from collections.abc import Iterator
from tempfile import TemporaryDirectory

from penstock.common import RestartStrategies, Types
from penstock.datastream import (
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
)

SENSORS = ("cellar", "kitchen")
READINGS = 600
BROKEN = 400  # the reading at which the first attempt fails


class Count(KeyedProcessFunction):
    """Counts what a sensor has sent, and tells in which attempt of the job it did so."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG(), default_value=0))
        self.attempt = runtime_context.get_attempt_number()

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[tuple[str, int, int]]:
        if value == BROKEN and self.attempt == 0:
            raise ValueError(f"reading {value} cannot be understood")
        self.count.update(self.count.value() + 1)
        yield ctx.get_current_key(), self.count.value(), self.attempt


def main() -> None:
    with TemporaryDirectory() as folder:
        environment = StreamExecutionEnvironment.create_local_environment(parallelism=2)
        environment.enable_checkpointing(50)  # milliseconds
        environment.get_checkpoint_config().set_checkpoint_storage_dir(folder)
        environment.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 10))
        readings = environment.generate(rate=1000, count=READINGS).uid("readings")
        counts = readings.key_by(lambda reading: SENSORS[reading % 2]).process(Count()).uid("count")
        with counts.execute_and_collect("recovering counter") as results:
            received = list(results)
    times = Counter((sensor, count) for sensor, count, _ in received)
    for sensor in SENSORS:
        print(f"{sensor}: {max(count for name, count in times if name == sensor)} readings")
    print(f"{len(received)} results, {len(times)} of them different")
    print(f"attempts: {1 + max(attempt for _, _, attempt in received)}")


if __name__ == "__main__":
    main()
