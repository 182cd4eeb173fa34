"""Word count with arguments, helper packages and a class from a library module."""

import argparse
import logging
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from pyflink.common import Row, Types
from pyflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from text_tools import splitters

TEXT = ["To be, or not to be,--that is the question:--", "Whether 'tis nobler in the mind to suffer"]


def count(env, parallelism):
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.set_parallelism(parallelism)
    words = env.from_collection(TEXT, Types.STRING()).flat_map(splitters.Words(minimum=2), Types.STRING())
    pairs = words.map(lambda word: Row(word, 1), Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()]))
    return pairs.key_by(lambda row: row[0]).reduce(splitters.add)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    parser = argparse.ArgumentParser()
    parser.add_argument("--parallelism", type=int, default=1)
    known, _ = parser.parse_known_args()
    environment = StreamExecutionEnvironment.get_execution_environment()
    count(environment, known.parallelism).print()
    environment.execute("words")
