"""The names of options `table.*` that the code reads, and the check of any option."""

from __future__ import annotations

from difflib import get_close_matches

from penstock.errors import ValidationException
from penstock.table.options.table_options import ALL, complaint

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


def check(key: str, value: str) -> None:
    """Refuse a value that an option cannot have, and a name that is similar to an option's."""
    if not key.startswith("table."):
        return
    if key not in ALL and (close := get_close_matches(key, ALL, 1, 0.8)):
        raise ValidationException(f"there is no option '{key}'; did you mean '{close[0]}'?")
    if key in ALL and (problem := complaint(ALL[key], value)):
        raise ValidationException(problem)
