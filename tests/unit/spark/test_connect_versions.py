"""Servers of Spark Connect whose version cannot serve a job."""

from types import SimpleNamespace

import pyspark
import pytest

from penstock.errors import ConfigurationError, UnsupportedOperation
from penstock.spark.sessions.connect_session import check_server, check_stages


def session(version: str) -> SimpleNamespace:
    """Return a session on a server of this version, as far as the checks look at it."""
    return SimpleNamespace(version=version, client=SimpleNamespace(host="connect.example.org:15002"))


@pytest.mark.parametrize("version", ["3.4.4", "3.0.0", "2.4.8"])
def test_a_server_without_barrier_tasks_is_refused_with_its_version(version):
    with pytest.raises(ConfigurationError) as refused:
        check_server(session(version))
    said = str(refused.value)
    assert f"connect.example.org:15002 runs Spark {version}, and slots need Spark 3.5 or newer" in said
    assert "use a newer server, or a master such as spark://host:7077" in said


@pytest.mark.parametrize("version", ["3.5.0", "3.10.0", "4.0.1", "4.3.0-SNAPSHOT", "10.0"])
def test_servers_that_can_start_slots_are_taken(version):
    check_server(session(version))


@pytest.mark.parametrize(
    ("here", "there", "is_refused"),
    [
        ("4.3.0", "4.0.1", True),
        ("4.0.1", "4.3.0", True),
        ("3.5.9", "3.5.9", True),
        ("4.1.0", "4.1.4", False),
        ("4.3.0", "4.10.0", False),
    ],
)
def test_batch_mode_names_both_versions_if_one_is_too_old(monkeypatch, here, there, is_refused):
    monkeypatch.setattr(pyspark, "__version__", here)
    if not is_refused:
        check_stages(session(there), "BATCH mode")
        return
    with pytest.raises(UnsupportedOperation) as refused:
        check_stages(session(there), "BATCH mode")
    said = str(refused.value)
    assert "BATCH mode over Spark Connect needs Spark 4.1 or newer on both sides" in said
    assert f"here is {here}, and the server at connect.example.org:15002 is {there}" in said
