"""What a driver in a cluster and its clients say to each other, without a server."""

import base64

import pytest

from penstock.errors import ConfigurationError
from penstock.service.cli.cluster_drivers import continues, runs_in_cluster
from penstock.service.launch.config_files import Setting, Sourced
from penstock.spark.hosts.connect_driver import access, check_program
from penstock.spark.hosts.driver_mailbox import MOST_BYTES, Reader, Stream
from penstock.spark.sessions.connect_session import connect_session

TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"


def test_a_client_reads_each_byte_once():
    stream, reader = Stream(), Reader()
    stream.add(b"one ")
    assert reader.take_new(stream.description()) == (b"one ", 0)
    stream.add(b"two")
    assert reader.take_new(stream.description()) == (b"two", 0)
    stream.forget(reader.position)
    assert base64.b64decode(stream.description()["data"]) == b""
    stream.add(b" three")
    assert reader.take_new(stream.description()) == (b" three", 0)
    assert reader.take_new(stream.description()) == (b"", 0)
    assert stream.end == len("one two three")


def test_a_client_that_reads_late_learns_how_much_it_has_missed():
    stream, reader = Stream(), Reader()
    stream.add(b"first")
    stream.add(b"x" * MOST_BYTES)
    assert reader.take_new(stream.description()) == (b"x" * MOST_BYTES, len("first"))


def test_a_position_that_is_not_there_yet_forgets_no_more_than_there_is():
    stream = Stream()
    stream.add(b"abc")
    stream.forget(100)
    stream.add(b"d")
    assert stream.description() == {"start": 3, "data": base64.b64encode(b"d").decode()}


@pytest.mark.parametrize(
    ("url", "variable", "given"),
    [
        ("sc://host:15002", None, ("sc://host:15002", None)),
        ("sc://host:15002", "secret", ("sc://host:15002", "secret")),
        ("sc://host:15002/;token=a;user_id=b", None, ("sc://host:15002/;user_id=b", "a")),
        ("sc://host:1/;session_id=c;use_ssl=true", None, ("sc://host:1/;use_ssl=true", None)),
        ("sc://host:1/;use_ssl=false;token=a%20b", None, ("sc://host:1/;authorization=Bearer%20a%20b", None)),
        ("sc://host:1/;;use_ssl=false", "a b", ("sc://host:1/;authorization=Bearer%20a%20b", None)),
    ],
)
def test_how_a_driver_shows_its_token(url, variable, given, monkeypatch):
    monkeypatch.delenv(TOKEN, raising=False)
    if variable is not None:
        monkeypatch.setenv(TOKEN, variable)
    assert access(url) == given


def test_a_program_that_a_message_cannot_hold_is_refused():
    check_program("job.zip", 64 << 20)
    with pytest.raises(ConfigurationError, match=r"job.zip has 67108865 bytes, and a driver .* at most 67108864"):
        check_program("job.zip", (64 << 20) + 1)


def test_a_program_in_another_process_cannot_be_given_to_the_cluster():
    with pytest.raises(ConfigurationError, match=r"`penstock run -m sc://… -D spark.submit.deployMode=cluster`"):
        connect_session("sc://127.0.0.1:1", "name", {"spark.submit.deployMode": "cluster"}, 1)


@pytest.mark.parametrize(
    ("options", "continued"),
    [
        ({}, False),
        ({"execution.checkpointing.dir": "d", "pipeline.job-id": "1" * 32}, False),
        ({"execution.checkpointing.dir": "d", "pipeline.job-id": "1" * 32, "execution.recover": "none"}, False),
        ({"execution.checkpointing.dir": "d", "pipeline.job-id": "1" * 32, "execution.recover": "LATEST"}, True),
        ({"state.checkpoints.dir": "d", "pipeline.job-id": "1" * 32, "execution.recover": "latest"}, True),
    ],
)
def test_whether_a_program_continues(options, continued):
    assert continues(Sourced([Setting(name, value, "test") for name, value in options.items()])) == continued


@pytest.mark.parametrize(
    ("master", "mode", "cluster"),
    [
        ("sc://host", "cluster", True),
        ("sc://host", "client", False),
        ("sc://host", None, False),
        ("local[2]", "cluster", False),
        (None, "cluster", False),
    ],
)
def test_where_the_driver_runs(master, mode, cluster, monkeypatch):
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    given = {"spark.master": master, "spark.submit.deployMode": mode}
    settings = Sourced([Setting(name, value, "test") for name, value in given.items() if value is not None])
    assert runs_in_cluster(settings) == cluster


def test_a_wrong_mode_is_refused():
    settings = Sourced([Setting("spark.remote", "sc://host", "test"), Setting("spark.submit.deployMode", "x", "test")])
    with pytest.raises(ConfigurationError, match=r"spark.submit.deployMode is 'x'; allowed are 'client' and 'cluster'"):
        runs_in_cluster(settings)
