"""Functions, operators and casts against what Flink 2.3 answered: recorded.json has some two thousand expressions.

An entry has the type and the value, or `error`, which says only that Flink refused or failed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from penstock.errors import PenstockError

sys.path.insert(0, str(Path(__file__).parent))
from plain_values import evaluated, same

RECORDED = json.loads((Path(__file__).parent / "recorded.json").read_text())

DIFFERENT = {
    "1969-12-31 23:59:59.999": "Flink counts parts of a day before 1970 as the day after",
    "FROM DATE '2023-01-01')": "Flink gives seconds of a DATE that has none",
    "SECOND(DATE '2023-01-01')": "as above",
    "CEIL(DATE '2023-05-17' TO DAY)": "Flink goes to the next day",
    "CAST(1 AS DOUBLE)/0": "Flink fails while it folds constants; for columns it gives Infinity too",
    "CAST(0 AS DOUBLE)/0": "as above, NaN",
    "CAST(CAST(0.1 AS FLOAT) AS DOUBLE)": "Flink drops the inner cast while it folds constants",
    "- INTERVAL '1 02:03:04.005' DAY TO SECOND": "Flink cuts the milliseconds off only while it folds constants",
    "UNHEX('1')": "Flink loses a digit of an odd number of digits",
    "CAST(0.1 AS FLOAT),CAST(1 AS": "a FLOAT has its own digits in JSON, not those of the nearest DOUBLE",
    "123456789' AS TIMESTAMP(9)": "moments have microseconds, and what is more precise is refused",
}
"""Where we deliberately differ: a part of the expression, and why."""

NOT_OFFERED = ("TIME '2:55:00'", "TIME '9:00:00'", "') HOUR", "BITMAP_", "OBJECT_OF", "PARSE_JSON")
"""What is not read, such as hours of one digit in a literal, and functions of types that there are not."""

MORE_THAN_FLINK = (
    "LPAD('abc'",
    "CAST(1234.5 AS DECIMAL(5,2))",
    "CAST(123 AS DECIMAL(2,0))",
    "SIGN(CAST(3 AS TINYINT))",
    "X'01'||X'02'",
    "ARRAY[1]||ARRAY[2]",
    "_VALID_UTF8(",
    "RETURNING BIGINT",
    "'$.s' RETURNING INT",
    "JSON_OBJECT('a' VALUE T",
    "NULL + 1",
    "JSON_ARRAY(INTERVAL",
    "JSON_STRING(TIME",
    "GROUP_ID()",
    "JSON_STRING(DATE",
)
"""Where Flink has no answer, because it fails or knows no such thing, and we do."""


def expressions() -> list[str]:
    return [text for text in RECORDED if not any(part in text for part in (*DIFFERENT, *NOT_OFFERED))]


def problem(text: str) -> str | None:
    """What is wrong with our answer."""
    wanted = RECORDED[text]
    try:
        kind, value = evaluated(text)
    except PenstockError as error:
        return None if "error" in wanted else f"{text}: {error}, but Flink gives {wanted['value']}"
    if "error" in wanted:
        known = any(part in text for part in MORE_THAN_FLINK)
        return None if known or text == "NULL" else f"{text}: {value}, but Flink fails: {wanted['error']}"
    if not same(wanted["value"], value):
        return f"{text}: {value}, but Flink gives {wanted['value']}"
    if wanted["type"] != kind and "INTERVAL" not in kind:
        return f"{text}: {kind}, but Flink's type is {wanted['type']}"
    return None


@pytest.mark.parametrize("part", range(8))
def test_expressions_as_recorded(part: int) -> None:
    problems = [found for text in expressions()[part::8] if (found := problem(text))]
    assert not problems, "\n".join(problems)


def test_enough_is_recorded() -> None:
    answered = [text for text in expressions() if "value" in RECORDED[text]]
    assert len(answered) > 1500
