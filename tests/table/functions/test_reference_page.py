"""The examples of docs/sql/functions.md give the results that it shows, and every function is on the page."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from penstock.table import EnvironmentSettings, TableEnvironment
from penstock.table.functions import compile_rex, names
from penstock.table.functions.library.text_forms import text_form
from penstock.table.types.arrow_forms import values_of
from penstock.testing import in_process

sys.path.insert(0, str(Path(__file__).parent))
from plain_values import _ONE_ROW, NOW, bound

PAGE = (Path(__file__).parents[3] / "docs/sql/functions.md").read_text()
ROW = re.compile(r"^\| `.*?` \| .* \| `+([^`]*(?:`EXPR\$1`)?) ?`+ \| `(.*)` \|$", re.MULTILINE)
ROWS = "(VALUES (1, 'a'), (2, 'b'), (2, 'b'), (CAST(NULL AS INT), 'c')) AS t(x, s)"


def examples(text: str) -> list[tuple[str, str]]:
    return [tuple(part.replace("\\|", "|") for part in found) for found in ROW.findall(text)]  # type: ignore[misc]


SCALARS, AGGREGATES = map(examples, PAGE.split("## Aggregates"))


def result(text: str) -> str:
    rex = bound(text)
    value = values_of(compile_rex(rex)(_ONE_ROW, NOW), rex.type)[0]
    return "NULL" if value is None else text_form(rex.type)(value)


@pytest.mark.parametrize(("example", "shown"), SCALARS)
def test_example(example: str, shown: str) -> None:
    assert result(example) == shown


def test_aggregates() -> None:
    with in_process():
        t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        calls = ", ".join(example for example, _ in AGGREGATES)
        with t_env.sql_query(f"SELECT {calls} FROM {ROWS}").execute().collect() as rows:
            (row,) = list(rows)
    assert [str(value) for value in row] == [shown for _, shown in AGGREGATES]


def test_every_function_is_on_the_page() -> None:
    assert len(SCALARS) > 180
    missing = [name for name in names() if not re.search(rf"\b{name.upper()}\b", PAGE)]
    assert not missing
