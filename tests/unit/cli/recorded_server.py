"""A real HTTP server that gives recorded answers of Flink, and remembers what it was asked."""

from __future__ import annotations

import json
import re
import ssl
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

RECORDED = json.loads((Path(__file__).parent / "answers.json").read_text())["endpoints"]


@dataclass
class Asked:
    """A request as it came in."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"


@dataclass
class Given:
    """An answer."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


def recorded(endpoint: str, case: str) -> Given:
    """What Flink answered."""
    found = next(entry for entry in RECORDED[endpoint] if entry["case"] == case)
    return Given(found["status"], json.dumps(found["body"]).encode(), {"Content-Type": "application/json"})


def said(body: Any, status: int = 200, **headers: str) -> Given:
    """An answer of the test's own: text, or what becomes JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Given(status, raw, {name.replace("_", "-"): value for name, value in headers.items()})


class RecordedServer:
    """Answers each request with the next of the answers for it; the last one stays."""

    def __init__(self, trust: ssl.SSLContext | None = None) -> None:
        self.asked: list[Asked] = []
        self._answers: list[tuple[str, re.Pattern[str], list[Given]]] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        if trust is not None:
            self._http.socket = trust.wrap_socket(self._http.socket, server_side=True)
        self.port = self._http.server_address[1]
        self.address = f"127.0.0.1:{self.port}"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def on(self, endpoint: str, *answers: Given | str) -> RecordedServer:
        """Answer requests such as `GET /jobs/:jobid`; a text is the name of a recorded case."""
        method, _, path = endpoint.partition(" ")
        pattern = re.compile(re.sub(r":\w+", "[^/]+", path) + "$")
        given = [recorded(endpoint, answer) if isinstance(answer, str) else answer for answer in answers]
        self._answers.insert(0, (method, pattern, given))
        return self

    def lines(self) -> list[str]:
        return [asked.line for asked in self.asked]

    def the(self, line: str) -> Asked:
        """The only request like this."""
        found = [asked for asked in self.asked if asked.line == line]
        assert len(found) == 1, (line, self.lines())
        return found[0]

    def _answer(self, asked: Asked) -> Given:
        self.asked.append(asked)
        for method, pattern, answers in self._answers:
            if method == asked.method and pattern.match(asked.path):
                return answers.pop(0) if len(answers) > 1 else answers[0]
        return said({"errors": [f"Not found: {asked.path}"]}, 404)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def handle_one(self) -> None:
                parts = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                assert parts.path.startswith("/v1/"), parts.path
                asked = Asked(
                    self.command, parts.path.removeprefix("/v1"), parse_qs(parts.query), dict(self.headers), body
                )
                given = server._answer(asked)
                self.send_response(given.status)
                for name, value in given.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(given.body)))
                self.end_headers()
                self.wfile.write(given.body)

            do_GET = do_POST = do_PATCH = do_DELETE = handle_one

            def log_message(self, *_: object) -> None:
                """Nothing: the test says what matters."""

        return Handler
