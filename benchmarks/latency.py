"""How long a record is on its way, from Kafka through keyed state to Kafka, beside PyFlink: `make bench-latency`."""

from __future__ import annotations

import argparse
import datetime
import json
import sys

import environments
from connectors import KAFKA_PEERS, PARTITIONS, KafkaPeer, flink_connector, running
from launch import HERE, RunFailed, run_program
from peers.kafka_jobs import AT_LEAST_ONCE
from report import about, table
from run import RESULTS, attempt, machine, say

sys.path.insert(0, str(environments.ROOT))

RATES = (100, 1_000, 10_000)
PEERS = [peer for peer in KAFKA_PEERS if peer.environment in ("", "flink")]


def measured(broker, peer: KafkaPeer, seconds: float) -> dict:
    """One program, at every rate in turn."""
    stem = peer.label.replace(",", "").replace(" ", "-").lower()
    source, target = f"{stem}-in", f"{stem}-out"
    for topic in (source, target):
        broker.create_topic(topic, partitions=PARTITIONS)
    settings = {
        "servers": broker.bootstrap,
        "source": source,
        "target": target,
        "guarantee": AT_LEAST_ONCE,
        "interval_millis": 1000,
        "mode": peer.mode,
        "latency": True,
    }
    if peer.environment == "flink":
        settings["jar"] = flink_connector()
    found = {}
    with running(environments.python_of(peer.environment), peer.program, settings) as program:
        for rate in RATES:
            program.check()
            arguments = [broker.bootstrap, source, target, str(rate), str(seconds)]
            try:
                ran = run_program(environments.python_of(""), HERE / "peers" / "kafka_latency.py", arguments)
            except RunFailed as failed:
                ran = {"error": str(failed)}
            found[str(rate)] = ran
            say(f"{peer.label} at {rate}/s: {ran}")
    return found


def section(results: dict) -> str:
    rows = []
    for label, ran in results["peers"].items():
        cells = [ran.get(str(rate), {}) for rate in RATES]
        rows.append([label, *(f"{c['p50']:.1f} / {c['p99']:.1f}" if "p50" in c else "—" for c in cells)])
    return table(["", *(f"{rate:,} records/s".replace(",", " ") for rate in RATES)], rows)


def page(results: dict) -> str:
    return "\n".join(
        [
            "# Latency\n",
            "Kafka to keyed count to Kafka, at least once, with a checkpoint a second and a buffer timeout of 0, two "
            "slots, on one machine with its broker: milliseconds from sending a record to reading it behind the job, "
            "median / 99th percentile. Feeder and sinks linger for 1 ms; PyFlink's process mode has bundles of one "
            "record. `make bench-latency` repeats it.\n",
            section(results),
            about(results),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="how long each rate is measured")
    options = parser.parse_args()
    from tests.services.kafka import Kafka

    before = machine()
    broker = Kafka(group__initial__rebalance__delay__ms="0")
    broker.start()
    try:
        peers = {peer.label: attempt(peer.label, lambda p=peer: measured(broker, p, options.seconds)) for peer in PEERS}
    finally:
        broker.remove()
    results = {
        "date": datetime.date.today().isoformat(),
        "machine": before,
        "versions": {name or "penstock": environments.versions(name) for name in ("", "flink")},
        "peers": peers,
    }
    (RESULTS / "latency.json").write_text(json.dumps(results, indent=2) + "\n")
    (RESULTS / "latency.md").write_text(page(results))
    print(page(results))


if __name__ == "__main__":
    main()
