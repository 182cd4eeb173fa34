"""A job for which nothing comes runs no epochs and uses next to no CPU, whatever it reads; what comes wakes it."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from penstock.common import Configuration, Duration, SimpleStringSchema, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.file_system import FileSource, StreamFormat
from penstock.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from penstock.datastream.connectors.rabbitmq import RMQSource
from penstock.spark.sessions import session
from tests.connectors.rabbitmq.queues import Queues
from tests.services.fixtures import started
from tests.services.kafka import Kafka
from tests.services.rabbitmq import RabbitMQ
from tests.waiting import SPARK_SECONDS, until

QUIET_SECONDS = 3.0


class World:
    """Where a job reads from: lets a text appear there, and makes the stream of texts."""

    def stream(self, env: StreamExecutionEnvironment): ...

    def put(self, text: str) -> None: ...

    def close(self) -> None: ...


class OnKafka(World):
    def __init__(self, folder: Path, kafka: Kafka) -> None:
        self.kafka = kafka
        kafka.create_topic("idle", 2)
        self.put("first")

    def stream(self, env):
        builder = KafkaSource.builder().set_bootstrap_servers(self.kafka.bootstrap).set_topics("idle")
        builder.set_value_only_deserializer(SimpleStringSchema())
        source = builder.set_starting_offsets(KafkaOffsetsInitializer.earliest()).build()
        return env.from_source(source, WatermarkStrategy.no_watermarks(), "Kafka")

    def put(self, text):
        self.kafka.send("idle", [text])


class OnRabbitMQ(World):
    def __init__(self, folder: Path, broker: RabbitMQ) -> None:
        self.queues = Queues(broker.port)
        self.put("first")

    def stream(self, env):
        return env.add_source(RMQSource(self.queues.config(), "idle", True, SimpleStringSchema()))

    def put(self, text):
        self.queues.publish("idle", text)


class OnFiles(World):
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.put("first")

    def stream(self, env):
        builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(self.folder))
        source = builder.monitor_continuously(Duration.of_millis(200)).build()
        return env.from_source(source, WatermarkStrategy.no_watermarks(), "files")

    def put(self, text):
        (self.folder / f".{text}").write_text(text)
        (self.folder / f".{text}").rename(self.folder / f"{text}.txt")


class OnSparkFrames(OnFiles):
    def stream(self, env):
        frame = session.session("local[2]", "tests", {}).readStream.text(str(self.folder))
        return env.from_spark(frame).map(lambda row: row.value)


class OnSockets(World):
    def __init__(self, folder: Path) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.connection: socket.socket | None = None

    def stream(self, env):
        return env.socket_text_stream("127.0.0.1", self.server.getsockname()[1])

    def put(self, text):
        if self.connection is None:
            self.server.settimeout(SPARK_SECONDS)
            self.connection, _ = self.server.accept()
        self.connection.sendall(f"{text}\n".encode())

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.server.close()


@pytest.fixture(scope="module")
def kafka():
    yield from started(Kafka())


@pytest.fixture(scope="module")
def broker():
    yield from started(RabbitMQ())


SERVICES = {OnKafka: "kafka", OnRabbitMQ: "broker"}


@pytest.fixture(params=[OnKafka, OnRabbitMQ, OnFiles, OnSparkFrames, OnSockets])
def world(request, tmp_path) -> Iterator[World]:
    (tmp_path / "input").mkdir()
    services = [request.getfixturevalue(SERVICES[request.param])] if request.param in SERVICES else []
    made = request.param(tmp_path / "input", *services)
    yield made
    made.close()


def test_nothing_runs_until_something_comes(world: World, slot_processes: Callable[[str], dict[int, int]]) -> None:
    env = StreamExecutionEnvironment(Configuration()).set_parallelism(2)
    with world.stream(env).key_by(lambda text: text).map(lambda text: text).execute_and_collect() as results:
        driver, job = results._job.job_driver, str(results._job.job_id)
        if isinstance(world, OnSockets):
            world.put("first")
        assert next(results) == "first"
        slots = [psutil.Process(pid) for pid in slot_processes(job).values()]
        seen: list[str] = []

        def idle() -> bool:
            epochs, used, began = driver.view.epoch, cpu(slots), time.monotonic()
            time.sleep(QUIET_SECONDS)
            share = (cpu(slots) - used) / (time.monotonic() - began) / len(slots)
            seen.append(f"{driver.view.epoch - epochs} epochs, {100 * share:.2f} % of a core for a slot")
            return driver.view.epoch == epochs and share < 0.05

        until(idle, told=lambda: f"{type(world).__name__}: {seen}")
        world.put("second")
        assert next(results) == "second"


def cpu(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)
