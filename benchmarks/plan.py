"""What is measured: the peers, the workloads, how many records each peer is given, and the targets."""

from __future__ import annotations

from dataclasses import dataclass, replace

from peers.workloads import INTERVAL_JOIN, KEYED_COUNT, RATIOS, SESSIONS, SLIDING, STATELESS, TUMBLING, Job

Sizes = tuple[int, int]  # records of the small and of the large run, whose difference is the measurement

LAST_RELEASE = "525c764"  # a tag or commit of this repository, measured beside the present code
BEFORE = f"last-release-{LAST_RELEASE}"  # the name of its environment


@dataclass(frozen=True)
class Workload:
    """A workload and its number of keys, where None means that every record brings a new key."""

    name: str
    label: str
    program: str
    keys: int | None

    def job(self, records: int, setting: str = "") -> Job:
        return Job(self.program, records, self.keys or records, setting)


COUNT = Workload("keyed_count", "Keyed count, 1000 keys", KEYED_COUNT, 1000)
COUNT_NEW_KEYS = Workload("keyed_count_new_keys", "Keyed count, every key new", KEYED_COUNT, None)
CHAIN = Workload("stateless", "Stateless chain", STATELESS, 1)
BASIC = (COUNT, COUNT_NEW_KEYS, CHAIN)

EVENT_KEYS = 100
BY_RATIO = {
    ratio: Workload(f"{SLIDING}{ratio}", f"Sliding, 10 s by {10 / ratio:g} s", f"{SLIDING}{ratio}", EVENT_KEYS)
    for ratio in RATIOS
}
TUMBLE = Workload(TUMBLING, "Tumbling, 10 s", TUMBLING, EVENT_KEYS)
SLIDE = BY_RATIO[10]
SESSION = Workload(SESSIONS, "Sessions of 20", SESSIONS, EVENT_KEYS)
JOIN = Workload(INTERVAL_JOIN, "Interval join, ±50 ms", INTERVAL_JOIN, EVENT_KEYS)
WINDOWS = (TUMBLE, SLIDE, SESSION, JOIN)
WORKLOADS = BASIC + WINDOWS

# Run once by every peer before it is timed: small enough for all, and each of its keys emits twice.
AGREEMENT = (Workload("agreement", "Agreement, 10 keys", KEYED_COUNT, 10), 20_000)


@dataclass(frozen=True)
class Peer:
    """A program under `peers/`. `environment` names the virtual environment it runs in, "" being that of Penstock.

    A program that ends in `.java` is compiled and run with the jars of that environment's PyFlink.
    """

    name: str
    label: str
    program: str
    environment: str
    setting: str
    sizes: dict[str, Sizes]
    quick: int  # how many records each workload has in a quick run
    lacks: tuple[Workload, ...] = ()  # workloads that the peer cannot run


def sizes(count: Sizes, new_keys: Sizes, stateless: Sizes) -> dict[str, Sizes]:
    return {COUNT.name: count, COUNT_NEW_KEYS.name: new_keys, CHAIN.name: stateless}


def window_sizes(tumbling: Sizes, sliding: Sizes, sessions: Sizes) -> dict[str, Sizes]:
    return {TUMBLE.name: tumbling, SLIDE.name: sliding, SESSION.name: sessions}


def join_sizes(both_sides: Sizes) -> dict[str, Sizes]:
    return {JOIN.name: both_sides}


PENSTOCK = Peer(
    "penstock",
    "Penstock",
    "penstock_peer.py",
    "",
    "",
    sizes((500_000, 12_500_000), (500_000, 3_500_000), (1_000_000, 41_000_000))
    | window_sizes((500_000, 12_500_000), (200_000, 3_200_000), (100_000, 700_000))
    | join_sizes((200_000, 2_200_000)),
    50_000,
)

LAST = replace(PENSTOCK, name="penstock-before", label="Penstock, the last release", environment=BEFORE)

PEERS = (
    PENSTOCK,
    LAST,
    Peer(
        "flink-java",
        "Flink in Java",
        "java/KeyedCount.java",
        "flink",
        "",
        {COUNT.name: (10_000_000, 110_000_000), COUNT_NEW_KEYS.name: (1_000_000, 9_000_000)},
        500_000,
    ),
    Peer(
        "pyflink-thread",
        "PyFlink, thread mode",
        "pyflink_peer.py",
        "flink",
        "thread",
        sizes((50_000, 350_000), (50_000, 350_000), (100_000, 1_600_000))
        | window_sizes((20_000, 140_000), (20_000, 100_000), (20_000, 80_000)),
        20_000,
        lacks=(JOIN,),
    ),
    Peer(
        "pyflink-process",
        "PyFlink, process mode",
        "pyflink_peer.py",
        "flink",
        "process",
        sizes((10_000, 70_000), (3_000, 28_000), (50_000, 350_000)),
        10_000,
    ),
    Peer(
        "tws",
        "PySpark transformWithStateInPandas, 250 k records a batch",
        "pyspark_peer.py",
        "tws",
        "250000",
        sizes((500_000, 2_500_000), (3_000, 18_000), (500_000, 6_500_000)),
        2_000,
    ),
    Peer(
        "tws-large-batches",
        "PySpark transformWithStateInPandas, 1 M records a batch",
        "pyspark_peer.py",
        "tws",
        "1000000",
        {COUNT.name: (2_000_000, 8_000_000)},
        2_000,
    ),
    Peer(
        "bytewax-1",
        "Bytewax, 1 worker",
        "bytewax_peer.py",
        "bw",
        "1",
        sizes((300_000, 3_000_000), (300_000, 3_000_000), (300_000, 9_000_000)),
        50_000,
    ),
    Peer(
        "bytewax-2",
        "Bytewax, 2 workers",
        "bytewax_peer.py",
        "bw",
        "2",
        sizes((300_000, 3_000_000), (300_000, 3_000_000), (300_000, 9_000_000)),
        50_000,
    ),
    Peer(
        "bare",
        "Bare loop, 2 processes",
        "bare_loop.py",
        "",
        "",
        sizes((1_000_000, 13_000_000), (1_000_000, 7_000_000), (1_000_000, 25_000_000))
        | window_sizes((1_000_000, 13_000_000), (200_000, 4_200_000), (1_000_000, 21_000_000))
        | join_sizes((1_000_000, 13_000_000)),
        200_000,
    ),
)

# Penstock alone: whole jobs by number of records, and the usual difference by number of keys. Sliding windows of every
# ratio get the sizes of the main table.
SCALING_RECORDS = (10_000, 100_000, 1_000_000, 10_000_000)
SCALING_KEYS = tuple(Workload(f"keys_{keys}", f"{keys:,} keys", KEYED_COUNT, keys) for keys in (1, 1000, 1_000_000))
SCALING_KEYS_SIZES = (500_000, 5_500_000)
MEMORY_RECORDS = 10_000_000
QUICK_RECORDS = (1_000, 10_000)  # in place of the above in a quick run


@dataclass(frozen=True)
class Target:
    """Penstock's rate shall be at least `ratio` times the peer's."""

    text: str
    workload: Workload
    peer: str
    ratio: float


TARGETS = (
    Target("at least 1.3 times the last release", COUNT, LAST.name, 1.3),
    Target("at least 60 times PyFlink in thread mode", COUNT, "pyflink-thread", 60),
    Target("at least 8 times transformWithStateInPandas", COUNT, "tws", 8),
    Target("at least 100 times transformWithStateInPandas with every key new", COUNT_NEW_KEYS, "tws", 100),
    Target("ahead of Bytewax on two workers", COUNT, "bytewax-2", 1),
    Target("at least 50 % of the bare loop", COUNT, "bare", 0.5),
    Target("tumbling windows: at least 20 times PyFlink in thread mode", TUMBLE, "pyflink-thread", 20),
    Target("sliding windows: at least 20 times PyFlink in thread mode", SLIDE, "pyflink-thread", 20),
    Target("session windows: at least 20 times PyFlink in thread mode", SESSION, "pyflink-thread", 20),
)
MOST_GROWTH = 1.0  # how fast the cost of a sliding window may grow, relative to size / slide
MOST_SLOT_MEGABYTES = 300
