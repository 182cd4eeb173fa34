"""ASGI middleware that every request passes first: it normalises the path and rejects requests without permission.

The middleware knows nothing of jobs. It limits the size and the duration of requests, checks tokens, and rejects orders
that a page of another site sends through the browser of an authorised user.
"""

from __future__ import annotations

import asyncio
import hmac
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect

from penstock.service.options.rest_options import RestSettings
from penstock.service.rest.rate_limit import RateLimit
from penstock.service.rest.replies import Rejected, problem
from penstock.service.rest.server_secret import HEADER
from penstock.service.rest.web_pages import PUBLIC

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Mapping[str, str]

LARGEST_JSON = 4 << 20
"""Largest size, in bytes, of a body that is not an upload. Such a body is held in memory."""
_LOCAL_NAMES = {"localhost", "127.0.0.1", "::1"}
_OPERATING_GETS = re.compile(r"/jobs/[^/]+/yarn-cancel|/jars/[^/]+/plan")
"""Paths of GET requests that do more than read, and so need the permission to operate."""


class AccessMiddleware:
    """An ASGI application that checks requests and passes them to another application."""

    def __init__(self, app: App, settings: RestSettings) -> None:
        self._app = app
        self._settings = settings
        self._rate_limit = RateLimit(settings.token_pause / 1000)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and pass it to the application or answer with an error."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = {**scope, "path": plain_path(scope["path"])}
        send = self._with_headers(scope["method"], send)
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        scope["is_owner"] = self._is_owner(headers)
        try:
            self._check(scope, headers)
        except Rejected as rejected:
            answer = problem(rejected.status, *rejected.texts)
            answer.headers.update(rejected.headers)
            await answer(scope, receive, send)  # type: ignore[arg-type]
            return
        # A client that disconnects causes no error.
        with suppress(ClientDisconnect):
            await self._app(scope, self._limit_body(scope["path"], receive), send)

    # --- permissions ---
    def _check(self, scope: Scope, headers: Headers) -> None:
        operates = scope["method"] not in ("GET", "HEAD") or bool(_OPERATING_GETS.fullmatch(scope["path"]))
        self._check_host(headers)
        if operates or not self._is_page(scope["path"]):
            self._check_token(headers, operates, (scope.get("client") or ("",))[0], scope["is_owner"])
        if operates:
            check_origin(headers)
        self._check_length(scope["path"], headers)

    def _check_host(self, headers: Headers) -> None:
        """Reject host names of other sites on a loopback address.

        This prevents DNS rebinding: a site could let a name of its own point to this machine.
        """
        settings = self._settings
        if settings.tokens or not settings.on_loopback:
            return
        known = _LOCAL_NAMES | {settings.bind_address, settings.address or "localhost"}
        if _host_name(headers.get("host", "")) not in known:
            raise Rejected(
                403,
                "This server answers only requests to the names of its own machine: set "
                "rest.address to allow another name.",
            )

    def _is_page(self, path: str) -> bool:
        """Return True for one of Penstock's own pages. They hold no data, and ask for the token themselves."""
        return self._settings.dashboard is None and bool(PUBLIC.fullmatch(path))

    def _is_owner(self, headers: Headers) -> bool:
        """Return True if the request comes from the user who started the server."""
        return bool(self._settings.owner_secret) and _same(headers.get(HEADER, ""), self._settings.owner_secret)

    def _check_token(self, headers: Headers, operates: bool, address: str, is_owner: bool) -> None:
        """Reject a request without a sufficient token. The owner needs no token, but must not send a wrong one."""
        tokens = self._settings.tokens
        if not tokens or (is_owner and "authorization" not in headers):
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not given.strip():
            raise _needs_token()
        if wait := self._rate_limit.wait(address):
            text = f"There were too many wrong tokens from {address}: try again in {math.ceil(wait)} s."
            raise Rejected(429, text, headers={"retry-after": str(math.ceil(wait))})
        # Both tokens are always compared, so that the duration reveals nothing.
        reads, may_operate = _same(given, tokens.read), _same(given, tokens.operate)
        if not (reads or may_operate):
            self._rate_limit.record_failure(address)
            raise _needs_token()
        self._rate_limit.record_success(address)
        if operates and not may_operate and not is_owner:
            raise Rejected(403, "This token allows reading, but no changes.")

    def _check_length(self, path: str, headers: Headers) -> None:
        length = headers.get("content-length", "0").strip()
        if not length.isdecimal():
            raise Rejected(400, "The header content-length is not a number.")
        if len(length) > 15 or int(length) > self._largest_body(path):
            raise _too_large(self._largest_body(path))

    def _largest_body(self, path: str) -> int:
        """Return the largest size, in bytes, of a body for this path."""
        most = self._settings.max_content
        return most if path == "/jars/upload" else min(most, LARGEST_JSON)

    # --- bodies and headers ---
    def _limit_body(self, path: str, receive: Receive) -> Receive:
        """Return a `receive` that rejects a body which is too large or whose next bytes do not arrive in time."""
        seconds, most, seen = self._settings.patience / 1000, self._largest_body(path), 0
        over = False

        async def receive_limited() -> Message:
            nonlocal seen, over
            if over:  # the next message is the end of the connection
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), seconds)
            except TimeoutError:
                raise Rejected(408, f"The rest of the request did not arrive within {seconds:g} s.") from None
            seen += len(message.get("body", b""))
            over = not message.get("more_body", False)
            if seen > most:
                raise _too_large(most)
            return message

        return receive_limited

    def _with_headers(self, method: str, send: Send) -> Send:
        origin = self._settings.origin

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_extra_headers(method, origin)]
            await send(message)

        return send_with_headers


def plain_path(path: str) -> str:
    """Return a path without the optional version prefix and the optional trailing slash."""
    if path == "/v1":
        return path
    plain = path[3:] if path.startswith("/v1/") else path
    return plain.rstrip("/") or "/"


def check_origin(headers: Headers) -> None:
    """Reject an order that a browser sends for a page of another site.

    Browsers name the site in the headers. Orders from Penstock's own pages and from clients without pages are accepted.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    foreign = origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
    if foreign or site in ("cross-site", "same-site"):
        raise Rejected(403, "Requests from pages of other sites are refused.")


def _host_name(host: str) -> str:
    """Return a host without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _same(given: str, token: str | None) -> bool:
    return hmac.compare_digest(given.strip().encode(), (token or "").encode()) and token is not None


def _needs_token() -> Rejected:
    text = "A valid token is needed: send it as 'Authorization: Bearer ...'."
    return Rejected(401, text, headers={"www-authenticate": "Bearer"})


def _too_large(most: int) -> Rejected:
    return Rejected(413, f"The request is too large: at most {most} bytes are accepted.")


def _extra_headers(method: str, origin: str | None) -> list[tuple[bytes, bytes]]:
    headers = [(b"x-content-type-options", b"nosniff"), (b"x-frame-options", b"SAMEORIGIN")]
    if origin is not None and method in ("GET", "HEAD"):
        headers.append((b"access-control-allow-origin", origin.encode("latin-1")))
    return headers
