"""The servers of the tests, by hand: on their usual ports, until they are stopped. Their data stays.

    python -m tests.services start [kafka postgres rabbitmq cassandra elasticsearch s3 zookeeper]
    python -m tests.services status
    python -m tests.services stop

`make services` and `make services-stop` do the same for all of them.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module

from tests.services.service import HOME, Service

USUAL_PORTS = {
    "kafka": 9092,
    "postgres": 5432,
    "rabbitmq": 5672,
    "cassandra": 9042,
    "elasticsearch": 9200,
    "s3": 9000,
    "zookeeper": 2181,
}
CLASSES = {
    "kafka": "Kafka",
    "postgres": "Postgres",
    "rabbitmq": "RabbitMQ",
    "cassandra": "Cassandra",
    "elasticsearch": "Elasticsearch",
    "s3": "S3",
    "zookeeper": "ZooKeeper",
}
RUNNING = HOME / "running"


def make(name: str) -> Service:
    kind: Callable[..., Service] = getattr(import_module(f"tests.services.{name}"), CLASSES[name])
    return kind(HOME / "data" / name, USUAL_PORTS[name])


def process_of(name: str) -> int | None:
    """The process group of a server that was started before and still runs."""
    with suppress(FileNotFoundError, ValueError, ProcessLookupError):
        pid = int((RUNNING / name).read_text())
        os.killpg(pid, 0)
        return pid
    return None


def start(names: list[str]) -> None:
    RUNNING.mkdir(parents=True, exist_ok=True)
    for name in names:
        if process_of(name) is None:
            print(f"{name}: starting ...", flush=True)
            service = make(name)
            service.start()
            assert service.process is not None
            (RUNNING / name).write_text(str(service.process.pid))
        print(f"{name}: 127.0.0.1:{USUAL_PORTS[name]}, process {process_of(name)}", flush=True)


def stop(names: list[str]) -> None:
    for name in names:
        pid = process_of(name)
        if pid is not None:
            os.killpg(pid, signal.SIGTERM)
            deadline = time.monotonic() + 30
            while process_of(name) is not None and time.monotonic() < deadline:
                time.sleep(0.2)
            if process_of(name) is not None:
                os.killpg(pid, signal.SIGKILL)
            print(f"{name}: stopped")
        (RUNNING / name).unlink(missing_ok=True)


def status(names: list[str]) -> None:
    for name in names:
        pid = process_of(name)
        print(f"{name}: " + ("stopped" if pid is None else f"127.0.0.1:{USUAL_PORTS[name]}, process {pid}"))


def main(arguments: list[str]) -> None:
    commands = {"start": start, "stop": stop, "status": status}
    names = arguments[1:] or list(CLASSES)
    unknown = [name for name in names if name not in CLASSES]
    if not arguments or arguments[0] not in commands or unknown:
        sys.exit(__doc__)
    commands[arguments[0]](names)


if __name__ == "__main__":
    main(sys.argv[1:])
