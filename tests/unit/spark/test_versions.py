"""Which versions of Spark are taken, with a warning, and refused."""

import logging
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from penstock.errors import ConfigurationError, SlotLost
from penstock.spark.sessions import versions
from penstock.spark.slots.slot_tasks import loss, reason

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("version", ["3.5.0", "3.5.9", "4.0.0.dev1", "4.1.4", "4.3.0"])
def test_versions_of_the_range(version, caplog, monkeypatch):
    monkeypatch.setattr(versions, "find_spec", lambda name: object())
    with caplog.at_level(logging.WARNING, "penstock"):
        versions.check_spark(version)
    assert not caplog.records


@pytest.mark.parametrize("version", ["3.4.4", "2.4.8"])
def test_an_older_one_is_refused(version):
    with pytest.raises(ConfigurationError) as refused:
        versions.check_spark(version)
    said = str(refused.value)
    assert f"this is Spark {version} (" in said
    assert 'Penstock needs Spark 3.5 to 4.3. Install a newer version: pip install "pyspark>=3.5,<4.4"' in said


def test_spark_3_5_needs_distutils(monkeypatch):
    monkeypatch.setattr(versions, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"Spark 3.5.9 needs the module distutils.*setuptools<81"):
        versions.check_spark("3.5.9")
    versions.check_spark("4.0.0")


def test_a_newer_one_is_used_with_one_warning(caplog):
    with caplog.at_level(logging.WARNING, "penstock.job"):
        versions.check_spark("5.0.1")
        versions.check_spark("5.0.1")
    assert [record.getMessage() for record in caplog.records] == [
        "this is Spark 5.0.1, and this release of Penstock was tested with Spark 3.5 to 4.3 only"
    ]


def test_pip_installs_the_same_range():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (spark,) = [one for one in map(Requirement, project["dependencies"]) if one.name == "pyspark"]
    oldest, newest = versions.OLDEST, versions.NEWEST
    assert spark.specifier.contains(f"{oldest[0]}.{oldest[1]}.0")
    assert not spark.specifier.contains(f"{oldest[0]}.{oldest[1] - 1}.99")
    assert spark.specifier.contains(f"{newest[0]}.{newest[1]}.9")
    assert not spark.specifier.contains(f"{newest[0]}.{newest[1] + 1}.0")


@pytest.mark.parametrize(
    "said",
    [
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11, PySpark",
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version (3, 12) than that in driver 3.11, PySpark",
    ],
    ids=["Spark 4", "Spark 3.5"],
)
def test_executors_with_another_python_are_an_error_that_no_restart_mends(said):
    error = loss(reason(f"org.apache.spark.SparkException: Job aborted\n  {said} cannot run\n  at Error"))
    assert isinstance(error, ConfigurationError)
    assert "is Python 3.12. The driver's is " in str(error)
    assert "PYSPARK_PYTHON" in str(error)


def test_other_reasons_are_a_lost_slot():
    error = loss("the slots did not start: " + reason("ExecutorLostFailure"))
    assert isinstance(error, SlotLost)
    assert str(error) == "the slots did not start: an executor was lost, and its slots with it"
