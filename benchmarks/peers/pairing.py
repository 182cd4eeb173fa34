"""How long queries take over few rows and over many: the difference leaves out what every run needs to start."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

LARGEST_STEP = 10
ROUND = 1_000_000  # rows of large runs are a multiple of it, since some take them in batches of this size


def report(seconds: Callable[[str, int], float], settings: dict[str, Any]) -> None:
    """Print a line of JSON for each query: its pairs, or why there are none."""
    for query in settings["queries"]:
        try:
            line = {"query": query, "pairs": pairs(lambda rows, query=query: seconds(query, rows), settings)}
        except Exception as error:  # the queries that follow do not depend on this one
            line = {"query": query, "error": f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"}
        print(json.dumps(line), flush=True)


def pairs(seconds: Callable[[int], float], settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Pairs of a small run and a large one. The large one grows until it takes long enough to tell something."""
    small, large = settings["small"], settings["large"]
    seconds(small)  # what is done once only (imports, connections, compiled code) is done here
    found: list[dict[str, Any]] = []
    while len(found) < settings["pairs"]:
        took = [seconds(small), seconds(large)]
        longer = took[1] - took[0]
        if longer < settings["least_seconds"] and large < settings["largest"]:
            wished = settings["least_seconds"] * 1.25 / max(longer, 0.05)
            large = min(up(int(large * min(max(wished, 1.5), LARGEST_STEP))), settings["largest"])
            continue
        found.append({"rows": [small, large], "seconds": took})
    return found


def up(rows: int) -> int:
    return -(-rows // ROUND) * ROUND
