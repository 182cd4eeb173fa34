"""What happens to a job under a seed: which job it is, and which faults come one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.nemesis.cluster import CORES, WORKERS, Settings

SHORT, LONG = (0.5, 4.0), (9.0, 14.0)
"""Seconds that a fault lasts: less and more than the `heartbeat.timeout` of the job."""
KILLS = ("slot", "executor", "worker", "driver", "jvm", "master")
POWER = ("worker", "driver")
LINKS = ("workers", "driver and worker", "driver and master", "worker and master")
CABLES = ("worker", "driver", "master")
STORAGE = ("full", "read-only", "frozen")
PAUSES = ("slot", "executor", "driver", "jvm", "worker", "master")
CLOCKS = ("worker", "driver", "master")
JUMPS = (-3600.0, -60.0, -5.0, 5.0, 60.0, 3600.0)
"""Seconds by which a clock is set, and set back when it is mended."""
RATE = 100
FEWEST_SECONDS = 20
"""Seconds that a job reads for, besides those for each fault."""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong, and after some time is right again."""

    kind: str
    what: str
    seconds: float
    """How long it lasts."""
    choice: int
    """Decides between several victims."""

    def __str__(self) -> str:
        return f"{self.kind} {self.what} ({self.seconds:.1f} s, {self.choice})"


@dataclass(frozen=True)
class Plan:
    """Everything that a seed decides."""

    seed: int
    settings: Settings
    steps: tuple[tuple[Fault, ...], ...]
    """Faults of one step overlap. Between steps the job must take a checkpoint."""


KINDS = {
    "kill": KILLS,
    "power": POWER,
    "partition": LINKS,
    "one-way": LINKS,
    "flap": LINKS,
    "slow": CABLES,
    "storage": STORAGE,
    "pause": PAUSES,
    "rescale": ("running", "savepoint", "crash"),
    "clock": CLOCKS,
}
TOGETHER = ("kill", "partition", "one-way", "flap", "slow", "pause", "clock")
"""Kinds of which two may be in force at a time."""


def plan_of(seed: int, steps: int = 5) -> Plan:
    """Return what a seed means. The same seed always means the same."""
    chance = Random(seed)
    settings = Settings(
        kind=chance.choice(("stream", "sql")),
        backend=chance.choice(("hashmap", "rocksdb")),
        parallelism=chance.randint(2, len(WORKERS) * CORES - CORES),
        count=RATE * (FEWEST_SECONDS + 10 * steps),
    )
    drawn = []
    for _ in range(steps):
        first = _fault(chance, tuple(KINDS))
        both = first.kind in TOGETHER and chance.random() < 0.3
        drawn.append((first, _fault(chance, TOGETHER)) if both else (first,))
    return Plan(seed, settings, tuple(drawn))


def _fault(chance: Random, kinds: tuple[str, ...]) -> Fault:
    kind = chance.choice(kinds)
    seconds = chance.uniform(*chance.choice((SHORT, LONG)))
    return Fault(kind, chance.choice(KINDS[kind]), seconds, chance.randrange(1 << 16))
