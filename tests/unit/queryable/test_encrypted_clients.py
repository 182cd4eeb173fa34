"""Clients that speak TLS with the server of queryable state, and those that should and do not."""

import socket
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from penstock.base import pickling
from penstock.engine.queryable.query_requests import Cut, QueryAnswer
from penstock.engine.queryable.queryable_tls import Certificate
from penstock.engine.queryable.server import QueryServer
from penstock.engine.queryable.slot_states import Pack
from penstock.errors import ConfigurationError, StateUnavailable
from penstock.queryable import QueryableStateClient
from penstock.spark.links.encryption import new_identity

TOKEN = "only for friends"


class Echo:
    """A job whose state holds, for each key, a text that is as long as the key says."""

    def query(self, request):
        found = [(place, "x" * key) for place, key in enumerate(request.keys)]
        packs = (Pack(len(found), pickling.dumps(found)),)
        future = Future()
        future.set_result(QueryAnswer(request.name, "value", Cut(0, 1, 2), request.keys, packs=packs))
        return future

    def queryable_states(self):
        return []


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    made = new_identity("127.0.0.1")
    (folder / "certificate.pem").write_bytes(made.certificate)
    (folder / "key.pem").write_bytes(made.key)
    return Certificate(True, str(folder / "certificate.pem"), str(folder / "key.pem"))


@pytest.fixture(scope="module")
def server(files):
    made = QueryServer("127.0.0.1", [0], TOKEN, files.context())
    made.jobs["job"] = Echo()
    yield made
    made.close()


def test_answers_of_any_length_come_through_to_many_threads_at_once(server, files):
    lengths = [0, 1, 1000, 16_000, 16_385, 100_000, 3_000_000]
    with QueryableStateClient(*server.address, token=TOKEN, tls=files.certificate) as client:

        def ask(number):
            length = lengths[number % len(lengths)]
            return len(client.get_kv_state("job", "q", length).result(60).value()) == length

        with ThreadPoolExecutor(8) as threads:
            assert all(threads.map(ask, range(140)))
        futures = [client.get_kv_state("job", "q", number % 50) for number in range(2000)]
        assert [len(future.result(60).value()) for future in futures] == [number % 50 for number in range(2000)]


def test_who_does_not_speak_tls_or_trusts_nobody_gets_nothing(server):
    with pytest.raises(StateUnavailable, match="certificate verify failed"):
        QueryableStateClient(*server.address, token=TOKEN, tls=True).states("job")
    with pytest.raises(StateUnavailable, match="did not answer like a server"):
        QueryableStateClient(*server.address, token=TOKEN, timeout=1).states("job")
    with socket.create_connection(server.address, timeout=60) as plain:
        plain.sendall(b"hello, in the clear\r\n" * 10)
        assert b"penstock" not in plain.recv(1 << 16)


def test_a_server_without_tls_is_told_from_one_with_it(files):
    plain = QueryServer("127.0.0.1", [0], TOKEN)
    try:
        with pytest.raises(StateUnavailable, match="did not answer like a server"):
            QueryableStateClient(*plain.address, token=TOKEN, tls=files.certificate, timeout=5).states("job")
    finally:
        plain.close()


def test_files_that_are_no_certificate_are_told_of_at_once(files, tmp_path):
    assert Certificate().context() is None
    with pytest.raises(ConfigurationError, match=r"set queryable-state\.ssl\.certificate"):
        Certificate(True).context()
    (tmp_path / "wrong.pem").write_text("wrong")
    with pytest.raises(ConfigurationError, match=r"of queryable-state\.ssl cannot be used"):
        Certificate(True, files.certificate, str(tmp_path / "wrong.pem")).context()
    assert "secret" not in repr(Certificate(True, "c", "k", "secret"))
