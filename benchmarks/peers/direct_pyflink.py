"""PyFlink without Kafka: source and sink in Java, as those of all its connectors are, and a keyed count in Python.

The source is Flink's DataGeneratorSource with its rate limit. It, and the sink that looks at the clock, are in the jar
that the setting `jar` names. The mode is `thread` or `process`, the latter with real worker processes.
"""

import os
import sys

os.environ["_python_worker_execution_mode"] = "process"  # noqa: SIM112 (PyFlink's spelling)

import direct_jobs as d
from pyflink.common import Configuration, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.base import Sink, Source
from pyflink.datastream.functions import KeyedProcessFunction
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.java_gateway import get_gateway
from workloads import PARALLELISM


class CountAndPassOn(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield value


def environment(settings):
    options = {
        "python.execution-mode": settings["mode"],
        "python.executable": sys.executable,
        "python.client.executable": sys.executable,
        "python.fn-execution.bundle.time": str(settings["bundle_millis"]),
        "pipeline.jars": f"file://{settings['jar']}",
    }
    configuration = Configuration()
    for name, value in options.items():
        configuration.set_string(name, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(PARALLELISM)
    env.set_buffer_timeout(0)
    return env


def main():
    settings = d.settings()
    env = environment(settings)
    java = get_gateway().jvm.penstock.bench
    source = Source(java.StampedRecords.source(float(settings["rate"]), d.records_of(settings), d.KEYS))
    records = env.from_source(source, WatermarkStrategy.no_watermarks(), "stamped", type_info=Types.STRING())
    counted = records.key_by(d.key_of, key_type=Types.STRING()).process(CountAndPassOn(), output_type=Types.STRING())
    counted.sink_to(Sink(java.ArrivalSink(os.getcwd())))
    env.execute("source to sink")
    d.report(settings)


if __name__ == "__main__":
    main()
