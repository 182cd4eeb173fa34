"""The meaning of the options of a query for the job that runs it."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.base.options.parsers import parse_duration
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.errors import ValidationException
from penstock.table.options.job_options import LATENCY, MINI_BATCH, PARALLELISM, SIZE, check


def apply_options(options: Mapping[str, str], env: StreamExecutionEnvironment) -> None:
    """Check all options of a query, and set up the job that runs it."""
    for key, value in options.items():
        check(key, value)
    parallelism = int(options.get(PARALLELISM, "-1"))
    if parallelism > 0:
        env.set_parallelism(parallelism)
    if options.get(MINI_BATCH, "").strip().lower() == "true":
        _mini_batch(options, env)


def _mini_batch(options: Mapping[str, str], env: StreamExecutionEnvironment) -> None:
    """Make an epoch a mini-batch: limit the time for which it gathers input, and the number of rows that it reads."""
    latency = parse_duration(options.get(LATENCY, "0 ms"))
    if latency <= 0:
        raise ValidationException(f"'{LATENCY}' must be longer than zero if '{MINI_BATCH}' is true")
    size = int(options.get(SIZE, "-1"))
    if size <= 0:
        raise ValidationException(f"'{SIZE}' must be above zero if '{MINI_BATCH}' is true")
    gathering = env.get_buffer_timeout()
    if gathering < 0 or gathering > latency:
        env.set_buffer_timeout(latency)
    env.settings.max_records = min(env.settings.max_records, size)
