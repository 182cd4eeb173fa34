"""Event-time windows with assigner, window function and side output from a library."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.window import Time, TumblingEventTimeWindows
from monitoring import times
from monitoring.windows import HIGH, Summary

if __name__ == "__main__":
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(times.SecondsOf(1))
    events = env.from_collection([("a", 0.5, 3), ("b", 1.0, 9), ("a", 4.25, 4), ("a", 11.0, 1), ("b", 12.5, 2)])
    stamped = events.assign_timestamps_and_watermarks(strategy)
    windows = stamped.key_by(lambda event: event[0]).window(TumblingEventTimeWindows.of(Time.seconds(10)))
    summaries = windows.process(Summary(limit=8), Types.STRING())
    summaries.print()
    summaries.get_side_output(HIGH).print()
    env.execute("alerts")
