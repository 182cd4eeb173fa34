"""The server of queryable state: one thread in the driver's process serves any number of clients."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import socket
import ssl
import sys
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Protocol, cast

from penstock.engine.queryable import wire
from penstock.engine.queryable.query_requests import QueryAnswer, QueryRequest
from penstock.engine.queryable.slot_states import QueryableState
from penstock.errors import AccessDenied, ConfigurationError, QueryError, QueryTimeout, UnknownJob

MOST_CONNECTIONS = 256
MOST_UNANSWERED = 1_000
"""Number of requests of one connection that may wait. Further requests are not read until some are answered."""
GREETING_SECONDS = 10.0
"""Time for a client to prove that it knows the token, in seconds."""
SLOW_SECONDS = 30.0
"""Time for which a client may leave its answers unread, in seconds."""
SWITCH_SECONDS = 0.0005
"""Switch interval of the interpreter, in seconds.

The thread that runs the job's epochs waits at most this long for the thread that answers. Python's default of 5 ms
would be a third of an epoch.
"""
DEFAULT_TIMEOUT_MILLIS, MOST_TIMEOUT_MILLIS = 10_000, 600_000
log = logging.getLogger("penstock.queryable")


class Queryable(Protocol):
    """The part of a job that the server needs."""

    def query(self, request: QueryRequest) -> Future[QueryAnswer]: ...

    def queryable_states(self) -> Sequence[QueryableState]: ...


class QueryServer:
    """Listens on one port for clients of all jobs that are added."""

    def __init__(
        self, host: str, ports: Sequence[int], token: str | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        """Listen on the first free port; 0 means any port. With `tls`, the server accepts only TLS."""
        self._tls = tls
        self.token = token
        self.jobs: dict[str, Queryable] = {}
        self.connections: set[Connection] = set()
        self._socket = _listening(host, ports)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self._loop = asyncio.new_event_loop()
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_SECONDS))
        self._thread = threading.Thread(target=self._run, name="penstock queryable state", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        patience = GREETING_SECONDS if self._tls is not None else None
        listening = self._loop.create_server(
            lambda: Connection(self), sock=self._socket, ssl=self._tls, ssl_handshake_timeout=patience
        )
        server = self._loop.run_until_complete(listening)
        try:
            self._loop.run_forever()
        finally:
            server.close()
            self._loop.close()

    def close(self) -> None:
        """Close all connections and stop the server."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._let_go)
        self._thread.join()

    def _let_go(self) -> None:
        for connection in self.connections:
            connection.end()
        # Data that can be sent at once is still sent.
        self._loop.call_later(0.05, self._loop.stop)

    def job(self, job_id: Any) -> Queryable:
        """Return a job by its id. Raise UnknownJob if there is no such job."""
        found = self.jobs.get(str(job_id))
        if found is None:
            known = ", ".join(sorted(self.jobs)) or "none"
            raise UnknownJob(f"there is no job {job_id} here; jobs with queryable state are: {known}")
        return found


def _listening(host: str, ports: Sequence[int]) -> socket.socket:
    refused = []
    for port in ports:
        try:
            return socket.create_server((host, port), family=_family(host), backlog=128)
        except OSError as error:
            refused.append(f"{port} ({error.strerror or error})")
    raise ConfigurationError(
        f"queryable state cannot be served on {host}, because none of its ports can be opened: "
        f"{', '.join(refused)}. Set queryable-state.proxy.ports to other ports, or to 0 for any free port"
    )


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


class Connection(asyncio.Protocol):
    """A connection of one client. Its requests are answered in the order in which jobs answer."""

    def __init__(self, server: QueryServer) -> None:
        self._server = server
        self._loop = asyncio.get_event_loop()
        self._inbox = wire.Unpacker(wire.MOST_REQUEST_BYTES)
        self._nonce = secrets.token_hex(16)
        self._trusted = False
        self._unanswered = 0
        self._done: deque[tuple[Any, Future[QueryAnswer]]] = deque()
        self._signalled = False
        self._paused = False
        self._deadline: asyncio.TimerHandle | None = None
        self._timers: dict[Future[QueryAnswer], asyncio.TimerHandle] = {}

    # --- the connection ---
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._server.connections.add(self)
        if len(self._server.connections) > MOST_CONNECTIONS:
            self._say(
                {
                    "error": wire.error_to_json(
                        QueryError(f"the server already has {MOST_CONNECTIONS} clients, its maximum")
                    )
                }
            )
            self._transport.close()
            return
        self._deadline = self._loop.call_later(GREETING_SECONDS, self._transport.abort)
        needed = self._server.token is not None
        self._say({"server": wire.GREETING, "version": wire.VERSION, "nonce": self._nonce, "token": needed})

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        self._set_deadline(None)
        for future, timer in self._timers.items():
            timer.cancel()
            future.cancel()
        self._timers.clear()

    def end(self) -> None:
        """Close the connection, because the server closes."""
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        try:
            for message in self._inbox.feed(data):
                if self._transport.is_closing():
                    return
                (self._ask if self._trusted else self._greet)(message)
        except QueryError as error:
            self._say({"error": wire.error_to_json(error)})
            self._transport.close()

    def pause_writing(self) -> None:
        self._paused = True
        self._set_deadline(SLOW_SECONDS)

    def resume_writing(self) -> None:
        self._paused = False
        self._set_deadline(None)
        self._answer_all()

    def _set_deadline(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self._loop.call_later(seconds, self._transport.abort)

    def _say(self, message: dict[str, Any]) -> None:
        self._send(wire.pack(message))

    def _send(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    # --- who it is ---
    def _greet(self, message: dict[str, Any]) -> None:
        nonces = (self._nonce, str(message.get("nonce")))
        token = self._server.token
        if token is not None and not _same(message.get("proof"), wire.proof(token, "client", nonces)):
            self._say(
                {"error": wire.error_to_json(AccessDenied("the token is missing, or is not queryable-state.token"))}
            )
            self._transport.close()
            return
        self._trusted = True
        self._set_deadline(None)
        self._say({"proof": None if token is None else wire.proof(token, "server", nonces)})

    # --- what it asks ---
    def _ask(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        try:
            job = self._server.job(message.get("job"))
            if message.get("states"):
                states = [{"name": state.name, "kind": state.kind} for state in job.queryable_states()]
                self._say({"id": number, "states": states})
                return
            future = job.query(wire.request_from_json(message.get("request")))
        except Exception as error:  # the client learns of every error of its request
            self._say({"id": number, "error": wire.error_to_json(error)})
            return
        self._await(number, future, message.get("timeout"))

    def _await(self, number: Any, future: Future[QueryAnswer], millis: Any) -> None:
        self._unanswered += 1
        if self._unanswered >= MOST_UNANSWERED:
            self._transport.pause_reading()
        if not isinstance(millis, int | float) or not 0 < millis <= MOST_TIMEOUT_MILLIS:
            millis = DEFAULT_TIMEOUT_MILLIS
        late = QueryTimeout(f"the job has not reached the end of an epoch within {millis:g} ms")
        self._timers[future] = self._loop.call_later(millis / 1000, self._give_up, number, future, late)
        future.add_done_callback(lambda done: self._signal(number, done))

    def _give_up(self, number: Any, future: Future[QueryAnswer], late: QueryTimeout) -> None:
        if self._timers.pop(future, None) is not None and future.cancel():
            self._say({"id": number, "error": wire.error_to_json(late)})

    def _signal(self, number: Any, future: Future[QueryAnswer]) -> None:
        """Pass an answer on to the server's thread. This runs in the job's thread, which must not wait for clients."""
        self._done.append((number, future))
        if not self._signalled:
            self._signalled = True
            with suppress(RuntimeError):  # the server has been closed
                self._loop.call_soon_threadsafe(self._answer_all)

    def _answer_all(self) -> None:
        self._signalled = False
        answers: list[bytes] = []
        while self._done and not self._paused:
            number, future = self._done.popleft()
            timer = self._timers.pop(future, None)
            if timer is not None:
                timer.cancel()
            self._unanswered -= 1
            if not future.cancelled():
                answers.append(_answer(number, future))
        if answers:
            self._send(b"".join(answers))  # one write, which wakes the client once
        if self._unanswered < MOST_UNANSWERED and not self._transport.is_closing():
            self._transport.resume_reading()


def _answer(number: Any, future: Future[QueryAnswer]) -> bytes:
    try:
        return wire.pack({"id": number, "answer": wire.answer_to_json(future.result())})
    except Exception as error:
        return wire.pack({"id": number, "error": wire.error_to_json(error)})


def _same(given: Any, expected: str) -> bool:
    return isinstance(given, str) and hmac.compare_digest(given.encode(), expected.encode())
