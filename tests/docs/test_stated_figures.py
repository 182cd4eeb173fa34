"""Figures and claims that pages state are those of the code. A new claim of this kind gets a line here."""

import re
from pathlib import Path

import pytest

from penstock.common import WatermarkStrategy
from penstock.common.secrets import _PARTS, is_secret
from penstock.connectors.rabbitmq.connection import Link, RMQConnectionConfig
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import ProcessFunction
from penstock.service.rest.http_server import HEAD_SECONDS
from penstock.service.rest.middleware import LARGEST_JSON
from penstock.service.rest.rate_limit import FREE
from penstock.table import EnvironmentSettings, TableEnvironment
from penstock.testing import in_process

DOCS = Path(__file__).parents[2] / "docs"
WORDS = {5: "five", 10: "ten", 11: "eleven"}


def page(name: str) -> str:
    """The text of a page in one line."""
    return re.sub(r"\s+", " ", (DOCS / name).read_text())


def reconnections() -> int:
    config = RMQConnectionConfig.Builder().set_host("localhost").set_port(5672).build()
    return Link(config, lambda channel, first: None)._retries.attempts - 1


FIGURES = [
    ("connectors/rabbitmq.md", "up to {} times", reconnections),
    ("rest.md", "After {} wrong tokens in a row", lambda: FREE + 1),
    ("rest.md", "A client has {} seconds for the head", lambda: HEAD_SECONDS),
    ("rest.md", "A request may have {} MB", lambda: LARGEST_JSON >> 20),
]


@pytest.mark.parametrize(("name", "claim", "figure"), FIGURES, ids=[claim for _, claim, _ in FIGURES])
def test_a_page_states_the_figure_of_the_code(name, claim, figure):
    value = figure()
    assert claim.format(value if "MB" in claim else WORDS[value]) in page(name)


def test_every_part_of_a_secret_name_is_listed():
    listed = re.search(r"A setting is a secret if its name contains (.*?), as in Flink", page("security.md"))
    assert listed is not None
    parts = re.findall(r"`([^`]+)`", listed[1])
    assert sorted(parts) == sorted(_PARTS) and all(is_secret(f"a.{part.upper()}.b") for part in parts)


class _Timestamps(ProcessFunction):
    def process_element(self, value, ctx):
        yield ctx.timestamp()


@pytest.mark.parametrize(
    ("strategy", "timestamp"),
    [(WatermarkStrategy.no_watermarks(), None), (WatermarkStrategy.for_monotonous_timestamps(), -(1 << 63))],
)
def test_records_without_a_timestamp_as_the_page_on_time_says(strategy, timestamp):
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        stream = env.from_collection([1]).assign_timestamps_and_watermarks(strategy).process(_Timestamps())
        assert list(stream.execute_and_collect()) == [timestamp]
    assert "with `no_watermarks()` it stays without one" in page("time.md")


def test_a_double_divided_by_zero_as_the_page_on_functions_says():
    with in_process():
        t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        query = "SELECT x / 0, -x / 0, (x - x) / 0 FROM (VALUES (CAST(1 AS DOUBLE))) AS t(x)"
        with t_env.execute_sql(query).collect() as rows:
            assert str(list(next(rows))) == "[inf, -inf, nan]"
    assert "divided by zero is `Infinity`, `-Infinity` or `NaN`" in page("sql/functions.md")
