"""The page of the command line has every verb and switch, and the options that it reads."""

import re
from pathlib import Path

import pytest
import typer

from penstock.service.cli import app
from penstock.service.cli.exit_codes import CommandFailed
from penstock.service.options.client_options import OPTIONS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "cli.md").read_text()
GROUP = typer.main.get_command(app)


def test_every_verb_is_listed() -> None:
    listed = {
        verb
        for cell in re.findall(r"^\| (.*?) \| ", PAGE, re.M)
        for verb in re.findall(r"^\[?`([\w-]+)`|, \[`([\w-]+)`", cell)
    }
    assert set(GROUP.commands) <= {first or second for first, second in listed}


@pytest.mark.parametrize("verb", sorted(set(GROUP.commands) - {"server"}))
def test_every_switch_of_a_verb_is_described(verb: str) -> None:
    common = {"--help", "--token", "--cacert", "--json", "-D", "-m"}
    for parameter in GROUP.commands[verb].params:
        spellings = set(parameter.opts)
        if parameter.param_type_name == "option" and not spellings & common:
            assert any(re.search(rf"(?<![\w-]){re.escape(s)}(?![\w-])", PAGE) for s in spellings), f"{verb} {spellings}"


def test_every_exit_code_is_described() -> None:
    kinds = [CommandFailed, *CommandFailed.__subclasses__()]
    codes = [int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.M)]
    assert codes == [0, *sorted(kind.code for kind in kinds), 130, 143]


def test_the_options_of_the_command_line_are_as_in_the_code() -> None:
    _, _, table = (DOCS / "configuration.md").read_text().partition("| name | other spellings | default | meaning |\n")
    rows = [line.strip("|").split("|") for line in table.partition("\n\n")[0].splitlines()[1:]]
    found = [tuple(re.findall(r"`([^`]+)`", cell) for cell in row[:3]) for row in rows]
    assert found == [([o.name], list(o.others), [o.default] if o.default else []) for o in OPTIONS]
