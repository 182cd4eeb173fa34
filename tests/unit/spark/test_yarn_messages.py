"""Messages about settings of YARN."""

import pytest
from pyspark import SparkConf

from penstock.spark.sessions.session import _advice, _warn_of_uploads


def configuration(**settings):
    made = SparkConf(loadDefaults=False)
    made.setAll([(name.replace("_", "."), value) for name, value in settings.items()])
    return made


@pytest.mark.parametrize(
    "reason",
    [
        "YarnException: Failed to submit application_1_1 to YARN : submitted by user me to unknown queue: nowhere",
        "YarnException: application_1_1 is rejected: queue root.nowhere does not exist",
        "AccessControlException: User me does not have permission to submit application_1_1 to queue nowhere",
    ],
)
def test_a_refused_queue_is_named(reason):
    error = RuntimeError(f"An error occurred while calling None.\n: org.apache.hadoop.{reason}\n\tat org.apache")
    assert "spark.yarn.queue is 'nowhere'" in _advice(error, configuration(spark_yarn_queue="nowhere"))
    assert "spark.yarn.queue" not in _advice(RuntimeError("no such host"), configuration(spark_yarn_queue="nowhere"))


@pytest.mark.parametrize(
    ("settings", "is_told"),
    [
        ({"spark_master": "yarn"}, True),
        ({"spark_master": "yarn", "spark_yarn_jars": "local:/jars/*"}, False),
        ({"spark_master": "yarn", "spark_yarn_archive": "hdfs:///jars.zip"}, False),
        ({"spark_master": "local[2]"}, False),
    ],
)
def test_that_jars_are_uploaded_is_told(caplog, settings, is_told):
    _warn_of_uploads(configuration(**settings))
    assert ("spark.yarn.archive" in caplog.text) == is_told
