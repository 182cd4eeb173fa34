"""Tables in Elasticsearch."""

from __future__ import annotations

from penstock.table import EnvironmentSettings, StreamTableEnvironment
from penstock.testing import in_process


def test_the_last_row_of_a_key_is_its_document(indices, index):
    with in_process():
        t_env = StreamTableEnvironment.create(environment_settings=EnvironmentSettings.in_streaming_mode())
        t_env.get_config().set("parallelism.default", "1")
        t_env.execute_sql(
            "CREATE TABLE docs (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ("
            f"'connector' = 'elasticsearch-7', 'hosts' = '{indices.url}', 'index' = '{index}')"
        )
        t_env.execute_sql("CREATE TEMPORARY VIEW v AS SELECT * FROM (VALUES ('a', 1), ('b', 2), ('a', 3)) AS t(k, n)")
        t_env.execute_sql("INSERT INTO docs SELECT k, SUM(n) FROM v GROUP BY k").wait()
    assert indices.documents(index) == {"a": {"k": "a", "n": 4}, "b": {"k": "b", "n": 2}}
