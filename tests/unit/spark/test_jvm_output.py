"""The cause in what a JVM prints that does not start, and the advice that fits."""

import subprocess

import pytest

from penstock.spark.sessions.jvm import ERRORS_OF_VM, check_java, explain

YARN = """\
Exception in thread "main" org.apache.spark.SparkException: When running with master 'yarn' either HADOOP_CONF_DIR or YARN_CONF_DIR must be set in the environment.
\tat org.apache.spark.deploy.SparkSubmitArguments.error(SparkSubmitArguments.scala:677)
"""  # noqa: E501
TOO_MUCH = """Error occurred during initialization of VM
Could not reserve enough space for 1048574951424KB object heap
"""
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
        (TOO_MUCH, "Could not reserve enough space for 1048574951424KB object heap", "Lower spark.driver.memory"),
        (SILENT, "it printed nothing", "Check the options for Spark"),
    ],
)
def test_a_jvm_that_did_not_start_is_explained(printed: str, cause: str, advice: str) -> None:
    said = explain(printed)
    assert cause in said
    assert advice in said
    assert "\n" not in said


def test_java_prints_its_own_errors_where_they_are_kept() -> None:
    command = [check_java()[0], ERRORS_OF_VM, "-Xmx999999g", "-version"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Could not reserve enough space" in ended.stderr and ended.stdout == ""
