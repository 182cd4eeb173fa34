"""Options of queries: what is checked, what they mean for a job, and names that are nearly right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.common import Configuration
from penstock.errors import ValidationException
from penstock.table import EnvironmentSettings, TableConfig, TableEnvironment
from penstock.testing import in_process

MINI = "table.exec.mini-batch"


@pytest.fixture
def t_env() -> Iterator[TableEnvironment]:
    with in_process():
        yield TableEnvironment.create(EnvironmentSettings.in_streaming_mode())


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (f"{MINI}.enabled", "yes", "true or false"),
        (f"{MINI}.allow-latency", "soon", "a time"),
        (f"{MINI}.allow-latency", "-1 s", "a time"),
        (f"{MINI}.size", "many", "a whole number"),
        ("table.exec.state.ttl", "x", "a time"),
        ("table.exec.resource.default-parallelism", "1.5", "a whole number"),
        ("table.local-time-zone", "Mars/Olympus", "a time zone"),
        ("table.sql-dialect", "hive", "default"),
        (f"{MINI}.sise", "5", f"did you mean '{MINI}.size'"),
        ("table.exec.state.tll", "1 h", "did you mean 'table.exec.state.ttl'"),
    ],
)
def test_wrong_values_and_names_are_refused(key, value, words):
    with pytest.raises(ValidationException, match=words):
        TableConfig().set(key, value)


def test_other_options_are_taken():
    config = TableConfig().set("table.optimizer.join-reorder-enabled", True).set("table.of.somebody.else", "x")
    assert config.to_map()["table.of.somebody.else"] == "x"


def test_options_of_a_configuration_are_checked_when_a_query_runs():
    configuration = Configuration()
    configuration.set_string(f"{MINI}.enabled", "yes")
    with in_process():
        t_env = TableEnvironment.create(configuration)
        with pytest.raises(ValidationException, match="true or false"):
            t_env.execute_sql("SELECT 1")


@pytest.mark.parametrize(
    ("latency", "size", "words"), [("0 s", "10", "longer than zero"), ("1 s", "0", "above zero"), ("1 s", "", "above")]
)
def test_a_mini_batch_needs_its_bounds(t_env, latency, size, words):
    config = t_env.get_config().set(f"{MINI}.enabled", "true").set(f"{MINI}.allow-latency", latency)
    if size:
        config.set(f"{MINI}.size", size)
    with pytest.raises(ValidationException, match=words):
        t_env.execute_sql("SELECT 1")


@pytest.mark.parametrize(("latency", "gathering"), [("5 s", 100), ("20 ms", 20)])
def test_input_is_gathered_no_longer_than_a_mini_batch_may_last(t_env, latency, gathering):
    t_env.get_config().set(f"{MINI}.enabled", "true").set(f"{MINI}.allow-latency", latency).set(f"{MINI}.size", "100")
    t_env.execute_sql("SELECT 1")
    assert t_env._env.get_buffer_timeout() == gathering


@pytest.mark.parametrize(("size", "most"), [("5000", 5000), ("2000000", 1_000_000)])
def test_an_epoch_reads_no_more_than_a_mini_batch(t_env, size, most):
    t_env.get_config().set(f"{MINI}.enabled", "true").set(f"{MINI}.allow-latency", "1 s").set(f"{MINI}.size", size)
    t_env.execute_sql("SELECT 1")
    assert t_env._env.settings.max_records == most


def test_the_parallelism_of_queries(t_env):
    t_env.get_config().set("table.exec.resource.default-parallelism", "3")
    t_env.execute_sql("SELECT 1")
    assert t_env._env.get_parallelism() == 3


def test_a_savepoint_to_start_from_is_taken_back(t_env):
    t_env.execute_sql("SET 'execution.state-recovery.path' = '/nowhere'")
    with pytest.raises(Exception, match="nowhere"):
        t_env.execute_sql("SELECT 1")
    t_env.execute_sql("RESET 'execution.state-recovery.path'")
    assert [tuple(row) for row in t_env.execute_sql("SELECT 1").collect()] == [(1,)]


def test_the_names_of_the_first_catalog_and_database():
    configuration = Configuration()
    configuration.set_string("table.builtin-catalog-name", "c")
    configuration.set_string("table.builtin-database-name", "d")
    with in_process():
        t_env = TableEnvironment.create(configuration)
        assert (t_env.get_current_catalog(), t_env.get_current_database()) == ("c", "d")


@pytest.mark.parametrize(("mode", "rows"), [("batch", [1, 2]), ("streaming", None)])
def test_an_order_without_a_limit_has_a_default_one_in_batch_mode(mode, rows):
    with in_process():
        t_env = TableEnvironment.create(getattr(EnvironmentSettings, f"in_{mode}_mode")())
        t_env.get_config().set("table.exec.sort.default-limit", "2")
        values = "(VALUES (3), (1), (2)) AS t(x)"
        if rows is None:
            assert len(list(t_env.execute_sql(f"SELECT x FROM {values}").collect())) == 3
            return
        assert [row[0] for row in t_env.execute_sql(f"SELECT x FROM {values} ORDER BY x").collect()] == rows
        limited = f"SELECT x FROM {values} ORDER BY x DESC LIMIT 1"
        assert [row[0] for row in t_env.execute_sql(limited).collect()] == [3]
        assert len(list(t_env.execute_sql(f"SELECT x FROM {values}").collect())) == 3


def test_the_width_of_a_column(t_env, capsys):
    t_env.get_config().set("table.display.max-column-width", "7")
    t_env.execute_sql("SELECT 'abcdefghij' AS x").print()
    assert "| +I | abcd... |" in capsys.readouterr().out
