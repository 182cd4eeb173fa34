"""Middleware in front of REST: a server that does not lead redirects clients to the leader or forwards requests."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable

from penstock.errors import StorageError
from penstock.service.server.leadership.elections import Election
from penstock.service.server.leadership.forwarding import Forwarding, LeaderUnreachable, Receive, Scope, Send

App = Callable[[Scope, Receive, Send], Awaitable[None]]
KNOWN_SECONDS = 1.0


class LeaderOnly:
    """An ASGI middleware whose application answers only while this server leads."""

    def __init__(
        self, app: App, election: Callable[[], Election], own: Callable[[], str], forwarding: Forwarding | None = None
    ) -> None:
        """Wrap an application.

        `own` returns the address of this server, so that no request is sent in circles. Without `forwarding`, clients
        are redirected.
        """
        self._app = app
        self._election = election
        self._own = own
        self._forwarding = forwarding
        self._address: str | None = None
        self._asked = float("-inf")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request here, or redirect or forward it to the leader."""
        if scope["type"] != "http" or self._election().leads():
            await self._app(scope, receive, send)
            return
        address = await self._leader()
        if address is None:
            await _answer(send, 503, [(b"retry-after", b"1")])
        elif self._forwarding is not None:
            try:
                await self._forwarding(address, scope, receive, send)
            except LeaderUnreachable:
                await _answer(send, 503, [(b"retry-after", b"1")])
        else:
            path = scope.get("raw_path") or scope["path"].encode()
            query = scope.get("query_string") or b""
            target = address.encode() + path + (b"?" + query if query else b"")
            await _answer(send, 307, [(b"location", target)])

    async def _leader(self) -> str | None:
        """Return the leader's address, or None. It is looked up at most once a second."""
        if time.monotonic() - self._asked > KNOWN_SECONDS:
            self._asked = time.monotonic()
            self._address = await asyncio.to_thread(self._look)
        return self._address

    def _look(self) -> str | None:
        try:
            said = self._election().leader()
        except StorageError:
            return None
        address = said.get("address")
        return address if isinstance(address, str) and address != self._own() else None


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]]) -> None:
    said = "there is no leader at the moment: try again" if status == 503 else "another server leads"
    body = json.dumps({"errors": [said]}).encode()
    kind = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*kind, *headers]})
    await send({"type": "http.response.body", "body": body})
