"""QueryableStateClient: looks up the state of running jobs from another process."""

from __future__ import annotations

import secrets
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from penstock.api.state.descriptors import State, StateDescriptor
from penstock.common.typeinfo import TypeInformation
from penstock.engine.queryable import wire
from penstock.engine.queryable.query_requests import QueryAnswer, QueryRequest
from penstock.engine.queryable.queryable_tls import EncryptedSocket, trusting
from penstock.engine.queryable.read_only import check_kind, read_only
from penstock.engine.state.key_groups import short_repr
from penstock.errors import (
    AccessDenied,
    PenstockError,
    QueryError,
    QueryTimeout,
    StateUnavailable,
    TypeMismatch,
    UnknownKey,
)

DEFAULT_PORT = 9069
DEFAULT_PAGE = 1_000
LOOK_MILLIS = 500
GRACE_SECONDS = 2.0
"""Time for which a client waits longer than the server, in seconds."""


class QueryableStateClient:
    """Asks the server of queryable state in a driver's process. May be used from several threads."""

    def __init__(
        self,
        remote_hostname: str = "localhost",
        remote_port: int = DEFAULT_PORT,
        *,
        token: str | None = None,
        timeout: float = 10.0,
        tls: bool | str | Path | ssl.SSLContext = False,
    ) -> None:
        """Prepare a connection, which opens with the first request.

        `timeout` limits the time for an answer, in seconds.

        With `tls` the connection is encrypted, and the server must show a trusted certificate. The trusted
        authorities are those of this machine (True), those in a file, or those of a context.
        """
        self._tls = trusting(tls)
        self._address = (remote_hostname, int(remote_port))
        self._token = token
        self._timeout = timeout
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._link: _Link | None = None

    # --- what can be asked ---
    def get_kv_state(
        self,
        job_id: Any,
        queryable_state_name: str,
        key: Any,
        key_type_info: TypeInformation | None = None,
        state_descriptor: StateDescriptor | None = None,
    ) -> Future[State]:
        """Return the state of one key, as a read-only object of its kind. Raise UnknownKey if the key has no state.

        If a type is given, the key is checked before it is sent. If a descriptor is given, the kind of the
        state is checked.
        """

        def make_state(answer: QueryAnswer) -> State:
            check_kind(queryable_state_name, answer.kind, state_descriptor)
            (entry,) = answer.entries
            if not entry.found:
                raise UnknownKey(f"queryable state '{queryable_state_name}' holds nothing for {short_repr(key)}")
            return read_only(answer.kind, entry.value, answer.cut)

        try:
            _check_key(key, key_type_info)
        except TypeMismatch as error:
            return _make_failed_future(error)
        return _then(self.query(job_id, QueryRequest.of(queryable_state_name, key)), make_state)

    def get_many(self, job_id: Any, queryable_state_name: str, keys: Iterable[Any]) -> Future[QueryAnswer]:
        """Return the entries of many keys, all from the same cut.

        `entries` has them in this order, `values()` those found.
        """
        return self.query(job_id, QueryRequest(queryable_state_name, tuple(keys)))

    def get_all(
        self, job_id: Any, queryable_state_name: str, key_groups: tuple[int, int] | None = None
    ) -> Future[QueryAnswer]:
        """Return all keys in one answer, or the keys in a range of key groups, given by its first and last group."""
        return self.query(job_id, QueryRequest(queryable_state_name, key_groups=key_groups))

    def scan(
        self,
        job_id: Any,
        queryable_state_name: str,
        page_size: int = DEFAULT_PAGE,
        key_groups: tuple[int, int] | None = None,
    ) -> Iterator[QueryAnswer]:
        """Yield all keys, page by page.

        All pages are from the cut of the first page, because the job is asked only once.
        """
        token: str | None = None
        while True:
            groups = key_groups if token is None else None
            request = QueryRequest(queryable_state_name, None, groups, page_size, token)
            page = self.query(job_id, request).result()
            yield page
            token = page.next_token
            if token is None:
                return

    def states(self, job_id: Any) -> dict[str, str]:
        """Return the kinds of a job's queryable states, by name."""
        message = {"job": str(job_id), "states": True}
        return {state["name"]: state["kind"] for state in self._ask(message, "states").result()}

    def query(self, job_id: Any, request: QueryRequest) -> Future[QueryAnswer]:
        """Send any request. Every error is reported by the future."""
        try:
            message = {"job": str(job_id), "request": wire.request_to_json(request), "timeout": self._timeout * 1000}
            return _then(self._ask(message, "answer"), wire.answer_from_json)
        except PenstockError as error:
            return _make_failed_future(error)

    # --- the connection ---
    def _ask(self, message: dict[str, Any], part: str) -> Future[Any]:
        number = next(self._numbers)
        data = wire.pack({"id": number, **message}, wire.MOST_REQUEST_BYTES)
        with self._lock:
            if self._link is None or self._link.is_over:
                self._link = _Link(self._address, self._token, self._timeout, self._tls)
            link = self._link
        return link.ask(number, data, part)

    def shutdown_and_wait(self) -> None:
        """Close the connection. Requests without an answer fail."""
        with self._lock:
            link, self._link = self._link, None
        if link is not None:
            link.close()

    def shutdown_and_handle(self) -> Future[None]:
        """Close the connection, and return a future that is done once it is closed."""
        self.shutdown_and_wait()
        closed: Future[None] = Future()
        closed.set_result(None)
        return closed

    def __enter__(self) -> QueryableStateClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown_and_wait()


def _check_key(key: Any, declared: TypeInformation | None) -> None:
    if declared is not None:
        try:
            declared.fit([key])
        except TypeMismatch as error:
            raise TypeMismatch(f"the key must be {declared.notation}: {error}") from None


def _make_failed_future(error: Exception) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


def _then(future: Future[Any], change: Any) -> Future[Any]:
    """Return a future of `change` applied to the result of another future."""
    changed: Future[Any] = Future()

    def take(done: Future[Any]) -> None:
        try:
            result = change(done.result())
        except BaseException as error:
            changed.set_exception(error)
        else:
            changed.set_result(result)

    changed.set_running_or_notify_cancel()
    future.add_done_callback(take)
    return changed


class _Waiting(NamedTuple):
    """A pending request: the wanted part of its answer, its future and its deadline."""

    part: str
    future: Future[Any]
    deadline: float


class _Link:
    """One connection, and the thread that reads the answers."""

    def __init__(self, address: tuple[str, int], token: str | None, timeout: float, tls: ssl.SSLContext | None) -> None:
        self._address = address
        self._waiting: dict[int, _Waiting] = {}
        self._timeout = timeout
        self._lock = threading.Lock()
        self._inbox = wire.Unpacker(wire.MOST_MESSAGE_BYTES)
        self._ahead: list[dict[str, Any]] = []
        self._next_look = 0.0
        self.is_over = False
        try:
            plain = socket.create_connection(address, timeout=timeout)
        except OSError as error:
            raise StateUnavailable(f"no server of queryable state can be reached at {self._where}: {error}") from error
        try:
            self._socket: socket.socket | EncryptedSocket = plain
            if tls is not None:
                self._socket = EncryptedSocket(plain, tls, address[0])
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._greet(token)
            self._socket.settimeout(None)
        except OSError as error:
            self._socket.close()
            raise StateUnavailable(f"{self._where} did not answer like a server of queryable state: {error}") from error
        except PenstockError:
            self._socket.close()
            raise
        threading.Thread(target=self._read, name="penstock queryable state client", daemon=True).start()

    @property
    def _where(self) -> str:
        return f"{self._address[0]}:{self._address[1]}"

    def _greet(self, token: str | None) -> None:
        greeting = self._message()
        if greeting.get("server") != wire.GREETING or greeting.get("version") != wire.VERSION:
            raise QueryError(
                f"the process that listens at {self._where} does not serve queryable state in version {wire.VERSION}"
            )
        if greeting.get("token") and token is None:
            raise AccessDenied(f"the server at {self._where} requires a token (queryable-state.token)")
        nonces = (str(greeting.get("nonce")), secrets.token_hex(16))
        said = None if token is None else wire.proof(token, "client", nonces)
        self._socket.sendall(wire.pack({"nonce": nonces[1], "proof": said}))
        answered = self._message()
        expected = wire.proof(token, "server", nonces) if token is not None and greeting.get("token") else None
        if answered.get("proof") != expected:
            raise AccessDenied(f"the server at {self._where} rejected the token")

    def _message(self) -> dict[str, Any]:
        while not self._ahead:
            data = self._socket.recv(1 << 16)
            if not data:
                raise ConnectionError("it closed the connection")
            self._ahead += self._inbox.feed(data)
        message = self._ahead.pop(0)
        if "error" in message and "id" not in message:
            raise wire.error_from_json(message["error"])
        return message

    def ask(self, number: int, data: bytes, part: str) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            self._waiting[number] = _Waiting(part, future, time.monotonic() + self._timeout + GRACE_SECONDS)
            over = self.is_over
            if not over:
                with suppress(OSError):  # the reader notices too, and fails all waiting requests
                    self._socket.sendall(data)
        if over:
            self._fail(StateUnavailable(f"the connection to {self._where} was lost"))
        return future

    def _read(self) -> None:
        try:
            ready = select.poll()
            ready.register(self._socket, select.POLLIN)
            while True:
                if self._ahead or self._has_decrypted() or ready.poll(LOOK_MILLIS):
                    self._take(self._message())
                self._give_up_late()
        except (OSError, ValueError, PenstockError) as error:  # ValueError: the socket was closed meanwhile
            self._fail(StateUnavailable(f"the connection to {self._where} was lost: {error}"))

    def _has_decrypted(self) -> bool:
        return isinstance(self._socket, EncryptedSocket) and self._socket.pending() > 0

    def _take(self, message: dict[str, Any]) -> None:
        with self._lock:
            waiting = self._waiting.pop(message["id"], None)
        if waiting is None:
            return
        if "error" in message:
            waiting.future.set_exception(wire.error_from_json(message["error"]))
        else:
            waiting.future.set_result(message[waiting.part])

    def _give_up_late(self) -> None:
        """Fail requests whose deadline has passed.

        The server gives up earlier, so this is for servers that are silent.
        """
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + LOOK_MILLIS / 1000
        with self._lock:
            late = [number for number, waiting in self._waiting.items() if waiting.deadline < now]
            futures = [self._waiting.pop(number).future for number in late]
        for future in futures:
            future.set_exception(QueryTimeout(f"{self._where} has not answered within {self._timeout:g} s"))

    def _fail(self, error: Exception) -> None:
        with self._lock:
            self.is_over = True
            waiting, self._waiting = self._waiting, {}
        self._socket.close()
        for one in waiting.values():
            one.future.set_exception(error)

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._fail(StateUnavailable("the client was shut down"))
