"""Feeds a topic at a rate and reads what a counting program writes into another: how long each record was on its way.

    kafka_latency.py SERVERS SOURCE TARGET RATE SECONDS WARM_UP_SECONDS

A record's value is its key and when it was sent, and the program under test hands both on: one clock measures.
"""

from __future__ import annotations

import json
import sys
import threading
import time

from confluent_kafka import Consumer, Producer

KEYS = 100


def main() -> None:
    servers, source, target = sys.argv[1:4]
    rate, seconds, warm_up = map(float, sys.argv[4:])
    settings = {
        "bootstrap.servers": servers,
        "group.id": f"latency {time.time()}",
        "auto.offset.reset": "latest",
        "fetch.wait.max.ms": 5,
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    consumer.subscribe([target])
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 1})
    await_answer(producer, consumer, source)
    latencies: list[float] = []
    over = threading.Event()
    begins = time.time() + warm_up
    thread = threading.Thread(target=read, args=(consumer, latencies, begins, over))
    thread.start()
    feed(producer, source, rate, warm_up + seconds)
    time.sleep(3)
    over.set()
    thread.join()
    ordered = sorted(latencies)
    if not ordered:
        raise SystemExit("Error: nothing came back")
    at = {name: 1000 * ordered[int(len(ordered) * share)] for name, share in (("p50", 0.5), ("p99", 0.99))}
    print(json.dumps({"records": len(ordered), "expected": int(rate * seconds), **at}))


def await_answer(producer: Producer, consumer: Consumer, topic: str) -> None:
    """Until the program has started, and has caught up with what it was sent before."""
    deadline = time.time() + 90
    while time.time() < deadline:
        sent = time.time()
        producer.produce(topic, f"0,{sent}".encode())
        producer.flush(5)
        until = time.time() + 2
        while time.time() < until:
            message = consumer.poll(0.1)
            if message is not None and message.error() is None and message.value().endswith(str(sent).encode()):
                return
    raise SystemExit("Error: the program does not answer")


def feed(producer: Producer, topic: str, rate: float, seconds: float) -> None:
    began = time.time()
    for number in range(int(rate * seconds)):
        wait = began + number / rate - time.time()
        if wait > 0:
            time.sleep(wait)
        producer.produce(topic, f"{number % KEYS},{time.time()}".encode())
        if number % 10 == 0:
            producer.poll(0)
    producer.flush(10)


def read(consumer: Consumer, latencies: list[float], begins: float, over: threading.Event) -> None:
    while not over.is_set():
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            sent = float(message.value().partition(b",")[2])
            if sent >= begins:
                latencies.append(time.time() - sent)
    consumer.close()


if __name__ == "__main__":
    main()
