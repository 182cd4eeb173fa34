"""What a failed streaming query says, in the words of each version of Spark."""

import pytest

from penstock.spark.frames.streaming_source import reason_of

SPARK_4 = """\
[USER_RAISED_EXCEPTION] no such thing SQLSTATE: P0001
== DataFrame ==
"raise_error" was called from
/home/me/program.py:4
"""
SPARK_3 = """\
An error occurred while calling o56.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times
\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2898)
Caused by: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to file:/tmp/batches.
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.taskFailedWhileWritingRowsError(QueryExecutionErrors.scala:774)
\t... 1 more
Caused by: java.lang.RuntimeException: no such thing
\tat org.apache.spark.sql.catalyst.expressions.RaiseError.eval(misc.scala:1)
\t... 2 more
"""


@pytest.mark.parametrize(
    ("said", "reason"),
    [(SPARK_4, "[USER_RAISED_EXCEPTION] no such thing SQLSTATE: P0001"), (SPARK_3, "no such thing")],
    ids=["Spark 4", "Spark 3.5"],
)
def test_thereason_of_a_failed_query_is_one_sentence(said, reason):
    assert reason_of(RuntimeError(said)) == reason
