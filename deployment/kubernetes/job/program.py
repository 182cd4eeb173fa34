"""Counts numbers by their last digit, and writes each count exactly once: program.py [FOLDER] [NUMBERS] [PER_SECOND]"""

import sys

from penstock.common import Encoder
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.file_system import FileSink, OutputFileConfig

folder, numbers, rate = (*sys.argv[1:], *("s3://penstock/output", "10000", "100")[len(sys.argv) - 1 :])

env = StreamExecutionEnvironment.get_execution_environment()
counts = (
    env.generate(rate=int(rate), count=int(numbers))
    .uid("numbers")
    .map(lambda number: (number % 10, number, 1))
    .key_by(lambda row: row[0])
    .reduce(lambda before, now: (now[0], now[1], before[2] + 1))
    .uid("counts")
)
names = OutputFileConfig.builder().with_part_suffix(".txt").build()
sink = FileSink.for_row_format(folder, Encoder.simple_string_encoder()).with_output_file_config(names).build()
counts.sink_to(sink).uid("files")
env.execute("counts by last digit")
