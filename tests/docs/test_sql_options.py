"""The table of all options `table.*`, beside the list of Flink 2.3 and beside the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from penstock.base.options.option import Effect, Option
from penstock.base.options.parsers import parse_duration
from penstock.errors import ValidationException
from penstock.table import TableConfig
from penstock.table.options.table_options import KNOWN, OWN

ROOT = Path(__file__).parents[2]
ROW = re.compile(
    r"\| `(table\.[^`]+)` \| (?:`([^`]*)`)? \| (.+?) \| (has its effect|is irrelevant|is refused) \| (.+) \|"
)
FLINK = json.loads((ROOT / "tests/table/recorded/flink_options.json").read_text())["options"]
ALL = {**KNOWN, **OWN}
WRONG = {"Boolean": "perhaps", "Integer": "1.5", "Long": "many", "Double": "half", "Duration": "soon", "Enum": "MAYBE",
         "MemorySize": "much"}  # fmt: skip


def documented() -> dict[str, tuple[str, str, str, str]]:
    lines = (ROOT / "docs/sql/options.md").read_text().splitlines()
    rows = [ROW.fullmatch(line) for line in lines if line.startswith("| `")]
    assert all(rows), [line for line, row in zip(lines, rows, strict=False) if row is None]
    return {row[1]: (row[2] or "", row[3], row[4], row[5]) for row in rows if row is not None}


def test_every_option_of_flink_is_known_and_no_other() -> None:
    assert set(KNOWN) == set(FLINK)


def test_the_documentation_says_what_the_code_does() -> None:
    rows = documented()
    assert set(rows) == set(ALL)
    for name, (default, _, kind, reason) in rows.items():
        assert (default, kind) == (ALL[name].default, ALL[name].effect.value), name
        assert len(reason) > 10, name


@pytest.mark.parametrize("name", sorted(FLINK))
def test_values_and_defaults_are_those_of_flink(name: str) -> None:
    kind, values, default = (FLINK[name][part] for part in ("type", "values", "default"))
    option = KNOWN[name]
    for value in values or ():
        assert option.parse(value) == value or option.effect is Effect.REFUSED
    if kind == "Duration":
        assert parse_duration(option.default) == parse_duration(default)
    elif kind is not None and name != "table.local-time-zone":  # Flink's is the zone of the machine
        assert option.default.upper() == ("" if default in {None, "[]"} else default).upper()


@pytest.mark.parametrize("name", sorted(name for name in FLINK if FLINK[name]["type"] in WRONG))
def test_a_wrong_value_is_an_error_with_what_is_allowed(name: str) -> None:
    value = WRONG[FLINK[name]["type"]]
    with pytest.raises(ValidationException) as problem:
        TableConfig().set(name, value)
    said = str(problem.value)
    assert f"'{name}'" in said
    assert f"'{value}'" in said
    assert _allowed(KNOWN[name], value) in said or "allowed is" in said


@pytest.mark.parametrize("name", sorted(name for name, option in KNOWN.items() if option.effect is Effect.REFUSED))
def test_what_is_refused_has_a_reason(name: str) -> None:
    option = KNOWN[name]
    TableConfig().set(name, option.default)
    with pytest.raises(ValidationException, match=re.escape(option.note)):
        TableConfig().set(name, other_value(option))


def other_value(option: Option[str]) -> str:
    """A value of the right kind that is not taken."""
    words = ["true", "FORCE", "TRY_RESOLVE", "ENABLED", "1 s", "hive"]
    return next(word for word in words if not _allowed(option, word) and word.upper() != option.default.upper())


def _allowed(option: Option[str], value: str) -> str:
    """What the parser allows instead of a value, or nothing if the value is of the right kind."""
    try:
        option.parse(value)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", sorted(name for name, option in ALL.items() if option.effect is Effect.OWN))
def test_what_has_an_effect_is_read_by_the_code(name: str) -> None:
    assert [path for path in sources() if mentions(path, name)], f"no module reads {name}"


@pytest.mark.parametrize("name", sorted(name for name, option in ALL.items() if option.effect is Effect.IRRELEVANT))
def test_what_is_irrelevant_is_read_nowhere(name: str) -> None:
    readers = [path.name for path in sources() if f'"{name}"' in path.read_text()]
    assert readers == (["config.py"] if name == "table.generated-code.max-length" else [])  # a method of PyFlink's


def sources() -> list[Path]:
    return [path for path in (ROOT / "penstock/table").rglob("*.py") if path.name != "known_options.py"]


def mentions(path: Path, name: str) -> bool:
    text = path.read_text()
    prefix, _, last = name.rpartition(".")
    return f'"{name}"' in text or (f'"{prefix}"' in text and f".{last}" in text)
