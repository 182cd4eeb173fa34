"""How long a record is on its way, with Kafka on both sides and without, beside PyFlink: `make bench-latency`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass

import environments
from connectors import KAFKA_PEERS, PARTITIONS, KafkaPeer, flink_connector
from launch import HERE, RunFailed, run_program, running
from measuring import attempt, folder_of, header, say, versions
from pages import NOTHING, about, failures, joined, quick_warning, save, table, times
from peers.kafka_jobs import AT_LEAST_ONCE

sys.path.insert(0, str(environments.ROOT))

RATES = (100, 1_000, 10_000)
PEERS = [peer for peer in KAFKA_PEERS if peer.environment in ("", "flink")]
DIRECT_PROGRAMS = {"": "direct_penstock.py", "flink": "direct_pyflink.py"}
BUNDLE_MILLIS = 5  # how long PyFlink's process mode gathers records; its default of 1000 would be far worse
LEAST_SHARE = 0.95  # a peer keeps up if it emits this share of the records that it should emit
OURS = PEERS[0].label


@dataclass(frozen=True)
class Spans:
    """Seconds for which each rate is run: first unmeasured, then measured."""

    warm_up: float = 5
    measured: float = 20


QUICK = Spans(2, 3)


def at_every_rate(peer: KafkaPeer, measure: Callable[[int], dict]) -> dict:
    found = {}
    for rate in RATES:
        try:
            found[str(rate)] = measure(rate)
        except RunFailed as failed:
            found[str(rate)] = {"error": str(failed)}
        say(f"{peer.label} at {rate}/s: {found[str(rate)]}")
    return found


# --- without Kafka ---
def direct_part(spans: Spans) -> dict:
    """Source, keyed count, sink."""
    return {peer.label: attempt(peer.label, direct_runs, peer, spans) for peer in PEERS}


def direct_runs(peer: KafkaPeer, spans: Spans) -> dict:
    python, program = environments.python_of(peer.environment), HERE / "peers" / DIRECT_PROGRAMS[peer.environment]
    settings = direct_settings(peer) | {"warm_up": spans.warm_up, "seconds": spans.measured}

    def measure(rate: int) -> dict:
        ran = run_program(python, program, [json.dumps(settings | {"rate": rate})])
        return ran | {"kept_up": ran["rate"] >= LEAST_SHARE * rate}

    return at_every_rate(peer, measure)


def direct_settings(peer: KafkaPeer) -> dict:
    if peer.environment == "":
        return {}
    return {"mode": peer.mode, "bundle_millis": BUNDLE_MILLIS, "jar": str(environments.java_jar())}


# --- with Kafka ---
def kafka_part(spans: Spans) -> dict:
    """Kafka, keyed count, Kafka."""
    from tests.services.kafka import Kafka

    broker = Kafka(group__initial__rebalance__delay__ms="0")
    try:
        broker.start()
        return {peer.label: attempt(peer.label, kafka_runs, peer, spans, broker) for peer in PEERS}
    finally:
        broker.remove()


def kafka_runs(peer: KafkaPeer, spans: Spans, broker) -> dict:
    """One program, at every rate in turn."""
    settings = kafka_settings(peer, broker)
    source, target = (broker.create_topic(settings[name], PARTITIONS) for name in ("source", "target"))
    with running(environments.python_of(peer.environment), peer.program, settings) as program:

        def measure(rate: int) -> dict:
            program.check()
            arguments = [broker.bootstrap, source, target, str(rate), str(spans.measured), str(spans.warm_up)]
            ran = run_program(environments.python_of(""), HERE / "peers" / "kafka_latency.py", arguments)
            return ran | {"kept_up": ran["records"] >= LEAST_SHARE * ran["expected"]}

        return at_every_rate(peer, measure)


def kafka_settings(peer: KafkaPeer, broker) -> dict:
    stem = peer.label.replace(",", "").replace(" ", "-").lower()
    settings = {
        "servers": broker.bootstrap,
        "source": f"{stem}-in",
        "target": f"{stem}-out",
        "guarantee": AT_LEAST_ONCE,
        "interval_millis": 1000,
        "mode": peer.mode,
        "latency": True,
        "bundle_millis": BUNDLE_MILLIS,
    }
    return settings | ({"jar": flink_connector()} if peer.environment == "flink" else {})


# --- the page ---
@dataclass(frozen=True)
class Part:
    title: str
    measure: Callable[[Spans], dict]
    caption: str


PARTS = {
    "direct": Part(
        "Source to keyed count to sink",
        direct_part,
        "Milliseconds from when the source emits a record to when the sink gets it, with 100 keys, without "
        "checkpoints. Penstock's source is a SourceFunction and its sink a SinkFunction, both in Python. PyFlink has "
        "neither: its source is Flink's DataGeneratorSource with its rate limit and its sink a class of our own, "
        "both in Java as in all its connectors. Keyed count and key selector are Python in all of them.",
    ),
    "kafka": Part(
        "Kafka to keyed count to Kafka",
        kafka_part,
        "Milliseconds from sending a record to reading it behind the job, at least once, with a checkpoint a second, "
        "on one machine with its broker. Feeder and sinks linger for 1 ms.",
    ),
}


def section(found: dict) -> str:
    if "error" in found:
        return "**Failed.**\n"
    head = ["", *(f"{rate:,} records/s".replace(",", " ") for rate in RATES)]
    rows = [[label, *(cell(runs, found, label, rate) for rate in map(str, RATES))] for label, runs in found.items()]
    return table(head, rows)


def cell(runs: dict, found: dict, label: str, rate: str) -> str:
    run, ours = runs.get(rate, {}), found[OURS].get(rate, {})
    if "p50" not in run:
        return NOTHING
    text = f"{millis(run['p50'])} / {millis(run['p99'])}"
    if label != OURS and "p50" in ours:
        text += f" ({times(ours['p50'] / run['p50'])} / {times(ours['p99'] / run['p99'])})"
    return text if run["kept_up"] else f"{text}, fell behind"


def millis(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def page(results: dict) -> str:
    parts = [
        "# Latency\n",
        quick_warning(results),
        "Median / 99th percentile, two slots, a buffer timeout of 0. In brackets: Penstock's latency as a multiple of "
        "this one's, less than 1 being faster. A peer that could not take the records as fast as they were to come "
        f"fell behind. PyFlink's process mode ends its bundles after {BUNDLE_MILLIS} ms. `make bench-latency` repeats "
        "it.\n",
    ]
    for name, part in PARTS.items():
        if name in results:
            parts += [f"## {part.title}\n", f"{part.caption}\n", section(results[name])]
    return joined([*parts, about(results), failures({name: results.get(name) for name in PARTS})])


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="some seconds for each rate, to prove that it works")
    parser.add_argument("--seconds", type=float, default=Spans.measured, help="how long each rate is measured")
    parser.add_argument("--only", choices=list(PARTS), help="measure this part alone")
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    spans = QUICK if options.quick else Spans(measured=options.seconds)
    results = header(options.quick)
    for name in [options.only] if options.only else list(PARTS):
        say(PARTS[name].title)
        results[name] = attempt(name, PARTS[name].measure, spans)
    results["versions"] = versions(("", "flink"))
    save(folder_of(options.quick, bool(options.only)), "latency", results, page(results))
    print(page(results))


if __name__ == "__main__":
    main()
