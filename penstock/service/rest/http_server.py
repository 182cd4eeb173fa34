"""From an application to a server that listens: sockets, TLS, and clients that take too long."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
import time
from contextlib import nullcontext
from http import HTTPStatus
from typing import Any, ClassVar

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from penstock.errors import ConfigurationError
from penstock.service.rest.activity_history import ActivityHistory
from penstock.service.rest.replies import problem
from penstock.service.rest.rest_options import LOOPBACK, RestSettings, Tls

log = logging.getLogger("penstock.rest")

HEAD_SECONDS = 10
"""How long a client may take from the first byte of a request to the end of its headers."""
START_SECONDS = 30
STOP_SECONDS = 5


class TimedProtocol(H11Protocol):
    """HTTP/1.1, where a connection that does not come to the point is closed, and there are only so many.

    uvicorn closes connections that are idle between requests. One that sends its headers byte by byte, or nothing at
    all from the start, or does not read its answer, would stay. Errors below the application have its form, too, since
    Flink's clients take a body without `errors` for success.
    """

    patience: ClassVar[float] = 60.0
    """How many seconds a client may leave an answer unread."""
    most: ClassVar[int] = 1000
    """How many connections there may be at once."""
    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.most:
            self._refuse(503, f"This server has {self.most} connections already: try again.")
        else:
            self._start_head_timer()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, msg)

    def _refuse(self, status: int, text: str) -> None:
        """Answer without having understood, or even read, a request."""
        answer = problem(status, text)
        head = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", "connection: close"]
        head += [f"{name}: {value}" for name, value in answer.headers.items()]
        self.transport.write("\r\n".join([*head, "", ""]).encode("latin-1") + bytes(answer.body))
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_head_timer()
        elif self.timeout_keep_alive_task is None:
            self._start_head_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer = self.loop.call_later(self.patience, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_write_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        self._stop_write_timer()
        super().connection_lost(exc)

    def _start_head_timer(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None


def bind(settings: RestSettings) -> socket.socket:
    """A socket on the first port that is free; raises ConfigurationError if none is."""
    family = socket.AF_INET6 if ":" in settings.bind_address else socket.AF_INET
    reason: OSError | None = None
    for port in settings.ports:
        # asyncio sends small answers at once only on sockets that say of themselves that they are TCP.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.bind_address, port))
            listener.listen(512)
        except OSError as error:
            listener.close()
            reason = error
        else:
            return listener
    raise ConfigurationError(
        f"REST cannot listen at {settings.bind_address} on port {_port_text(settings.ports)}: "
        f"{reason.strerror if reason is not None else 'there is no port'}; choose another with rest.port, a range with "
        "rest.bind-port, or 0 for any that is free"
    )


def _port_text(ports: tuple[int, ...]) -> str:
    return str(ports[0]) if len(ports) == 1 else f"{ports[0]} to {ports[-1]}"


class RestServer:
    """A server over one application. Its socket is bound from the start, so its URL is known, also after the end."""

    def __init__(self, app: FastAPI, settings: RestSettings) -> None:
        _check_tls(settings.tls)
        self._settings = settings
        self._socket = bind(settings)
        self.port = int(self._socket.getsockname()[1])
        self._server = uvicorn.Server(_config(app, settings))
        self._history: ActivityHistory | None = getattr(app.state, "history", None)
        """What the pages of jobs plot; an application without jobs has none."""
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where clients reach it."""
        scheme = "https" if self._settings.tls.enabled else "http"
        return f"{scheme}://{_reachable(self._settings)}:{self.port}"

    def run(self) -> None:
        """Serve until the process is told to end; in the main thread Ctrl-C and SIGTERM are heard."""
        log.info("REST listens at %s", self.url)
        with nullcontext() if self._history is None else self._history.watching():
            self._server.run(sockets=[self._socket])

    def start(self) -> RestServer:
        """Serve in a thread of its own. Returns when requests are answered."""
        self._thread = threading.Thread(target=self.run, name="penstock rest", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise ConfigurationError(f"REST could not be served at {self.url}; the log has the reason")
            time.sleep(0.01)
        return self

    def stop(self) -> None:
        """Answer what is under way, and end."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(2 * STOP_SECONDS)
        self._socket.close()


def _reachable(settings: RestSettings) -> str:
    if settings.address is not None:
        return settings.address
    anywhere = {"0.0.0.0": LOOPBACK, "::": "::1"}
    name = anywhere.get(settings.bind_address, settings.bind_address)
    return f"[{name}]" if ":" in name else name


def _config(app: FastAPI, settings: RestSettings) -> uvicorn.Config:
    tls: dict[str, Any] = {}
    if settings.tls.enabled:
        tls = {
            "ssl_certfile": settings.tls.certificate,
            "ssl_keyfile": settings.tls.key,
            "ssl_keyfile_password": settings.tls.key_password,
        }
    limits = {"patience": settings.patience / 1000, "most": settings.max_connections}
    return uvicorn.Config(
        app,
        http=type("Protocol", (TimedProtocol,), limits),
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=STOP_SECONDS,
        **tls,
    )


def _check_tls(tls: Tls) -> None:
    """Say at once what is wrong with certificate or key."""
    if not tls.enabled or tls.certificate is None or tls.key is None:
        return
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls.certificate, tls.key, lambda: tls.key_password or "")
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"the certificate '{tls.certificate}' and the key '{tls.key}' of security.ssl.rest cannot be used: {error}"
        ) from None
