"""The options `table.*`: their checks, and their meaning for a job."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from penstock.common.configuration import parse_duration
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.errors import ValidationException
from penstock.table.options.table_options import KNOWN, OWN

MINI_BATCH = "table.exec.mini-batch.enabled"
LATENCY = "table.exec.mini-batch.allow-latency"
SIZE = "table.exec.mini-batch.size"
PARALLELISM = "table.exec.resource.default-parallelism"
ENGINE = "table.exec.batch.engine"
HINTED_OPTIONS = "table.dynamic-table-options.enabled"
UPSERT_MATERIALIZE = "table.exec.sink.upsert-materialize"
KEYED_SHUFFLE = "table.exec.sink.keyed-shuffle"
REQUIRE_ON_CONFLICT = "table.exec.sink.require-on-conflict"
CDC_DUPLICATES = "table.exec.source.cdc-events-duplicate"
NON_DETERMINISTIC = "table.optimizer.non-deterministic-update.strategy"
STAGING = "table.exec.batch.staging-directory"
SORT_LIMIT = "table.exec.sort.default-limit"
EAGER = "table.display.eager"
SHOWN_ROWS = "table.display.max-rows"
COLUMN_WIDTH = "table.display.max-column-width"


# --- single options ---
def check(key: str, value: str) -> None:
    """Refuse a value that an option cannot have, and a name that is similar to an option's."""
    if not key.startswith("table."):
        return
    known = {**KNOWN, **OWN}
    if key not in known and (close := get_close_matches(key, known, 1, 0.8)):
        raise ValidationException(f"there is no option '{key}'; did you mean '{close[0]}'?")
    if key in known and (complaint := known[key].complaint(key, value)):
        raise ValidationException(complaint)


# --- what they mean ---
def apply(options: Mapping[str, str], env: StreamExecutionEnvironment) -> None:
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
