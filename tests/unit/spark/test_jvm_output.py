"""The cause in what a JVM prints that does not start, and the advice that fits."""

import pytest

from penstock.spark.sessions.jvm import explain

YARN = """\
Exception in thread "main" org.apache.spark.SparkException: When running with master 'yarn' either HADOOP_CONF_DIR or YARN_CONF_DIR must be set in the environment.
\tat org.apache.spark.deploy.SparkSubmitArguments.error(SparkSubmitArguments.scala:677)
"""  # noqa: E501
MEMORY = """\
Invalid maximum heap size: -Xmxnonsense
Error: Could not create the Java Virtual Machine.
Error: A fatal exception has occurred. Program will exit.
"""
SILENT = ""


@pytest.mark.parametrize(
    ("printed", "cause", "advice"),
    [
        (YARN, "did not start: When running with master 'yarn' either HADOOP_CONF_DIR", "Set HADOOP_CONF_DIR"),
        (MEMORY, "Invalid maximum heap size: -Xmxnonsense", "spark.driver.memory"),
        (SILENT, "it printed nothing", "Check the options for Spark"),
    ],
)
def test_a_jvm_that_did_not_start_is_explained(printed: str, cause: str, advice: str) -> None:
    said = explain(printed)
    assert cause in said
    assert advice in said
    assert "\n" not in said
