"""Figures and claims that pages state are those of the code. A new claim of this kind gets a line here."""

import inspect
import re
from pathlib import Path

import pytest

from penstock.api.settings import checkpoint_config
from penstock.api.settings.checkpoint_storage import JobManagerCheckpointStorage
from penstock.base import storage
from penstock.cep import cep_operator
from penstock.common import Time, WatermarkStrategy
from penstock.common.secrets import _PARTS, is_secret
from penstock.connectors.elasticsearch.elasticsearch_sinks import ElasticsearchSinkBuilderBase
from penstock.connectors.files import file_source
from penstock.connectors.kafka import kafka_source
from penstock.connectors.rabbitmq import rabbitmq_writer
from penstock.connectors.rabbitmq.connection import Link, RMQConnectionConfig
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.file_system import RollingPolicy
from penstock.datastream.functions import ProcessFunction
from penstock.datastream.state import StateTtlConfig
from penstock.engine.job import queued_queries, slot_queries
from penstock.engine.observe import log_capture, rates
from penstock.engine.operators.functions import async_requests, async_wait
from penstock.engine.operators.sources import source_function
from penstock.engine.queryable import query_requests, queryable_client
from penstock.engine.queryable.queryable_client import QueryableStateClient
from penstock.engine.snapshots import writing
from penstock.engine.state import rocksdb
from penstock.engine.state.key_groups import UPPER_BOUND_MAX_PARALLELISM
from penstock.formats import decimal_values, message_batches
from penstock.formats.csv import csv_quotes
from penstock.metrics import histogram
from penstock.service.launch import termination
from penstock.service.options import gateway_options
from penstock.service.options.environment_options import OPTIONS
from penstock.service.options.rest_options import OPTIONS as REST_OPTIONS
from penstock.service.reporters import reporter_configuration, reporter_threads
from penstock.service.rest.answers import checkpoints
from penstock.service.rest.http_server import HEAD_SECONDS
from penstock.service.rest.middleware import LARGEST_JSON
from penstock.service.rest.rate_limit import FREE
from penstock.service.server import job_history
from penstock.spark.links import links
from penstock.spark.sessions import class_archive, jvm, session, versions
from penstock.spark.slots import attempt
from penstock.table import EnvironmentSettings, TableEnvironment
from penstock.table.connectors import datagen
from penstock.table.operators.aggregate import group_aggregate
from penstock.table.operators.join import append_join, join_state, timed_rows
from penstock.table.operators.rank import ordered_rows
from penstock.table.operators.window import window_base
from penstock.testing import in_process

DOCS = Path(__file__).parents[2] / "docs"
WORDS = {1: "one", 2: "two", 4: "four", 5: "five", 7: "seven", 10: "ten", 11: "eleven", 100: "hundred"} | {
    10_000: "ten thousand"
}


def page(name: str) -> str:
    """The text of a page in one line."""
    return re.sub(r"\s+", " ", (DOCS / name).read_text())


def reconnections() -> int:
    config = RMQConnectionConfig.Builder().set_host("localhost").set_port(5672).build()
    return Link(config, lambda channel, first: None)._retries.attempts - 1


def default_of(function, argument):
    return round(inspect.signature(function).parameters[argument].default)


def rest_default(name):
    default = next(option.default for option in REST_OPTIONS if option.name == f"rest.flamegraph.{name}")
    return int(default.removesuffix(" ms"))


def option_default(name: str, unit: str) -> int:
    default = next(option.default for option in OPTIONS if option.name == name)
    return int(default.removesuffix(f" {unit}"))


def cleanup_size():
    return (
        StateTtlConfig.new_builder(Time.seconds(1))
        .build()
        .get_cleanup_strategies()
        .get_incremental_cleanup_strategy()
        .get_cleanup_size()
    )


FIGURES = [
    ("connectors/rabbitmq.md", "up to {} times", lambda: WORDS[reconnections()]),
    ("connectors/elasticsearch.md", "when there are {} or 5 MB", lambda: ElasticsearchSinkBuilderBase()._most_actions),
    ("connectors/elasticsearch.md", "or {} MB of them", lambda: ElasticsearchSinkBuilderBase()._most_megabytes),
    ("connectors/files.md", "at {} MiB, after", lambda: RollingPolicy.default_rolling_policy().part_size >> 20),
    ("connectors/files.md", "after {} s, or", lambda: RollingPolicy.default_rolling_policy().rollover_interval // 1000),
    ("connectors/formats.md", "longer than {} characters", lambda: csv_quotes._LONGEST_BARE),
    ("connectors/formats.md", "written with {} digits", lambda: decimal_values.MOST_DIGITS),
    ("connectors/kafka.md", "every {} minutes", lambda: kafka_source.DISCOVERY_MILLIS // 60_000),
    ("connectors/rabbitmq.md", "in transactions of up to {}", lambda: rabbitmq_writer.BATCH_MESSAGES),
    ("async.md", "(at most {})", lambda: async_requests.MOST_THREADS),
    ("async.md", "waits a little ({} ms;", lambda: round(1000 * async_wait.LINGER_SECONDS)),
    ("async.md", "{} ms if no record came", lambda: round(1000 * async_wait.IDLE_LINGER_SECONDS)),
    ("cep.md", "{} events in them", lambda: WORDS[cep_operator.MANY]),
    ("cli.md", "within about {} seconds", lambda: WORDS[termination.SUSPEND_SECONDS + termination.EPOCH_SECONDS]),
    ("columns.md", "at least a {} messages", lambda: WORDS[message_batches.LEAST_COLUMNS]),
    ("compatibility.md", "Spark {} to 4.3", lambda: ".".join(map(str, versions.OLDEST))),
    ("compatibility.md", "Spark 3.5 to {}", lambda: ".".join(map(str, versions.NEWEST))),
    ("compatibility.md", "with Java {} or newer", lambda: jvm.OLDEST_JAVA),
    ("configuration.md", "at most {} |", lambda: UPPER_BOUND_MAX_PARALLELISM),
    ("configuration.md", "at least {} ms |", lambda: checkpoint_config.SHORTEST_MILLIS),
    ("configuration.md", "have not started after {} seconds", lambda: WORDS[attempt.QUIET_SECONDS]),
    ("configuration.md", "may fail {} times", lambda: WORDS[session.TASK_FAILURES]),
    ("configuration.md", "says, and {} more", lambda: WORDS[session.SPARE_THREADS]),
    ("configuration.md", "the {} that were used last", lambda: WORDS[class_archive._KEPT]),
    ("configuration.md", "other requests may have {} MB", lambda: LARGEST_JSON >> 20),
    ("deployment/spark-connect.md", "or {} s if that is shorter", lambda: round(session.SERVER_SECONDS)),
    ("fault-tolerance.md", "when there are {} files", lambda: writing.LONGEST_CHAIN),
    ("fault-tolerance.md", "at most {} MB", lambda: JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE >> 20),
    ("logging.md", "and at least {}.", lambda: round(log_capture.FEWEST_PER_SECOND)),
    ("metrics.md", "at most {} per cent", lambda: WORDS[round(100 * histogram.ACCURACY)]),
    ("metrics.md", "over the last {} to ten seconds", lambda: WORDS[rates.SPAN_SECONDS]),
    ("queryable-state.md", "the default is {}", lambda: queryable_client.DEFAULT_PORT),
    ("queryable-state.md", "within the epoch, about every {} ms", lambda: round(1000 * slot_queries.PAUSE_SECONDS)),
    ("queryable-state.md", "epochs last about {} ms", lambda: queued_queries.BRISK_MILLIS),
    ("queryable-state.md", "One answer may have {} MB", lambda: query_requests.MOST_ANSWER_BYTES >> 20),
    (
        "queryable-state.md",
        "in time; {} s, unless",
        lambda: default_of(QueryableStateClient, "timeout"),
    ),
    ("reporters.md", "up to {} s for this", lambda: round(reporter_threads.LAST_SECONDS)),
    ("reporters.md", "| `interval` | `{} s` |", lambda: reporter_configuration.DEFAULT_MILLIS // 1000),
    ("rest.md", "After {} wrong tokens in a row", lambda: WORDS[FREE + 1]),
    ("rest.md", "A client has {} seconds for the head", lambda: WORDS[HEAD_SECONDS]),
    ("rest.md", "A request may have {} MB", lambda: LARGEST_JSON >> 20),
    ("rest.md", "lists N checkpoints instead of {}", lambda: WORDS[checkpoints.HISTORY]),
    ("rest.md", "for {} s unless", lambda: rest_default("num-samples") * rest_default("delay-between-samples") // 1000),
    ("security.md", "closed after {} seconds at the latest", lambda: WORDS[links.HANDSHAKE_SECONDS]),
    ("server.md", "the newest {} archived jobs", lambda: f"{job_history.MOST_SHOWN:,}"),
    ("sql/client.md", "port {} of this machine", lambda: gateway_options.PORT),
    ("sql/connectors.md", "| `rows-per-second` | {} |", lambda: datagen.ROWS_PER_SECOND),
    ("sql/how-a-query-runs.md", "at most {} rows", lambda: group_aggregate.FEW),
    ("sql/how-a-query-runs.md", "at most {} MB in columns", lambda: window_base.MOST_BYTES >> 20),
    ("sql/how-a-query-runs.md", "rows by key, in pages of {}", lambda: append_join.PAGE_ROWS),
    ("sql/how-a-query-runs.md", "buckets if a key has more than {}", lambda: join_state.MOST_TOGETHER),
    ("sql/how-a-query-runs.md", "in order; with more than {}", lambda: ordered_rows.MOST_TOGETHER),
    ("sql/how-a-query-runs.md", "with their times; with more than {}", lambda: timed_rows.PAGE_ROWS),
    ("state.md", "A slot has {} MB", lambda: rocksdb.DEFAULT_MEMORY >> 20),
    ("state.md", "checks n entries instead of {};", lambda: WORDS[cleanup_size()]),
    ("storage.md", "up to {} times within seven seconds", lambda: WORDS[storage.ATTEMPTS - 1]),
    ("storage.md", "up to five times within {} seconds", lambda: WORDS[round(sum(storage._WAITS))]),
    ("time.md", "of processing time ({} ms unless", lambda: option_default("pipeline.auto-watermark-interval", "ms")),
    ("time.md", "`set_buffer_timeout` ({} ms by", lambda: option_default("execution.buffer-timeout.interval", "ms")),
    ("time.md", "`penstock.epoch.max-time`, {} s.", lambda: option_default("penstock.epoch.max-time", "s")),
    ("streams.md", "a buffer of {} elements", lambda: f"{source_function.BUFFERED_ELEMENTS:,}"),
    ("streams.md", "files over {} MiB are split", lambda: file_source.SPLIT_BYTES >> 20),
]
"""Pages, sentences, and the figures of the code that take the place of `{}`."""


@pytest.mark.parametrize(("name", "sentence", "figure"), FIGURES, ids=[f"{name}: {text}" for name, text, _ in FIGURES])
def test_a_page_states_the_figure_of_the_code(name, sentence, figure):
    assert sentence.format(figure()) in page(name)


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
