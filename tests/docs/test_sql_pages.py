"""The pages about SQL: statements of the tutorial show what it says, and what is not offered is refused as listed."""

import re
from pathlib import Path

import pytest

from penstock import errors
from penstock.service.cli.sql.sql_client import SqlClient
from penstock.table import EnvironmentSettings, TableEnvironment
from penstock.table.sql.parse import problems
from penstock.testing import in_process
from tests.docs.test_documentation import blocks

SQL = Path(__file__).parents[2] / "docs" / "sql"
REFUSED = re.compile(r"^\| `(?P<statement>.+?)` \| `(?P<error>\w+)` \| (?P<words>.+?) \| .+ \|$", re.M)


def test_the_tutorial_shows_what_its_statements_show(tmp_path, capsys):
    with in_process():
        client, shown = SqlClient({}), ""
        for block in blocks(SQL / "tutorial.md"):
            if block.language == "sql":
                client.run_script(block.text.replace("/tmp/penstock-tutorial", str(tmp_path)))
                shown = capsys.readouterr().out
            elif block.directive == "shown":
                told = [line for line in shown.splitlines(keepends=True) if not line.startswith("[INFO]")]
                assert "".join(told) == block.text, f"tutorial.md:{block.line}"


@pytest.fixture(scope="module")
def t_env():
    with in_process():
        made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        for block in blocks(SQL / "not-offered.md"):
            if block.language == "sql":
                for statement in filter(str.strip, block.text.split(";")):
                    made.execute_sql(statement)
        yield made


@pytest.mark.parametrize(
    ("statement", "error", "words"),
    [(one["statement"], one["error"], one["words"]) for one in REFUSED.finditer((SQL / "not-offered.md").read_text())],
)
def test_what_is_not_offered_is_refused_as_the_page_says(t_env, statement, error, words):
    kind = getattr(errors, error, None) or getattr(problems, error)
    with pytest.raises(kind) as caught:
        t_env.execute_sql(statement.replace("\\|", "|"))
    assert type(caught.value) is kind and words.replace("\\|", "|") in str(caught.value)


def test_every_statement_of_the_page_is_run():
    page = (SQL / "not-offered.md").read_text()
    assert len(REFUSED.findall(page)) == len(re.findall(r"^\| `", page, re.M)) >= 25
