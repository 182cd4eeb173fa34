"""What both peers of the latency benchmark without Kafka share: settings, records, the line of output.

Plain Python without dependencies: it is imported in the environment of every peer. A program is called with its
settings in JSON (`rate`, `seconds`, `warm_up`, and for PyFlink `mode`, `bundle_millis` and `jar`), works in the current
folder, and prints one line of JSON.

A record is the text "key,when it was emitted", in microseconds. What the sink notes is "emitted arrived".
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path

KEYS = 100
ARRIVALS = "arrivals-"  # how the names of the sinks' files begin


def settings() -> dict:
    return json.loads(sys.argv[1])


def records_of(settings: dict) -> int:
    return int(settings["rate"] * (settings["warm_up"] + settings["seconds"]))


def key_of(value: str) -> str:
    return value.partition(",")[0]


def micros() -> int:
    return time.time_ns() // 1000


def report(settings: dict) -> None:
    """Latencies after the warm-up, in milliseconds, and how many records a second the source could emit."""
    pairs = [line.split() for path in Path().glob(f"{ARRIVALS}*") for line in path.read_text().splitlines()]
    every = sorted((int(emitted), int(arrived)) for emitted, arrived in pairs)
    if len(every) != records_of(settings):
        raise SystemExit(f"ValueError: {len(every)} of {records_of(settings)} records arrived")
    begins = every[0][0] + settings["warm_up"] * 1_000_000
    counted = [(emitted, arrived) for emitted, arrived in every if emitted >= begins]
    latencies = sorted((arrived - emitted) / 1000 for emitted, arrived in counted)
    seconds = (counted[-1][0] - counted[0][0]) / 1_000_000
    found = {f"p{share}": latencies[math.ceil(len(latencies) * share / 100) - 1] for share in (50, 99)}
    print(json.dumps({"records": len(latencies), "rate": len(latencies) / seconds, **found}), flush=True)
