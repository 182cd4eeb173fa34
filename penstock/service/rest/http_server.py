"""The HTTP server of the REST application: sockets, TLS, and limits for slow clients."""

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
from penstock.service.options.rest_options import LOOPBACK, RestSettings, Tls
from penstock.service.rest.activity_history import ActivityHistory
from penstock.service.rest.replies import problem

log = logging.getLogger("penstock.rest")

HEAD_SECONDS = 10
"""Time, in seconds, from the first byte of a request to the end of its headers, before the server disconnects."""
START_SECONDS = 30
STOP_SECONDS = 5


class TimedProtocol(H11Protocol):
    """HTTP/1.1 with a limited number of connections and a time limit for slow clients.

    uvicorn itself closes only connections that are idle between requests. It keeps a connection that sends nothing at
    first, sends its headers byte by byte, or does not read its answer; this class closes such connections too. Errors
    that occur before the application is reached have the application's form, because Flink's clients treat a body
    without `errors` as success.
    """

    patience: ClassVar[float] = 60.0
    """Time, in seconds, that a client may leave an answer unread."""
    most: ClassVar[int] = 1000
    """Largest number of simultaneous connections."""
    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.most:
            self._refuse(503, f"This server already has {self.most} connections, its maximum: try again later.")
        else:
            self._start_head_timer()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, msg)

    def _refuse(self, status: int, text: str) -> None:
        """Send an error and close the connection, without a complete or readable request."""
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
    """Return a socket on the first free port. Raise ConfigurationError if no port is free."""
    family = socket.AF_INET6 if ":" in settings.bind_address else socket.AF_INET
    reason: OSError | None = None
    for port in settings.ports:
        # asyncio sends small answers without delay only on sockets whose protocol is given as TCP.
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
    """A server for one application. The constructor binds the socket, so the URL is known before the server starts."""

    def __init__(self, app: FastAPI, settings: RestSettings) -> None:
        _check_tls(settings.tls)
        self._settings = settings
        self._socket = bind(settings)
        self.port = int(self._socket.getsockname()[1])
        self._server = uvicorn.Server(_config(app, settings))
        self._history: ActivityHistory | None = getattr(app.state, "history", None)
        """The history that the pages of jobs plot, or None if the application has no jobs."""
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The URL at which clients reach the server."""
        scheme = "https" if self._settings.tls.enabled else "http"
        return f"{scheme}://{_reachable(self._settings)}:{self.port}"

    def run(self) -> None:
        """Serve until `stop` is called. In the main thread, Ctrl-C and SIGTERM end the server too."""
        log.info("REST listens at %s", self.url)
        with nullcontext() if self._history is None else self._history.watching():
            self._server.run(sockets=[self._socket])

    def start(self) -> RestServer:
        """Serve in a separate thread. Return when the server answers requests."""
        self._thread = threading.Thread(target=self.run, name="penstock rest", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise ConfigurationError(f"REST could not be served at {self.url}; see the log for the reason")
            time.sleep(0.01)
        return self

    def stop(self) -> None:
        """Answer the requests that are in progress, and stop."""
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
    """Raise ConfigurationError now if the certificate or the key cannot be used."""
    if not tls.enabled or tls.certificate is None or tls.key is None:
        return
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls.certificate, tls.key, lambda: tls.key_password or "")
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"the certificate '{tls.certificate}' and the key '{tls.key}' of security.ssl.rest cannot be used: {error}"
        ) from None
