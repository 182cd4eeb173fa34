"""Uids of sources and sinks of queries, which a program cannot give: they are the same with every parallelism."""

import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.service.launch.submission import with_defaults
from penstock.table import StreamTableEnvironment
from penstock.testing import in_process

NUMBERS = "CREATE TABLE {} (id BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '1')"
COUNTS = """
CREATE TABLE counts (k BIGINT, c BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (
    'connector' = 'jdbc', 'url' = 'jdbc:sqlite:{}', 'table-name' = 'counts')
"""


class Planned(Exception):
    """The plan is there; nothing is to run."""


def uids(parallelism: int, folder) -> set[str]:
    """The uids of a query that aggregates in two phases if it has several subtasks."""
    found = set()

    def look(plan):
        found.update(node.uid for node in plan.nodes if not node.uid.startswith("local-group-aggregate"))
        raise Planned

    with in_process(), with_defaults(on_plan=look):
        t_env = StreamTableEnvironment.create(
            StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
        )
        for name in ("numbers1", "numbers2"):
            t_env.execute_sql(NUMBERS.format(name))
        t_env.execute_sql(COUNTS.format(folder / "counts.db"))
        with pytest.raises(Planned):
            t_env.execute_sql("""
                INSERT INTO counts SELECT a.k, a.c
                FROM (SELECT MOD(id, 8) AS k, COUNT(*) AS c FROM numbers1 GROUP BY MOD(id, 8)) a
                JOIN (SELECT MOD(id, 8) AS k, COUNT(*) AS c FROM numbers2 GROUP BY MOD(id, 8)) b ON a.k = b.k
                """)
    return found


def test_a_savepoint_fits_with_every_parallelism(tmp_path):
    one, several = uids(1, tmp_path), uids(3, tmp_path)
    assert one == several
    assert any(uid.startswith("jdbc-") for uid in one)
