"""A standby that forwards requests to the leader, for clients that cannot reach the leader themselves."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, MutableMapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any
from urllib.parse import urlsplit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

IN_MEMORY = 1 << 20
"""Largest size, in bytes, of a body that is held in memory. Larger bodies are written to a file."""
CHUNK = 1 << 16
TIMEOUT_SECONDS = 60.0
_OF_ONE_CONNECTION = {b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"upgrade", b"te"}


class LeaderUnreachable(Exception):
    """The leader did not answer."""


class Forwarding:
    """Forwards requests to the leader.

    All servers have the same certificate, which is trusted for every address of the leader.
    """

    def __init__(self, trust: ssl.SSLContext | None) -> None:
        self._trust = trust

    async def __call__(self, address: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the leader at this address answer. Raise LeaderUnreachable if it sends no answer."""
        with SpooledTemporaryFile(IN_MEMORY) as body:
            length = await _read_body(receive, body)
            connection = self._connection(address)
            try:
                try:
                    answer = await asyncio.to_thread(_ask, connection, scope, body, length)
                except (OSError, HTTPException) as error:
                    raise LeaderUnreachable(str(error)) from None
                await _pass_back(answer, send)
            finally:
                connection.close()

    def _connection(self, address: str) -> HTTPConnection:
        parts = urlsplit(address)
        host = parts.hostname or ""
        if parts.scheme == "https":
            return HTTPSConnection(host, parts.port, timeout=TIMEOUT_SECONDS, context=self._trust)
        return HTTPConnection(host, parts.port, timeout=TIMEOUT_SECONDS)


def trust_of(certificate: Path | None) -> ssl.SSLContext | None:
    """Return a context that trusts the servers' common certificate, which need not name the leader's address."""
    if certificate is None:
        return None
    context = ssl.create_default_context(cafile=certificate)
    context.check_hostname = False
    return context


async def _read_body(receive: Receive, body: IO[bytes]) -> int:
    length, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise LeaderUnreachable("the client has disconnected")
        length += body.write(message.get("body", b""))
        more = message.get("more_body", False)
    body.seek(0)
    return length


def _ask(connection: HTTPConnection, scope: Scope, body: IO[bytes], length: int) -> HTTPResponse:
    """Send the request with the client's own `host` header, so that the leader recognises pages of the same origin."""
    path = scope.get("raw_path") or scope["path"].encode()
    query = scope.get("query_string") or b""
    target = path + (b"?" + query if query else b"")
    connection.putrequest(scope["method"], target.decode("latin-1"), skip_host=True, skip_accept_encoding=True)
    for name, value in scope["headers"]:
        if name.lower() not in _OF_ONE_CONNECTION:
            connection.putheader(name, value)
    if length or scope["method"] not in ("GET", "HEAD"):
        connection.putheader("content-length", str(length))
    connection.endheaders(body if length else None)
    return connection.getresponse()


async def _pass_back(answer: HTTPResponse, send: Send) -> None:
    """Send the leader's answer to the client part by part."""
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in answer.getheaders()]
    kept = [(name, value) for name, value in headers if name not in _OF_ONE_CONNECTION - {b"content-length"}]
    await send({"type": "http.response.start", "status": answer.status, "headers": kept})
    while part := await asyncio.to_thread(answer.read1, CHUNK):
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
