"""The testing kit: run programs and single operators without Spark, on the same runtime and the same epoch loop.

    with in_process(epoch_records=3):              # a whole program; execute() runs in this process
        ...
    harness = OperatorHarness(lambda s: s.key_by(0).process(MyFunction()))
    harness.push(("a", 1), timestamp=10)           # one operator, element by element

`scripted` gives a program a source that emits exactly what a test says, with pauses, watermarks and failures between.
"""

from penstock.testing.cluster import InProcessCluster, ManualClock, in_process
from penstock.testing.harness import OperatorHarness
from penstock.testing.scripted import at, end, fail, idle, pause, scripted, watermark

__all__ = [
    "InProcessCluster",
    "ManualClock",
    "OperatorHarness",
    "at",
    "end",
    "fail",
    "idle",
    "in_process",
    "pause",
    "scripted",
    "watermark",
]
