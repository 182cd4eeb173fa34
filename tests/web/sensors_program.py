"""A program for a server: readings by sensor, with state that can be looked up. Its slots are in the driver.

sensors_program.py [break]: with `break`, a function fails at the twentieth reading, for good.
"""

import sys

from penstock.common import Types
from penstock.common.restart_strategy import RestartStrategies
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor
from penstock.testing import in_process

SENSORS = 5


class Count(KeyedProcessFunction):
    def __init__(self, breaks):
        self.breaks = breaks

    def open(self, runtime_context):
        descriptor = ValueStateDescriptor("count", Types.LONG())
        descriptor.set_queryable("counts")
        self.count = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        if self.breaks and count > 3:
            raise ValueError(f"sensor {value} is broken")
        self.count.update(count)
        yield f"sensor {value}: {count}"


def main(breaks=""):
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        env.enable_checkpointing(300)
        env.get_config().set_latency_tracking_interval(100)
        env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 50))
        readings = env.generate(lambda number: number % SENSORS, rate=100).name("Readings").uid("readings")
        counted = readings.key_by(lambda sensor: sensor, Types.INT()).process(Count(breaks)).name("Count").uid("count")
        counted.print().name("Out")
        env.execute("broken" if breaks else "sensors")


if __name__ == "__main__":
    main(*sys.argv[1:])
