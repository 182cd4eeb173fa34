"""Which settings tables share with the stream environment below them."""

import pytest

from penstock.common import Configuration
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.errors import ValidationException
from penstock.table import EnvironmentSettings, StreamTableEnvironment, TableEnvironment
from penstock.table.api.group_windows import Over, Tumble
from penstock.table.expression.expression_functions import UNBOUNDED_ROW, col, lit
from penstock.testing import in_process
from penstock.util.java_utils import get_j_env_configuration

BATCH = RuntimeExecutionMode.BATCH


@pytest.fixture
def env():
    with in_process():
        made = StreamExecutionEnvironment.get_execution_environment()
        made.configure(Configuration().set_string("table.exec.batch.engine", "penstock"))
        yield made.set_parallelism(1)


@pytest.fixture
def batch(env):
    return StreamTableEnvironment.create(env.set_runtime_mode(BATCH))


def rows(table):
    with table.execute().collect() as found:
        return [tuple(row) for row in found]


NUMBERS = [(1, 2, 10), (3, 2, 15), (2, 1, 8), (1, 5, 7)]
NAMES = ["a", "b", "ts"]


def test_a_group_has_one_row_in_batch_mode(batch):
    table = batch.from_elements(NUMBERS, NAMES)
    counts = table.group_by(table.a).select(table.a, table.b.sum)
    with counts.execute().collect() as found:
        assert sorted((str(row.get_row_kind()), *row) for row in found) == [("+I", 1, 7), ("+I", 2, 1), ("+I", 3, 2)]
    assert sorted(counts.to_pandas().values.tolist()) == [[1, 7], [2, 1], [3, 2]]
    assert [row[1] for row in rows(table.order_by(table.b.desc, table.a))] == [5, 2, 2, 1]


def test_windows_over_numbers_in_batch_mode(batch):
    table = batch.from_elements(NUMBERS, NAMES)
    tumble = Tumble.over(lit(5).milli).on(col("ts")).alias("w")
    assert sorted(rows(table.window(tumble).group_by(col("w")).select(col("b").sum))) == [(2,), (2,), (6,)]
    over = Over.partition_by(col("a")).order_by(col("ts")).preceding(UNBOUNDED_ROW).alias("o")
    sums = table.over_window(over).select(col("a"), col("ts"), col("b").sum.over(col("o")))
    assert sorted(rows(sums)) == [(1, 7, 5), (1, 10, 7), (2, 8, 1), (3, 15, 2)]


def test_the_mode_is_that_of_the_environment_whoever_sets_it(env):
    t_env = StreamTableEnvironment.create(env)
    query = "SELECT n FROM (VALUES (2), (1)) AS t(n) ORDER BY n"
    with pytest.raises(Exception, match="Sort"):
        t_env.execute_sql(query)
    env.set_runtime_mode(BATCH)
    assert rows(t_env.sql_query(query)) == [(1,), (2,)]
    assert t_env.get_config().get("execution.runtime-mode", "nothing") == "BATCH"
    t_env.get_config().set("execution.runtime-mode", "streaming")
    with pytest.raises(Exception, match="Sort"):
        t_env.execute_sql(query)
    with pytest.raises(ValidationException, match="streaming or batch"):
        t_env.get_config().set("execution.runtime-mode", "automatic")


def test_settings_come_before_the_environment_and_reach_it(env):
    configuration = Configuration().set_string("parallelism.default", "3").set_string("pipeline.name", "mine")
    settings = EnvironmentSettings.new_instance().with_configuration(configuration).in_batch_mode().build()
    t_env = StreamTableEnvironment.create(env, settings)
    assert env.get_parallelism() == 3 and env.settings.mode is BATCH and env.settings.job_name == "mine"
    assert rows(t_env.sql_query("SELECT n FROM (VALUES (2), (1)) AS t(n) ORDER BY n")) == [(1,), (2,)]
    other = StreamTableEnvironment.create(env, EnvironmentSettings.in_streaming_mode())
    assert env.settings.mode is RuntimeExecutionMode.STREAMING and not other.is_batch


def test_options_of_the_environment_are_those_of_its_tables(env):
    env.configure(Configuration().set_string("table.local-time-zone", "Asia/Shanghai").set_string("my.own", "7"))
    t_env = StreamTableEnvironment.create(env)
    config = t_env.get_config()
    assert (config.get_local_timezone(), config.get("my.own", "")) == ("Asia/Shanghai", "7")
    assert config.get("parallelism.default", "") == "1"
    env.set_parallelism(2)
    assert config.get("parallelism.default", "") == "2"
    assert rows(t_env.sql_query("SELECT CAST(TO_TIMESTAMP_LTZ(0, 3) AS STRING)")) == [("1970-01-01 08:00:00.000",)]
    config.set("my.own", "8")
    assert config.get("my.own", "") == "8" and "parallelism.default" not in config.to_map()
    config.reset("my.own")
    assert config.get("my.own", "") == "7"


def test_tables_know_the_modes_streaming_and_batch_only(env):
    env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    with pytest.raises(ValidationException, match=r"'execution\.runtime-mode' is streaming or batch, not 'AUTOMATIC'"):
        StreamTableEnvironment.create(env)


def test_settings_are_a_configuration():
    settings = EnvironmentSettings.new_instance().in_batch_mode().with_built_in_catalog_name("mine").build()
    held = settings.get_configuration()
    assert held.get_string("execution.runtime-mode", "") == "BATCH"
    assert settings.get_built_in_catalog_name() == held.get_string("table.builtin-catalog-name", "") == "mine"
    assert not settings.is_streaming_mode()
    with in_process():
        assert TableEnvironment.create(settings).get_current_catalog() == "mine"


def test_an_environment_needs_an_environment_or_settings():
    with pytest.raises(ValueError, match="stream_execution_environment or environment_settings"):
        StreamTableEnvironment.create()


def test_the_configuration_behind_an_environment_knows_what_methods_have_set(env):
    env.set_runtime_mode(BATCH).set_buffer_timeout(30).set_max_parallelism(64).enable_checkpointing(5_000)
    found = get_j_env_configuration(env._j_stream_execution_environment).to_dict()
    assert found["execution.runtime-mode"] == "BATCH" and found["pipeline.max-parallelism"] == "64"
    assert found["execution.buffer-timeout.interval"] == "30 ms"
    assert found["execution.checkpointing.interval"] == "5000 ms"
    assert "pipeline.object-reuse" not in found
