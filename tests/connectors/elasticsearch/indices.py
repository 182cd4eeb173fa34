"""What the tests do with a server beside the connector, and a proxy that makes it look busy."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Indices:
    """A second client."""

    def __init__(self, url):
        self.url = url

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.url}/{path}", data, {"content-type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def documents(self, index):
        """Id and contents of all documents."""
        self.ask("POST", f"{index}/_refresh")
        found = self.ask("POST", f"{index}/_search", {"size": 10_000})
        return {hit["_id"]: hit["_source"] for hit in found["hits"]["hits"]}


class Moody:
    """Stands in front of a server. Each bulk request first meets the next of its moods, if there is one left.

    A mood is a status for the whole request, "hang up", or a function that says for each action whether it is refused
    with 429; the others are done.
    """

    def __init__(self, upstream):
        self.moods = []
        self.seen = []
        self.user = None
        handler = type("Handler", (_Handler,), {"moody": self, "upstream": upstream})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def host(self):
        return f"127.0.0.1:{self.port}"

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.moody.seen.append((self.path, dict(self.headers), body))
        if self.moody.user is not None and self.headers.get("authorization") != self.moody.user:
            return self.answer(401, {"error": {"type": "security_exception", "reason": "who are you?"}, "status": 401})
        mood = self.moody.moods.pop(0) if self.moody.moods else None
        if mood == "hang up":
            self.close_connection = True
            return self.connection.shutdown(2)
        if isinstance(mood, int):
            return self.answer(mood, {"error": {"type": "busy", "reason": "not now"}, "status": mood})
        if mood is None:
            return self.answer(*self.forward(body))
        return self.answer(200, self.partly(body, mood))

    def partly(self, body, is_refused):
        lines = body.decode().rstrip("\n").split("\n")
        actions = [(json.loads(lines[i]), lines[i : i + 2]) for i in range(0, len(lines), 2)]
        refused = [is_refused(json.loads(pair[1])) for _, pair in actions]
        done = [line for (_, pair), no in zip(actions, refused, strict=True) if not no for line in pair]
        items = iter(self.forward("\n".join([*done, ""]).encode())[1]["items"] if done else [])
        error = {"type": "es_rejected_execution_exception", "reason": "the queue is full"}
        return {
            "errors": any(refused),
            "items": [
                {next(iter(action)): {"status": 429, "error": error}} if no else next(items)
                for (action, _), no in zip(actions, refused, strict=True)
            ],
        }

    def forward(self, body):
        path = self.path.removeprefix("/search")
        request = urllib.request.Request(self.upstream + path, body, {"content-type": "application/x-ndjson"})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("x-elastic-product", "Elasticsearch")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
