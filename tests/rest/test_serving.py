"""A server that listens: ports, TLS, and clients that take too long or send what is no request."""

from __future__ import annotations

import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.errors import ConfigurationError
from penstock.service.options.rest_options import RestSettings, Tls
from penstock.service.rest import http_server as serving
from penstock.service.rest.app import create_app
from penstock.service.rest.http_server import RestServer, bind
from penstock.service.rest.job_backend import LogFile
from penstock.spark.links.encryption import new_identity
from tests.rest.scripted_jobs import RUNNING, ScriptedJobs
from tests.waiting import until

ANY_PORT = RestSettings(ports=(0,))


@contextmanager
def serving_jobs(jobs: ScriptedJobs, settings: RestSettings = ANY_PORT) -> Iterator[RestServer]:
    server = RestServer(create_app(jobs, settings), settings).start()
    try:
        yield server
    finally:
        server.stop()


def connected(server: RestServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=60)


def told(connection: socket.socket) -> bytes:
    """Everything up to the end of the connection."""
    parts = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def answers(server: RestServer) -> bool:
    with urllib.request.urlopen(f"{server.url}/overview", timeout=60) as response:
        return response.status == 200


# --- ports ---
def test_of_a_range_the_first_free_port_is_taken():
    with bind(ANY_PORT) as taken:
        port = taken.getsockname()[1]
        with bind(replace(ANY_PORT, ports=(port, 0))) as other:
            assert other.getsockname()[1] != port
        with pytest.raises(ConfigurationError, match=rf"on port {port}: .*rest\.bind-port"):
            bind(replace(ANY_PORT, ports=(port,)))
        with pytest.raises(ConfigurationError, match=f"on port {port} to {port}"):
            bind(replace(ANY_PORT, ports=(port, port)))


def test_it_is_bound_to_loopback(jobs):
    with bind(ANY_PORT) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


def test_a_stopped_server_has_let_go_of_its_port(jobs):
    with serving_jobs(jobs) as server:
        assert answers(server)
        port = server.port
    with bind(replace(ANY_PORT, ports=(port,))):
        pass


def test_small_answers_do_not_wait_for_more(jobs):
    """Head and body of an answer are two writes: with Nagle's algorithm, every answer would take 40 ms."""
    with serving_jobs(jobs) as server, connected(server):
        (protocol,) = until(lambda: list(server._server.server_state.connections))
        accepted = protocol.transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


# --- TLS ---
@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> Tls:
    folder: Path = tmp_path_factory.mktemp("tls")
    made = new_identity("127.0.0.1")
    (folder / "certificate.pem").write_bytes(made.certificate)
    (folder / "key.pem").write_bytes(made.key)
    return Tls(True, folder / "certificate.pem", folder / "key.pem")


def test_with_tls_only_tls_is_spoken(jobs, certificate):
    with serving_jobs(jobs, replace(ANY_PORT, tls=certificate)) as server:
        trusting = ssl.create_default_context(cafile=str(certificate.certificate))
        with urllib.request.urlopen(f"{server.url}/overview", context=trusting, timeout=60) as response:
            assert server.url.startswith("https:") and response.status == 200
        with pytest.raises((urllib.error.URLError, OSError)):
            urllib.request.urlopen(f"http://127.0.0.1:{server.port}/overview", timeout=60)


def test_files_that_are_no_certificate_are_told_of_at_once(jobs, certificate, tmp_path):
    (tmp_path / "wrong.pem").write_text("nothing")
    tls = replace(certificate, key=tmp_path / "wrong.pem")
    with pytest.raises(ConfigurationError, match=r"wrong\.pem"):
        RestServer(create_app(jobs, ANY_PORT), replace(ANY_PORT, tls=tls))


# --- clients that take too long ---
def test_a_client_that_does_not_come_to_the_point_is_cut_off(jobs, monkeypatch):
    monkeypatch.setattr(serving, "HEAD_SECONDS", 0.3)
    with serving_jobs(jobs) as server, connected(server) as silent, connected(server) as slow:
        slow.sendall(b"GET /overview HTTP/1.1\r\nHost: 127.0.0.1\r\nX-")
        assert told(silent) == b""
        assert told(slow) == b""
        monkeypatch.undo()  # others may be slow, too, on a busy machine
        assert answers(server)


def test_headers_that_trickle_in_do_not_keep_a_connection(jobs, monkeypatch):
    monkeypatch.setattr(serving, "HEAD_SECONDS", 0.5)
    with serving_jobs(jobs) as server, connected(server) as slow:
        sent = 0
        with pytest.raises(OSError):
            for sent in range(600):
                slow.sendall(b"G" if sent == 0 else b"E")
                time.sleep(0.05)
        assert sent < 599


def test_a_second_request_on_a_connection_has_as_little_time(jobs, monkeypatch):
    with serving_jobs(jobs) as server, connected(server) as slow:
        slow.sendall(b"GET /config HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        answer = b""
        while not answer.endswith(b"}}"):
            answer += slow.recv(1 << 16)
        monkeypatch.setattr(serving, "HEAD_SECONDS", 0.3)
        slow.sendall(b"GET /con")
        assert told(slow) == b""


def test_a_body_that_does_not_go_on_is_given_up(jobs):
    with serving_jobs(jobs, replace(ANY_PORT, patience=300)) as server, connected(server) as slow:
        head = f"POST /jobs/{RUNNING}/savepoints HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{{"
        slow.sendall(head.encode())
        answer = told(slow)
    assert answer.startswith(b"HTTP/1.1 408") and b'{"errors":' in answer
    assert jobs.orders == []


def test_a_reader_that_does_not_read_is_given_up(jobs, tmp_path):
    """Answers are as large as the buffers of this machine's sockets cannot be."""
    large = tmp_path / "a.log"
    with large.open("wb") as file:
        file.truncate(1 << 28)
    jobs.files = [LogFile("a.log", large)]
    with serving_jobs(jobs, replace(ANY_PORT, patience=500)) as server, connected(server) as slow:
        slow.sendall(b"GET /jobmanager/log HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert slow.recv(1) == b"H"
        until(lambda: not server._server.server_state.connections)
        assert answers(server)


def test_many_clients_that_wait_do_not_keep_others_out(jobs):
    with serving_jobs(jobs) as server, ExitStack() as held:
        for _ in range(200):
            one = held.enter_context(connected(server))
            one.sendall(b"POST /savepoint-disposal HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n")
        assert all(answers(server) for _ in range(5))


def test_there_are_only_so_many_connections(jobs):
    with serving_jobs(jobs, replace(ANY_PORT, max_connections=3)) as server:
        with connected(server), connected(server), connected(server), connected(server) as one_too_many:
            answer = told(one_too_many)
        assert answer.startswith(b"HTTP/1.1 503") and b'{"errors":["' in answer
        until(lambda: not server._server.server_state.connections)
        assert answers(server)


# --- what is no request ---
@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET / HTTP/9.9\r\nConnection: close\r\n\r\n",
        b"GET /overview HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"GET /overview HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"y" * (1 << 20) + b"\r\n\r\n",
        b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"POST /jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /jobs/%ff%fe HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
        b"GET /jobmanager/logs/../../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
        b"GET //etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_and_the_server_goes_on(jobs, sent):
    with serving_jobs(jobs) as server, connected(server) as connection:
        try:
            connection.sendall(sent)
            answer = told(connection)
        except OSError:  # it was cut off while we were still sending
            answer = b""
        assert not answer or (answer.startswith(b"HTTP/1.1 4") and b'{"errors":["' in answer), answer[:200]
        assert answers(server)
