"""The first program of the README, for Penstock and for PyFlink, whose words are the same.

`first_jobs.py PACKAGE print` runs it once, as a user would. `first_jobs.py PACKAGE REPEATS` runs it again and again in
one process and prints a line of JSON with the seconds from each execute() to its first result.
"""

from __future__ import annotations

import importlib
import json
import sys
import time


def environment(package):
    datastream = importlib.import_module(f"{package}.datastream")
    configuration = importlib.import_module(f"{package}.common").Configuration()
    if package == "pyflink":
        for name in ("python.executable", "python.client.executable"):
            configuration.set_string(name, sys.executable)
        configuration.set_string("python.execution-mode", "thread")
    env = datastream.StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    return env


def repeated_words(env):
    lines = env.from_collection(["to be or not to be", "that is the question"])
    counts = lines.flat_map(lambda line: line.split()).map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).sum(1)
    return counts.filter(lambda pair: pair[1] > 1)


def seconds_to_first(package):
    stream = repeated_words(environment(package))
    start = time.perf_counter()
    with stream.execute_and_collect() as results:
        first = next(iter(results))
        seconds = time.perf_counter() - start
        for _ in results:
            pass
    if tuple(first)[1] != 2:
        raise SystemExit(f"ValueError: the first result is {first}")
    return seconds


def main():
    package, how = sys.argv[1:]
    if how == "print":
        env = environment(package)
        repeated_words(env).print()
        env.execute("repeated words")
    else:
        print(json.dumps({"seconds": [seconds_to_first(package) for _ in range(int(how))]}), flush=True)


if __name__ == "__main__":
    main()
