"""Readings per sensor, with functions from a package whose modules import each other relatively."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment
from sensor_lib import READINGS, Deviation, Smoothed


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    readings = env.from_collection(READINGS, Types.TUPLE([Types.STRING(), Types.DOUBLE()]))
    by_sensor = readings.key_by(lambda reading: reading[0], Types.STRING())
    by_sensor.process(Smoothed(0.5), Types.TUPLE([Types.STRING(), Types.DOUBLE()])).print()
    by_sensor.process(Deviation(), Types.STRING()).print()
    env.execute("sensors")


if __name__ == "__main__":
    main()
