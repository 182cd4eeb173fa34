"""The client of a driver in a task of a Spark Connect server. It submits a program, and watches it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, BinaryIO
from urllib.parse import quote, unquote, urlsplit
from uuid import uuid4

from penstock.errors import ConfigurationError, JobError, NotEnoughSlots, PenstockError
from penstock.spark.hosts.driver_mailbox import CLIENT, SIGNAL, STATUS, Mailbox, Reader
from penstock.spark.hosts.driver_task import BEAT_SECONDS, TICK_SECONDS, TOKEN_VARIABLE, DriverSpec, host_driver
from penstock.spark.sessions.connect_session import (
    connect_session,
    describe_error,
    endpoint,
    hidden,
    parallelism_of,
    uses_tls,
)
from penstock.spark.sessions.interpreters import UNFIT
from penstock.spark.slots.slot_tasks import reason

_LARGEST_PROGRAM = 64 << 20
"""Greatest size of a program's file, in bytes. Spark's server takes messages of 128 MiB, and base64 adds a third."""
DEAD_SECONDS = 120.0
"""Time, in seconds, without a sign of life after which a driver that another client started counts as lost."""


def new_key() -> str:
    """Return a new name for a driver."""
    return uuid4().hex


def check_program(name: str, size: int) -> None:
    """Refuse a program that is too large for a message to the server."""
    if size > _LARGEST_PROGRAM:
        raise ConfigurationError(
            f"the program {name} has {size} bytes, and a driver in the cluster accepts at most {_LARGEST_PROGRAM} "
            "bytes: leave the packages out of the program, and install them where the executors run"
        )


class DriverClient:
    """A client's view of a driver in a cluster."""

    def __init__(self, url: str, key: str, seconds: float) -> None:
        self.key = key
        self._url = url
        self._seconds = seconds
        self._session: Any = connect_session(url, "Penstock", {}, min(seconds, 30.0))
        self._mailbox = Mailbox(self._session, key)
        self._readers = {"out": Reader(), "err": Reader()}
        self._task: int | None = None
        self._operation: threading.Thread | None = None
        self._ended: tuple[int, str] | None = None
        self._failure = ""
        self._told_at = 0.0
        self._sign: object = None
        self._sign_at = time.monotonic()
        self._beats = 0

    # --- the start ---
    def start(self, spec: DriverSpec, inner_url: str | None) -> None:
        """Ask Spark for the driver's task, and return when the driver runs."""
        cores = parallelism_of(self._session)
        if cores is not None and cores < 2:
            raise NotEnoughSlots(
                f"the Spark Connect server at {endpoint(self._session)} can run {cores} task at once, and a driver in "
                "the cluster and its slots need 2 or more. Give the server more cores"
            )
        url, token = access(inner_url or self._inner_url())
        spec = replace(spec, url=url, token=token)
        self._mailbox.open()
        self._operation = threading.Thread(target=self._run, args=(spec,), name="penstock driver", daemon=True)
        self._operation.start()
        try:
            self._await_driver(url)
        except BaseException:
            self._session.interruptTag(self.key)
            raise

    def _await_driver(self, url: str) -> None:
        until = time.monotonic() + self._seconds
        while self._is_unknown():
            if time.monotonic() > until:
                raise NotEnoughSlots(
                    f"the driver in the cluster has not given a sign of life within slot.request.timeout, "
                    f"{self._seconds:g} s: its task needs one free core besides one for each slot, and must be "
                    f"able to reach the server at '{hidden(url)}' (penstock.connect.inner-url)"
                )
            time.sleep(TICK_SECONDS)
        if self._failure or (self._ended is not None and self._ended[1]):
            raise self._loss()

    def _is_unknown(self) -> bool:
        return self._ended is None and not self._failure and not self._mailbox.read(STATUS)

    def _run(self, spec: DriverSpec) -> None:
        try:
            self._session.addTag(self.key)  # the tags of a client belong to its threads
            frame = self._session.range(0, 1, 1, 1).mapInArrow(driver_task(spec), "code INT, said STRING")
            [row] = frame.collect()
            self._ended = row.code, row.said
        except Exception as error:
            self._failure = reason(describe_error(error))

    def _inner_url(self) -> str:
        """Return the URL of the server inside the cluster, with the parameters of the client's URL."""
        host = self._session.conf.get("spark.driver.host", None)
        if host is None or uses_tls(self._url):
            why = "the client uses TLS, and the server itself does not" if host else "it does not report its host"
            raise ConfigurationError(
                f"the URL under which executors reach the server at {endpoint(self._session)} is not known, because "
                f"{why}: name it with penstock.connect.inner-url"
            )
        port = self._session.conf.get("spark.connect.grpc.binding.port", "15002")
        parameters = urlsplit(self._url).path.partition(";")[2]
        return f"sc://{f'[{host}]' if ':' in host else host}:{port}/;{parameters};use_ssl=false"

    # --- watching ---
    def watch(self, out: BinaryIO, err: BinaryIO, warn: Callable[[str], None]) -> int:
        """Show the output of the program until its end, and return its exit code."""
        try:
            return self._watch(out, err, warn)
        except (PenstockError, OSError):
            raise
        except Exception as error:
            raise JobError(
                f"the server at {endpoint(self._session)} no longer reports on the driver '{self.key}', which may "
                f"still be running: {describe_error(error).strip()[:300]}"
            ) from None

    def _watch(self, out: BinaryIO, err: BinaryIO, warn: Callable[[str], None]) -> int:
        while True:
            # The end of the task is checked first, so that the status read afterwards is the last one.
            over = self._operation is not None and not self._operation.is_alive()
            status = self._mailbox.read(STATUS)
            if status:
                self._show(status, out, err, warn)
            if over:
                return self._code()
            if status is None:
                raise JobError(f"the server at {endpoint(self._session)} has no driver '{self.key}'")
            if status.get("state") == "ended" and self._operation is None:
                return int(status["code"])
            self._check_alive(status)
            time.sleep(TICK_SECONDS)

    def _show(self, status: Mapping[str, Any], out: BinaryIO, err: BinaryIO, warn: Callable[[str], None]) -> None:
        if self._task not in (None, status["task"]):
            warn("the process of the driver was lost, and Spark has started another one")
            self._readers = {"out": Reader(), "err": Reader()}
        self._task = status["task"]
        is_news = False
        for name, stream in (("out", out), ("err", err)):
            data, dropped = self._readers[name].take_new(status[name])
            if dropped:
                warn(f"{dropped} bytes of output are left out; the log of the executor has them")
            if data:
                is_news = True
                stream.write(data)
                stream.flush()
        if status["state"] == "running" and (is_news or time.monotonic() - self._told_at > BEAT_SECONDS):
            self._tell()

    def _tell(self) -> None:
        """Tell the driver how much was read, which is a sign of life, too."""
        self._told_at = time.monotonic()
        self._beats += 1
        read = {name: reader.position for name, reader in self._readers.items()}
        listens = self._operation is not None
        said = {"task": self._task, "beat": self._beats, "by": os.getpid(), "listens": listens}
        self._mailbox.write(CLIENT, {**said, **read})

    def _code(self) -> int:
        if self._ended is None or self._ended[1]:
            raise self._loss()
        with suppress(Exception):  # if it fails, the server keeps a few kilobytes more
            self._mailbox.remove()
        return self._ended[0]

    def _loss(self) -> PenstockError:
        """Return the error for a driver that did not run its program to the end."""
        why = self._failure if self._ended is None else self._ended[1].strip()
        return ConfigurationError(why) if UNFIT in why else JobError(f"the driver in the cluster has ended: {why}")

    def _check_alive(self, status: Mapping[str, Any]) -> None:
        """Raise JobError if a driver that another client has started gives no sign of life."""
        if status.get("at") != self._sign:
            self._sign, self._sign_at = status.get("at"), time.monotonic()
        if self._operation is None and time.monotonic() - self._sign_at > DEAD_SECONDS:
            raise JobError(f"the driver '{self.key}' has given no sign of life for {DEAD_SECONDS:g} s")

    def send(self, signal: str) -> None:
        """Send a signal to the program."""
        if self._mailbox.read(SIGNAL) is None:
            raise JobError(f"the server at {endpoint(self._session)} has no driver '{self.key}'")
        self._mailbox.write(SIGNAL, {"signal": signal})

    def leave(self) -> None:
        """Close the connection. The driver keeps running."""
        self._session.client.close()


def access(url: str) -> tuple[str, str | None]:
    """Return the URL with which a driver reaches its server, and the token that it needs in addition, or None.

    Spark's client sends a token to other hosts over TLS only. With `use_ssl=false`, the URL holds it as a header.
    """
    base, separator, rest = url.partition("/;")
    parameters = dict(part.partition("=")[::2] for part in rest.split(";") if part) if separator else {}
    token = parameters.pop("token", None) or os.environ.get(TOKEN_VARIABLE)
    parameters.pop("session_id", None)  # the driver has a session of its own
    if parameters.get("use_ssl", "").lower() == "false":
        del parameters["use_ssl"]
        if token is not None:
            parameters["authorization"] = quote(f"Bearer {unquote(token)}", safe="")
            token = None
    given = ";".join(f"{name}={value}" for name, value in parameters.items())
    return f"{base}/;{given}" if given else base, token


def driver_task(spec: DriverSpec) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function of the driver's task. Spark requires a plain function."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for _ in batches:
            pass
        code, said = host_driver(spec)
        yield pyarrow.RecordBatch.from_pydict({"code": pyarrow.array([code], pyarrow.int32()), "said": [said]})

    return run
