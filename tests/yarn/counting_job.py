"""Numbers at a rate, each with how many its key has had, exactly once into files: OUT COUNT RATE [setting=value …]."""

import sys

import penstock
from penstock.common import Configuration, Encoder
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.file_system import FileSink, OutputFileConfig


def with_key(number: int) -> tuple[int, int, int]:
    if number == 0:
        print("a slot runs with", sys.executable, "and", penstock.__file__, flush=True)
    return number % 10, number, 1


def main(out: str, count: str, rate: str, *pairs: str) -> None:
    settings = Configuration()
    for pair in pairs:
        settings.set_string(*pair.split("=", 1))
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    counts = (
        env.generate(rate=int(rate), count=int(count))
        .uid("numbers")
        .map(with_key)
        .key_by(lambda row: row[0])
        .reduce(lambda one, other: (other[0], other[1], one[2] + 1))
        .uid("counts")
    )
    sink = (
        FileSink.for_row_format(out, Encoder.simple_string_encoder())
        .with_output_file_config(OutputFileConfig.builder().with_part_suffix(".txt").build())
        .build()
    )
    counts.sink_to(sink).uid("files")
    print("the driver runs with", sys.executable, "and", penstock.__file__, flush=True)
    env.execute("counts by key")


if __name__ == "__main__":
    main(*sys.argv[1:])
