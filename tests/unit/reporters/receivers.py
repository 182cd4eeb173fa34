"""Receivers on loopback that keep what they get, for the tests of reporters."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from penstock.metrics.samples import Sample
from penstock.metrics.scopes import ScopeFormats
from penstock.service.reporters.record_samples import samples_of
from penstock.service.reporters.reporter import Reporter, ReporterContext
from penstock.service.reporters.reporter_configuration import read_reporters
from tests.rest import scripted_jobs


def samples() -> list[Sample]:
    """Those of a job, and one of every kind."""
    there = ("server1", "jobmanager", "orders")
    variables = {"<host>": "server1", "<job_name>": "my orders"}

    def own(name: str, kind: str, **values: Any) -> Sample:
        parts = {"" if part == "value" else part: value for part, value in values.items()}
        return Sample(name, kind, parts, there, ("jobmanager", "job"), variables, f"help of {name}")

    record = scripted_jobs.job(host="server1", usage={"Status.JVM.CPU.Load": 0.5})
    return [
        *samples_of(record, ScopeFormats.from_configuration({})),
        own("seen", "counter", value=5),
        own("depth", "gauge", value=-3.5),
        own("version", "gauge", value="a text"),
        own("broken", "gauge", value=float("nan")),
        own("isUp", "gauge", value=True),
        own("perSecond", "meter", count=12, rate=0.25),
        own(
            "sizes", "histogram", count=4, min=1, max=9, mean=4.5, stddev=2.0, p50=4, p75=6, p95=8, p98=9, p99=9, p999=9
        ),
    ]


@contextmanager
def reporting(kind: str, **options: str) -> Iterator[Reporter]:
    """A reporter between `open` and `close`, made from a configuration."""
    given = {"factory.class": kind, **{name.replace("__", "."): value for name, value in options.items()}}
    (order,) = read_reporters({f"metrics.reporter.mine.{name}": value for name, value in given.items()})
    reporter = order.kind()
    reporter.open(ReporterContext(order.options, lambda: order.sieve.sift(samples()), order.delimiter))
    try:
        yield reporter
    finally:
        reporter.close()


class Datagrams:
    """A UDP listener."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._socket.bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]

    def take(self) -> list[str]:
        """What has come. On loopback it is there once it was sent."""
        self._socket.setblocking(False)
        taken = []
        while True:
            try:
                taken.append(self._socket.recv(1 << 16).decode())
            except BlockingIOError:
                return taken

    def close(self) -> None:
        self._socket.close()


class Lines:
    """A TCP listener that takes one connection after the other."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def take(self) -> list[str]:
        """All lines of the next connection."""
        self._listener.settimeout(60)
        link, _ = self._listener.accept()
        with link, link.makefile() as text:
            return text.read().splitlines()

    def close(self) -> None:
        self._listener.close()


class Requests:
    """An HTTP server that keeps requests and answers with a status."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, str], bytes]] = []
        self.status = 200
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                outer.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(outer.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                """Tests say what they see themselves."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
