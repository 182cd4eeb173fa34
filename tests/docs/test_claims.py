"""Claims of the pages, each with the test that checks it. A claim that turns out wrong gets a test and a line here.

Figures and limits are in `test_stated_figures.py`.
"""

import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from penstock import errors
from penstock.service.cli import app
from penstock.service.options import gateway_options
from penstock.service.options.environment_options import default_parallelism
from penstock.service.options.rest_options import OPTIONS as REST_OPTIONS
from penstock.service.server.cli import app as server_app

ROOT = Path(__file__).parents[2]
CONFIGURATION = (ROOT / "docs/configuration.md").read_text()
TREE_LINE = re.compile(r"^([│ ├└─]*)(\w+)(?: +(?:also an? (\w+)|.*))?$")


def page(name: str) -> str:
    """The text of a page in one line."""
    return re.sub(r"\s+", " ", (ROOT / name).read_text())


CLAIMS = [
    (
        "docs/cli.md",
        "What the program itself prints goes to standard error",
        "tests/unit/cli/test_running_programs.py::test_what_the_program_prints_is_no_part_of_the_plan",
    ),
    (
        "docs/cli.md",
        "`penstock savepoint -d PATH` | disposes of a savepoint",
        "tests/unit/cli/test_against_rest.py::test_a_savepoint_is_taken_and_disposed_of",
    ),
    (
        "docs/cli.md",
        "`penstock cancel -s [DIR] JOB` | takes a savepoint first",
        "tests/unit/cli/test_against_rest.py::test_cancel_with_a_savepoint",
    ),
    (
        "docs/configuration.md",
        "not by a program that plain `python` runs, which reads the variable `PENSTOCK_MASTER` alone",
        "tests/docs/test_claims.py::test_a_program_reads_no_variable_of_the_command",
    ),
    (
        "docs/configuration.md",
        "warn once, on standard error, with the reason or with the nearest name",
        "tests/unit/launch/test_config_files.py::test_names_without_effect_are_warned_of_once",
    ),
    (
        "docs/sql/client.md",
        "penstock sql-gateway -D sql-gateway.endpoint.rest.port=8083",
        "tests/unit/launch/test_config_files.py::test_options_of_other_parts_are_known",
    ),
    (
        "docs/fault-tolerance.md",
        "A server takes savepoints of its jobs on command",
        "tests/unit/cli/test_against_rest.py::test_a_savepoint_is_taken_and_disposed_of",
    ),
    (
        "docs/pyflink.md",
        "`penstock savepoint` and `penstock stop` take savepoints of a [server's](server.md) jobs",
        "tests/unit/cli/test_against_rest.py::test_a_savepoint_is_taken_and_disposed_of",
    ),
    (
        "docs/pyflink.md",
        "A [server](server.md) starts drivers again that died",
        "tests/server/test_server_jobs.py::test_a_driver_that_is_killed_is_started_again_and_nothing_is_lost_or_doubled",
    ),
    (
        "docs/queryable-state.md",
        "A name belongs to one state of a job",
        "tests/unit/queryable/test_queryable_jobs.py::test_two_states_cannot_have_one_name",
    ),
    (
        "docs/queryable-state.md",
        "A BATCH job has no queryable state",
        "tests/unit/queryable/test_queryable_jobs.py::test_a_batch_job_has_none",
    ),
    (
        "docs/queryable-state.md",
        "It is a copy; methods that change it raise `UnsupportedOperation`",
        "tests/unit/queryable/test_server_and_client.py::test_nothing_can_be_changed",
    ),
    (
        "docs/rest.md",
        "Every path also answers below `/v1` and with a slash behind it",
        "tests/rest/test_routes.py::test_a_path_answers_with_and_without_version_and_slash",
    ),
    (
        "docs/rest.md",
        "A body may be missing",
        "tests/rest/test_routes.py::test_a_body_may_be_missing_or_hold_nulls",
    ),
    (
        "docs/rest.md",
        "a body that is `null` is malformed",
        "tests/rest/test_routes.py::test_a_malformed_body_is_refused",
    ),
    (
        "docs/rest.md",
        "The read token is good for GET and HEAD, the operate token for everything",
        "tests/rest/test_door.py::test_a_token_lets_its_holder_read_or_operate",
    ),
    (
        "docs/rest.md",
        "A wrong token is refused, whoever sends it",
        "tests/rest/test_passes.py::test_a_wrong_token_is_refused_whatever_pass_comes_with_it",
    ),
    (
        "docs/rest.md",
        "the command line of the user who started the server needs no token",
        "tests/rest/test_passes.py::test_with_the_pass_programs_are_taken_and_tokens_are_not_asked_for",
    ),
    (
        "docs/rest.md",
        "an address waits a second before another one is looked at, then two",
        "tests/rest/test_guesses.py::test_the_wait_doubles_up_to_the_longest_and_ends_with_a_right_token",
    ),
    (
        "docs/rest.md",
        "Orders that a browser says come from a page of another site are refused",
        "tests/rest/test_door.py::test_pages_of_other_sites_give_no_orders",
    ),
    (
        "SECURITY.md",
        "A wrong token is refused, whoever sends it",
        "tests/rest/test_passes.py::test_a_wrong_token_is_refused_whatever_pass_comes_with_it",
    ),
    (
        "SECURITY.md",
        "Names of logs and of uploaded files are never paths",
        "tests/rest/test_door.py::test_no_name_leads_out_of_the_logs",
    ),
    (
        "docs/security.md",
        "both sides accept no other",
        "tests/contract/test_links.py::test_who_has_another_certificate_learns_nothing",
    ),
    (
        "docs/sql/functions.md",
        "divided by zero is `Infinity`, `-Infinity` or `NaN`",
        "tests/docs/test_stated_figures.py::test_a_double_divided_by_zero_as_the_page_on_functions_says",
    ),
    (
        "docs/time.md",
        "with `no_watermarks()` it stays without one, and `ctx.timestamp()` is None",
        "tests/docs/test_stated_figures.py::test_records_without_a_timestamp_as_the_page_on_time_says",
    ),
    (
        "docs/errors.md",
        "| `InvalidParallelism` | a parallelism outside 1 to max parallelism",
        "tests/unit/test_bad_input.py::test_a_parallelism_that_is_none",
    ),
    (
        "docs/configuration.md",
        "| `parallelism.default` | | cores of this machine |",
        "tests/docs/test_claims.py::test_the_command_shows_the_default_parallelism",
    ),
    (
        "docs/security.md",
        "A setting is a secret if its name contains",
        "tests/docs/test_stated_figures.py::test_every_part_of_a_secret_name_is_listed",
    ),
    (
        "docs/columns.md",
        "If the number of rows changes, every row gets the latest timestamp of its batch.",
        "tests/unit/runtime/test_batches.py::test_other_results_have_the_latest_timestamp_of_their_batch",
    ),
    (
        "docs/kafka-to-postgres.md",
        "PostgreSQL gets every order once, and the total of each customer",
        "tests/connectors/kafka/test_kafka_to_postgres.py::test_the_query_of_the_page_sums",
    ),
    (
        "docs/sql/connectors.md",
        "with `k_`, the column `k_id` is the field `id` of the message's key",
        "tests/connectors/kafka/test_kafka_tables.py::test_a_prefix_tells_columns_of_the_key_from_those_of_the_value",
    ),
]
"""A page, a sentence of it, and the test that checks the sentence."""


UNCLEAR = [
    ("docs/sql/how-a-query-runs.md", "pairs are made"),
    ("docs/sql/how-a-query-runs.md", "but for versions that a temporal join needs"),
    ("docs/sql/how-a-query-runs.md", "rows go that others of the batch beat"),
    ("docs/sql/connectors.md", "what columns of the key begin with"),
    ("docs/columns.md", "The second rule never makes a row late"),
    ("docs/queryable-state.md", "which counts up within the epoch"),
    ("docs/metrics.md", "Counting costs a chunk"),
    ("docs/rest.md", "404 for what is not there"),
    ("docs/connectors/formats.md", "not greater than the greater"),
    ("docs/time.md", "that time is the longest"),
]
"""Pages, and phrases that readers did not understand. Each page says the same thing in other words now."""


@pytest.mark.parametrize(("name", "sentence", "test"), CLAIMS, ids=[f"{name}: {text}" for name, text, _ in CLAIMS])
def test_a_claim_is_on_its_page_and_its_test_exists(name: str, sentence: str, test: str) -> None:
    assert sentence in page(name)
    path, _, function = test.partition("::")
    assert re.search(rf"^ *def {function}\(", (ROOT / path).read_text(), re.M), f"{path} has no {function}"


@pytest.mark.parametrize(("name", "phrase"), UNCLEAR)
def test_an_unclear_phrase_does_not_come_back(name: str, phrase: str) -> None:
    assert phrase not in page(name)


@pytest.mark.parametrize(
    ("name", "heading", "target"),
    [
        ("docs/index.md", "Where to go", "kafka-to-postgres.md"),
        ("docs/index.md", "Where to go", "sql/index.md"),
        ("docs/index.md", "Where to go", "fault-tolerance.md"),
        ("docs/index.md", "Where to go", "server.md"),
        ("docs/index.md", "Where to go", "errors.md"),
        ("docs/kafka-to-postgres.md", "From Kafka to PostgreSQL, exactly once", "index.md#install"),
        ("docs/time.md", "Timestamps and watermarks", "windows.md#late-records"),
        ("docs/errors.md", "Errors", "#what-to-do"),
    ],
)
def test_a_section_leads_the_reader_on(name: str, heading: str, target: str) -> None:
    _, found, section = (ROOT / name).read_text().partition(f"# {heading}\n")
    assert found and f"]({target})" in re.split(r"^#", section, maxsplit=1, flags=re.M)[0]


def test_no_page_installs_from_an_index_that_does_not_have_the_package() -> None:
    """Home explains the brackets. A plain `pip install penstock` as a command would fail."""
    commands = [
        f"{path.name}: {line}"
        for path in (ROOT / "docs").rglob("*.md")
        for line in path.read_text().splitlines()
        if re.match(r""" *(\$ )?pip install ["']?penstock(?!\[| @)""", line)
    ]
    assert commands == []
    assert 'pip install "penstock[kafka,postgres] @ $PENSTOCK"' in page("docs/index.md")


def test_the_page_on_errors_begins_with_the_steps_after_a_failure() -> None:
    text = (ROOT / "docs/errors.md").read_text()
    places = [text.index(part) for part in ("page Exceptions", "`penstock logs JOB`", "\nPenstockError\n")]
    assert places == sorted(places)
    assert "`" not in text.partition("```\nPenstockError\n")[2].partition("```")[0]


def test_the_command_shows_the_default_parallelism() -> None:
    shown = CliRunner().invoke(app, ["config", "parallelism.default"]).stdout
    assert shown == f"parallelism.default: {default_parallelism()}  (default)\n"


def test_a_program_reads_no_variable_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.datastream import StreamExecutionEnvironment

    monkeypatch.setenv("PENSTOCK__PARALLELISM__DEFAULT", "3")
    monkeypatch.setenv("PENSTOCK_MASTER", "local[5]")
    env = StreamExecutionEnvironment.get_execution_environment()
    assert env.get_parallelism() != 3
    assert env.settings.spark_master() == "local[5]"


def test_the_tree_of_errors_is_that_of_the_code() -> None:
    _, _, text = (ROOT / "docs/errors.md").read_text().partition("```\nPenstockError\n")
    above, drawn = {0: "PenstockError"}, {}
    for line in text.partition("```")[0].splitlines():
        prefix, name, other = TREE_LINE.fullmatch(line).groups()
        depth = len(prefix) // 4
        above[depth] = name
        drawn[name] = {above[depth - 1]} | ({other} if other else set())
    kinds = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type)}
    real = {
        name: {base.__name__ for base in kind.__bases__ if issubclass(base, Exception)}
        for name, kind in kinds.items()
        if issubclass(kind, errors.PenstockError) and kind is not errors.PenstockError
    }
    assert drawn == real


def table_of(heading: str) -> list[tuple[list[str], list[str], list[str]]]:
    """Names, other spellings and defaults of the table below a heading of the page on configuration."""
    section = CONFIGURATION.partition(f"### {heading}\n")[2].partition("\n### ")[0]
    rows = [line.strip("|").split("|")[:3] for line in section.splitlines() if line.startswith("| `")]
    return [tuple(re.findall(r"`([^`]+)`", cell) for cell in row) for row in rows]


def test_the_options_of_rest_are_those_of_the_code() -> None:
    documented, code = table_of("REST"), [([o.name], list(o.others), o.default) for o in REST_OPTIONS]
    assert [row[:2] for row in documented] == [row[:2] for row in code]
    assert [default for _, _, default in documented] == [[default] if default else [] for _, _, default in code]


def test_the_options_of_the_gateway_are_those_of_the_code() -> None:
    text = (ROOT / "docs/sql/client.md").read_text()
    for option in gateway_options.OPTIONS:
        if not option.name.startswith(gateway_options.ENDPOINT):
            assert f"| `{option.name}` | `{option.default}` |" in text


def test_the_switches_of_the_server_are_described() -> None:
    text = page("docs/server.md") + page("docs/high-availability.md") + page("docs/cli.md")
    start = typer.main.get_command(server_app).commands["start"]
    switches = [set(parameter.opts) for parameter in start.params]
    assert [names for names in switches if not any(f"`{name}" in text for name in names)] == []
