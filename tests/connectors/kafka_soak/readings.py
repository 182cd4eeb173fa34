"""Writes readings at a steady rate, whatever happens to the servers, and remembers what has arrived there."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import defaultdict
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from tests.connectors.kafka_soak.window_job import FLUSH, INPUT, WINDOW_SECONDS

KEYS = [f"key-{number}" for number in range(20)]
TICK_SECONDS = 0.05
LATE_MILLIS = 1000
"""Event times are up to so far behind the clock."""
FAR_AHEAD_MILLIS = 3_600_000
Windows = dict[tuple[str, int], tuple[int, int]]
"""Count and sum by key and start."""


class Readings(threading.Thread):
    """An idempotent producer that waits for servers as long as it takes."""

    def __init__(self, servers: str, partitions: int, rate: int) -> None:
        super().__init__(name="readings", daemon=True)
        self.partitions = partitions
        self.rate = rate
        self.silent: int | None = None
        """A partition that gets nothing for a while."""
        self.sent = 0
        self.delivered: dict[int, int] = defaultdict(int)
        """By partition."""
        self.expected: Windows = defaultdict(lambda: (0, 0))
        self.trouble: list[str] = []
        self._chance = random.Random(1)
        self._over = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "acks": "all",
                "message.timeout.ms": 0,
                "linger.ms": 20,
                "topic.metadata.refresh.interval.ms": 1000,
                "log_level": 0,
            }
        )

    def run(self) -> None:
        began, number = time.monotonic(), 0
        try:
            while not self._over.wait(TICK_SECONDS):
                due = int((time.monotonic() - began) * self.rate)
                for number in range(number, due):
                    self._send(number)
                number = max(number, due)
                self._producer.poll(0)
        except Exception as error:
            self.trouble.append(f"the producer failed: {error!r}")

    def _send(self, number: int) -> None:
        partition = number % self.partitions
        if partition == self.silent:
            partition = (partition + 1) % self.partitions
        at = int(time.time() * 1000) - self._chance.randrange(LATE_MILLIS)
        self._write({"key": self._chance.choice(KEYS), "at": at, "number": number}, partition)
        self.sent += 1

    def _write(self, reading: dict[str, Any], partition: int) -> None:
        deadline = time.monotonic() + 120
        while True:
            try:
                text = json.dumps(reading).encode()
                return self._producer.produce(INPUT, text, partition=partition, on_delivery=self._arrived)
            except KafkaException as error:
                # A partition that is new to the producer, which asks for news every second.
                if error.args[0].code() != KafkaError._UNKNOWN_PARTITION or time.monotonic() > deadline:
                    raise
                self._producer.poll(0.05)

    def _arrived(self, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            self.trouble.append(f"a record was not written: {error.str()}")
            return
        reading = json.loads(message.value())
        if reading["key"] == FLUSH:
            return
        self.delivered[message.partition()] += 1
        width = WINDOW_SECONDS * 1000
        where = reading["key"], reading["at"] // width * width
        count, total = self.expected[where]
        self.expected[where] = count + 1, total + reading["number"]

    def finish(self) -> None:
        """Write what is left, and then a record far ahead in event time into every partition."""
        self._over.set()
        self.join()
        if self._producer.flush(60):
            self.trouble.append("not everything was written within 60 s")
        at = int(time.time() * 1000) + FAR_AHEAD_MILLIS
        for partition in range(self.partitions):
            self._write({"key": FLUSH, "at": at, "number": 0}, partition)
        if self._producer.flush(60):
            self.trouble.append("the last records were not written within 60 s")
