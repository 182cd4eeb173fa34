"""One Apache Kafka broker that is its own controller (KRaft)."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from tests.services.maven import jars, java
from tests.services.service import Service, free_port

VERSION = "3.9.1"
USER, PASSWORD = "alice", "wonderland"
LOGGING = "org.slf4j:slf4j-reload4j:1.7.36"


class Kafka(Service):
    name = "kafka"

    def __init__(self, folder: Path | None = None, port: int | None = None, **settings: str) -> None:
        """`settings` are broker settings, with "__" for each dot."""
        super().__init__(folder, port)
        self.controller_port = free_port()
        self.password_port = free_port()
        self.settings = {name.replace("__", "."): value for name, value in settings.items()}
        self._clients: dict[str, Any] = {}

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def with_password(self) -> str:
        """The servers that ask for USER and PASSWORD, who then may do nothing at all."""
        return f"127.0.0.1:{self.password_port}"

    # --- the server ---
    def install(self) -> None:
        self._jars = jars(f"kafka-{VERSION}", f"org.apache.kafka:kafka_2.13:{VERSION}", LOGGING)

    def launch(self) -> subprocess.Popen[bytes]:
        settings = self.folder / "server.properties"
        settings.write_text("".join(f"{name}={value}\n" for name, value in self._settings().items()))
        if not (self.folder / "data" / "meta.properties").exists():
            format_command = self._command("kafka.tools.StorageTool", "format", "-t", "penstockAAAAAAAAAAAAAA", "-c")
            done = subprocess.run([*format_command, str(settings)], check=False, capture_output=True, text=True)
            if done.returncode != 0:
                raise RuntimeError(f"no storage for Kafka:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        return self.spawn(self._command("kafka.Kafka", str(settings)))

    def _command(self, main: str, *arguments: str) -> list[str]:
        log4j = self.folder / "log4j.properties"
        log4j.write_text(
            "log4j.rootLogger=WARN, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
            "log4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n\n"
        )
        options = ["-Xmx512m", "-Xms128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        return [java(), *options, f"-Dlog4j.configuration=file:{log4j}", "-cp", f"{self._jars}/*", main, *arguments]

    def _settings(self) -> dict[str, str]:
        listeners = f"PLAINTEXT://127.0.0.1:{self.port},SASL_PLAINTEXT://127.0.0.1:{self.password_port}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": listeners,
            "listener.security.protocol.map": (
                "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
            ),
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
                f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
            ),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "log.dirs": str(self.folder / "data"),
            "auto.create.topics.enable": "false",
            "offsets.topic.num.partitions": "4",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "log.cleaner.dedupe.buffer.size": "2097152",
            "log.retention.ms": "-1",
            "log.segment.delete.delay.ms": "1000",
            "num.network.threads": "2",
            "num.io.threads": "4",
            "broker.session.timeout.ms": "1500",
            "broker.heartbeat.interval.ms": "200",
            **self.settings,
        }

    def answers(self) -> bool:
        asking = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        return bool(asking.list_topics(timeout=1).brokers)

    # --- what tests do with it ---
    def admin(self) -> AdminClient:
        return self._client("admin", AdminClient)

    def _client(self, name: str, kind: Any, **more: str) -> Any:
        """A client that is kept until the server stops: each new one takes a moment to connect."""
        if name not in self._clients:
            self._clients[name] = kind({"bootstrap.servers": self.bootstrap, "log_level": 0, **more})
        return self._clients[name]

    def stop(self, signal_number: int = signal.SIGTERM) -> None:
        self._clients.clear()
        super().stop(signal_number)

    def create_topic(self, name: str, partitions: int = 1, **config: str) -> str:
        """Create a topic and wait until clients can see it. `config` has "__" for each dot."""
        settings = {key.replace("__", "."): value for key, value in config.items()}
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
        admin = self.admin()
        admin.create_topics([topic])[name].result(60)
        self._wait_for_partitions(admin, name, partitions)
        return name

    def add_partitions(self, name: str, total: int) -> None:
        admin = self.admin()
        admin.create_partitions([NewPartitions(name, total)])[name].result(60)
        self._wait_for_partitions(admin, name, total)
        self._clients.pop("producer", None)

    def _wait_for_partitions(self, admin: AdminClient, name: str, number: int) -> None:
        deadline = time.monotonic() + 60
        while True:
            partitions = admin.list_topics(name, timeout=60).topics[name].partitions
            if len(partitions) >= number and all(one.error is None and one.leader >= 0 for one in partitions.values()):
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"{name} has no {number} partitions after 60 s: {partitions}")
            time.sleep(0.05)

    def delete_topic(self, name: str) -> None:
        admin = self.admin()
        admin.delete_topics([name])[name].result(60)

    def delete_records(self, name: str, partition: int, before: int) -> None:
        """Delete what has a lower offset, as retention would."""
        where = TopicPartition(name, partition, before)
        admin = self.admin()
        admin.delete_records([where])[where].result(60)

    def topics(self) -> set[str]:
        return set(self.admin().list_topics(timeout=60).topics)

    def topic_config(self, name: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        admin = self.admin()
        found = admin.describe_configs([resource])[resource].result(60)
        return {key: entry.value for key, entry in found.items()}

    def send(self, topic: str, values: Iterable[bytes | str | None], partition: int | None = None, **more: Any) -> None:
        """Write values; `more` goes to each produce call: key, headers, timestamp."""
        producer = self._client("producer", Producer)
        if partition is not None:
            more["partition"] = partition
        failed: list[KafkaError] = []
        for value in values:
            producer.produce(topic, value, on_delivery=lambda e, _: failed.append(e) if e else None, **more)
            producer.poll(0)
        if producer.flush(60) or failed:
            raise RuntimeError(f"not everything was written to {topic}: {failed[:3]}")

    def read(
        self, topic: str, isolation: str = "read_committed", timeout: float = 60, settling: float = 30.0
    ) -> list[Message]:
        """Everything in a topic, partition by partition, to the last stable offset or the end.

        A transaction that has just ended is waited for; one that stays open is passed over after `settling` seconds.
        """
        if isolation == "read_committed":
            self.is_settled(topic, settling)
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "tests-read",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,
            }
        )
        try:
            partitions = sorted(consumer.list_topics(topic, timeout=60).topics[topic].partitions)
            consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
            found: dict[int, list[Message]] = {partition: [] for partition in partitions}
            open_partitions, deadline = set(partitions), time.monotonic() + timeout
            while open_partitions:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"the end of {topic} was not reached within {timeout} s: {open_partitions}")
                first = consumer.poll(0.2)
                for message in [] if first is None else [first, *consumer.consume(10_000, 0)]:
                    error = message.error()
                    if error is None:
                        found[message.partition()].append(message)
                    elif error.code() == KafkaError._PARTITION_EOF:
                        open_partitions.discard(message.partition())
                    else:
                        raise KafkaException(error)
            return [message for partition in partitions for message in found[partition]]
        finally:
            consumer.close()

    def values(self, topic: str, isolation: str = "read_committed", settling: float = 30.0) -> list[str]:
        """All values as text."""
        return [message.value().decode() for message in self.read(topic, isolation, settling=settling)]

    def end_offsets(self, topic: str) -> dict[int, int]:
        """The high watermark of each partition."""
        admin = self.admin()
        partitions = admin.list_topics(topic, timeout=60).topics[topic].partitions
        asked = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in partitions}
        return {where.partition: future.result(60).offset for where, future in admin.list_offsets(asked).items()}

    def stable_offsets(self, topic: str) -> dict[int, int]:
        """The last stable offset of each partition: where the first open transaction begins, or the end."""
        consumer = self._client("stable", Consumer, **{"group.id": "tests-stable", "isolation.level": "read_committed"})
        partitions = consumer.list_topics(topic, timeout=60).topics[topic].partitions
        return {p: consumer.get_watermark_offsets(TopicPartition(topic, p), 60)[1] for p in partitions}

    def is_settled(self, topic: str, patience: float = 60.0) -> bool:
        """Whether no transaction is open. One that has just ended takes a moment to end in all partitions."""
        until = time.monotonic() + patience
        while self.stable_offsets(topic) != self.end_offsets(topic):
            if time.monotonic() > until:
                return False
            time.sleep(0.02)
        return True

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """The offsets a group has committed, partition by partition."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group})
        try:
            partitions = consumer.list_topics(topic, timeout=60).topics[topic].partitions
            found = consumer.committed([TopicPartition(topic, partition) for partition in partitions], 60)
            return {one.partition: one.offset for one in found if one.offset >= 0}
        finally:
            consumer.close()
