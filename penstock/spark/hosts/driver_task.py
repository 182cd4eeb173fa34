"""A program that runs in a task of a Spark Connect server, as the driver of its jobs.

Spark's Python process only waits. It starts a watching process (`python -m penstock.spark.hosts.driver_task`), which
starts the program in a third process. The watching process writes the program's output and its end into boxes
(`driver_mailbox.py`). A server cancels an operation that no client listens to. While no client gives a sign of life,
the watching process listens to its own operation.
"""

from __future__ import annotations

import json
import logging
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64decode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from penstock.spark.hosts.driver_mailbox import CLIENT, SIGNAL, STATUS, Mailbox, Stream
from penstock.spark.sessions.connect_session import (
    DRIVER_TASK,
    REMOTE_VARIABLE,
    channel_builder,
    connect_session,
    describe_error,
)
from penstock.spark.slots.worker import LONGEST_REASON, die_with_parent

TICK_SECONDS = 1.0
"""Time, in seconds, between two looks of a driver or a client into its boxes."""
BEAT_SECONDS = 2.0
"""Longest time, in seconds, between two signs of life of a driver or a client."""
SILENT_SECONDS = 6.0
"""Time, in seconds, without a sign of life after which a client counts as gone."""
LISTEN_SECONDS = 30.0
"""Time, in seconds, after which a driver without a client listens again. Each time, the server logs lost answers."""
LEAVE_SECONDS = 4.0
"""Time, in seconds, in which the program may suspend its jobs when its task ends."""
LOST = 70
"""Exit code of the watching process if the program's process was killed, so that Spark runs the task again."""
PROGRAM = "--program"
TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
SERVER_SECONDS = 30.0
"""Longest time, in seconds, in which the server must answer."""
_NOT_CONTINUED = (
    "the process of the driver was lost, and the program was not started again, because it would start its job "
    "from the beginning. To let it continue from a checkpoint, set execution.checkpointing.dir, pipeline.job-id "
    "and execution.recover=latest"
)
log = logging.getLogger("penstock.job")


@dataclass(frozen=True)
class DriverSpec:
    """A program, and the URL and token with which its driver reaches the server."""

    key: str
    seconds: float
    """Time, in seconds, in which the server must answer."""
    file: str
    program: str
    """Content of the file, in base64."""
    arguments: list[str]
    """Arguments of `penstock run` before the file."""
    program_arguments: list[str]
    options: dict[str, str]
    continues: bool
    """Whether the program continues its job after a restart."""
    url: str = ""
    """URL of the server inside the cluster."""
    token: str | None = None


@dataclass(frozen=True)
class Try:
    """A task of a driver. Spark may start several, one after the other."""

    task: int
    number: int
    user: str
    session: str
    operation: str


def host_driver(spec: DriverSpec) -> tuple[int, str]:
    """Run the program in other processes, and return its exit code and the reason of a failed start.

    Raise RuntimeError if the program's process was killed, so that Spark starts another task.
    """
    order = json.dumps({"spec": asdict(spec), "try": asdict(_this_try())})
    command = [sys.executable, "-m", "penstock.spark.hosts.driver_task"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as watching:
        said, _ = watching.communicate(order.encode())
    if watching.returncode == LOST or watching.returncode < 0:
        raise RuntimeError("the process of the driver was killed")
    return watching.returncode, said.decode(errors="replace")


def _this_try() -> Try:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    tags = context.getLocalProperty("spark.job.tags") or ""
    found = re.search(r"SparkConnect_OperationTag_User_(.*?)_Session_([0-9a-f-]+)_Operation_([0-9a-f-]+)", tags)
    user, session, operation = found.groups() if found is not None else ("", "", "")
    return Try(context.taskAttemptId(), context.attemptNumber(), user, session, operation)


class Watch:
    """Runs a program, and reports its output and its end to clients."""

    def __init__(self, spec: DriverSpec, this: Try) -> None:
        self._spec = spec
        self._this = this
        self._session = connect_session(spec.url, "Penstock driver", {}, min(spec.seconds / 3, SERVER_SECONDS))
        self._builder = channel_builder(spec.url)
        self._stub = _stub(self._builder.toChannel())
        self._mailbox = Mailbox(self._session, spec.key)
        self._streams = {"out": Stream(), "err": Stream()}
        self._lock = threading.Lock()
        self._told: tuple[object, ...] = ()
        self._told_at = 0.0
        self._client: dict[str, Any] = {}
        self._client_at = self._heard_at = time.monotonic()
        self._beat_at = 0.0
        self._listened_at = -LISTEN_SECONDS
        self._folder = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._leaving = threading.Event()

    def run(self) -> int:
        """Run the program from its start to its end, and return the exit code of this process."""
        if self._is_displaced():
            return LOST
        if self._this.number > 0:
            self._listen()  # the client may be gone, and no process has listened since the earlier task was lost
            if not self._spec.continues:
                print(_NOT_CONTINUED, flush=True)
                return self._end(1)
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=self._leave, daemon=True).start())
        with tempfile.TemporaryDirectory(prefix="penstock-driver-") as self._folder:
            self._process = self._start(Path(self._folder))
            readers = [self._reader(name) for name in self._streams]
            code = self._await_end(self._process)
            for reader in readers:
                reader.join(LEAVE_SECONDS)
        if self._leaving.is_set():
            return LOST
        if code < 0:
            log.warning("signal %d ended the process of the driver", -code)
            return LOST
        return self._end(code)

    # --- the program ---
    def _start(self, folder: Path) -> subprocess.Popen[bytes]:
        path = folder / self._spec.file
        path.write_bytes(b64decode(self._spec.program))
        settings = folder / "conf" / "penstock-conf.yaml"
        settings.parent.mkdir()
        settings.write_text(json.dumps(self._spec.options))  # JSON is YAML, and holds any text
        environment = {
            **os.environ,
            "PENSTOCK_CONF_DIR": str(settings.parent),
            REMOTE_VARIABLE: self._spec.url,
            DRIVER_TASK: "true",
            "PYTHONUNBUFFERED": "1",
        }
        command = [sys.executable, "-m", "penstock.spark.hosts.driver_task", PROGRAM, "run", *self._spec.arguments]
        command += [str(path), *self._spec.program_arguments]
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        )

    def _reader(self, name: str) -> threading.Thread:
        assert self._process is not None
        pipe = self._process.stdout if name == "out" else self._process.stderr
        reader = threading.Thread(target=self._read, args=(name, pipe), name=f"penstock {name}", daemon=True)
        reader.start()
        return reader

    def _read(self, name: str, pipe: IO[bytes]) -> None:
        """Keep the program's output for a client, and write it to the executor's log."""
        while data := os.read(pipe.fileno(), 1 << 16):
            with self._lock:
                self._streams[name].add(data)
            sys.stderr.buffer.write(data)
            sys.stderr.flush()

    def _leave(self) -> None:
        """Make the program suspend its jobs, and end this process, because the task ends."""
        self._leaving.set()
        if self._process is not None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(LEAVE_SECONDS)
            self._process.kill()
            shutil.rmtree(self._folder, ignore_errors=True)
        os._exit(LOST)

    # --- clients ---
    def _await_end(self, process: subprocess.Popen[bytes]) -> int:
        """Wait for the program, and serve clients meanwhile. Return the program's exit code."""
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(TICK_SECONDS)
            try:
                self._tick()
            except Exception as error:
                # The program has its own session, and notices by itself if its slots are lost.
                log.warning("the driver cannot report the program to its clients: %s", str(error)[:300])
                time.sleep(BEAT_SECONDS)

    def _tick(self) -> None:
        self._hear()
        if time.monotonic() - self._beat_at > BEAT_SECONDS:
            self._beat_at = time.monotonic()
            self._pass_signal_on()
            if self._is_due(time.monotonic()):
                self._listen()
            if self._is_displaced():
                log.warning("another Spark task is now the driver")
                self._leave()
        self._tell("running")

    def _hear(self) -> None:
        """Read a client's sign of life, and forget the output that the client has read."""
        heard = self._mailbox.read(CLIENT) or {}
        if heard != self._client:
            self._client, self._heard_at = heard, time.monotonic()
            if heard.get("listens"):
                self._client_at = time.monotonic()
        if heard.get("task") == self._this.task:
            with self._lock:
                for name, stream in self._streams.items():
                    stream.forget(int(heard[name]))

    def _pass_signal_on(self) -> None:
        """Send the program the signal that a client has requested."""
        wanted = (self._mailbox.read(SIGNAL) or {}).get("signal")
        if wanted is not None:
            self._mailbox.write(SIGNAL, {})
            assert self._process is not None
            self._process.send_signal(signal.Signals[wanted])

    def _tell(self, state: str, code: int | None = None) -> None:
        """Write the status if it has changed or a sign of life is due."""
        with self._lock:
            said = {name: stream.description() for name, stream in self._streams.items()}
            news = (state, *(stream.end for stream in self._streams.values()))
        is_watched = time.monotonic() - self._heard_at < SILENT_SECONDS
        is_due = time.monotonic() - self._told_at > BEAT_SECONDS
        if state == "running" and not is_due and (news == self._told or not is_watched):
            return
        self._told, self._told_at = news, time.monotonic()
        this = {"task": self._this.task, "try": self._this.number, "at": time.time()}
        self._mailbox.write(STATUS, {**this, "state": state, "code": code, **said})

    def _end(self, code: int) -> int:
        """Write the exit code and the rest of the output for clients, and return the code."""
        try:
            self._tell("ended", code)
        except Exception as error:
            log.warning("the driver cannot report the end to its clients: %s", str(error)[:300])
        return code

    # --- the operation ---
    def _is_due(self, now: float) -> bool:
        """Return True if no client has listened to the operation for too long."""
        return now - self._client_at > SILENT_SECONDS and now - self._listened_at > LISTEN_SECONDS

    def _is_displaced(self) -> bool:
        """Return True if Spark has started a later task, because it takes this one for lost."""
        task = (self._mailbox.read(STATUS) or {}).get("task")
        return task is not None and int(task) > self._this.task

    def _listen(self) -> None:
        """Listen to this task's own operation for a moment.

        Otherwise the server would abandon the operation and let its session expire.
        """
        from pyspark.sql.connect.proto.base_pb2 import ReattachExecuteRequest

        self._listened_at = time.monotonic()
        if not self._this.operation:
            return
        request = ReattachExecuteRequest(session_id=self._this.session, operation_id=self._this.operation)
        request.user_context.user_id = self._this.user
        # The answer does not matter, even if it says that earlier answers are lost: the server has noted the request.
        with suppress(Exception):
            for _ in self._stub.ReattachExecute(request, metadata=self._builder.metadata(), timeout=TICK_SECONDS):
                pass


def _stub(channel: Any) -> Any:
    """Return a gRPC stub of the server. PySpark has no call to attach to an operation of another client."""
    from pyspark.sql.connect.proto.base_pb2_grpc import SparkConnectServiceStub

    return SparkConnectServiceStub(channel)


def _become_program(arguments: list[str]) -> None:
    """Run the `penstock` command in this process, which ends with the watching one."""
    die_with_parent(signal.SIGTERM)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.argv = ["penstock", *arguments]
    runpy.run_module("penstock", run_name="__main__", alter_sys=True)


def main(arguments: list[str]) -> int:
    """Run the watching process, or with `--program` the program's process, and return the exit code."""
    if arguments and arguments[0] == PROGRAM:
        _become_program(arguments[1:])
        return 0
    die_with_parent(signal.SIGTERM)
    order: Mapping[str, Any] = json.loads(sys.stdin.buffer.read())
    spec, this = DriverSpec(**order["spec"]), Try(**order["try"])
    os.environ.pop(TOKEN_VARIABLE, None)
    if spec.token is not None:
        os.environ[TOKEN_VARIABLE] = spec.token
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        return Watch(spec, this).run()
    except Exception as error:
        print(f"{type(error).__name__}: {describe_error(error).strip()[:LONGEST_REASON]}", flush=True)
        return 1


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # gRPC's threads would hold the process up
