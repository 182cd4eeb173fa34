"""Kafka → windows → Kafka, exactly once, for a long time, while the broker goes away and the topic grows.

    python -m tests.connectors.kafka_soak.windows [SECONDS]

On the way the broker is stopped and started, killed and started, a partition is added to the input topic and a worker
process of the job is killed. In runs of eight minutes and more one partition falls silent until it counts as idle, and
the killed broker is away for a minute. In the end every window of every key must be in
the output topic once, with the count and the sum of what the producer knows it has written; nothing may have been late,
and no transaction may be open.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from tests.connectors.kafka_soak.readings import KEYS, Readings, Windows
from tests.connectors.kafka_soak.window_job import (
    GROUP,
    IDLE_SECONDS,
    INPUT,
    LATE,
    MARKERS,
    OUT_OF_ORDER_SECONDS,
    OUTPUT,
    WINDOW_SECONDS,
)
from tests.services.kafka import Kafka
from tests.spark.kills import ROOT, Victim
from tests.waiting import Patience, until

SECONDS = 600
RATE = 300
PARTITIONS = 3
SILENT = 1
LONG = 480
LONG_OUTAGE = 60.0
PATIENCE = 120.0
UP_TO_DATE = OUT_OF_ORDER_SECONDS + 3 * WINDOW_SECONDS
"""Seconds that results are behind records when nothing is wrong, at most."""


class Job(Victim):
    """The job in a process of its own."""

    servers = ""

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.connectors.kafka_soak.window_job", str(self.folder), self.servers]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT)

    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def restarts(self) -> int:
        return (self.folder / "log").read_text(errors="replace").count("failed and restarts in")


class Results(threading.Thread):
    """Counts the committed results as they come."""

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__(name="results", daemon=True)
        self.count = 0
        self.longest_gap = 0.0
        """Seconds without a result, after the first one."""
        self._over = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "soak-results",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        partitions = self._consumer.list_topics(topic, timeout=10).topics[topic].partitions
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])

    def run(self) -> None:
        last = time.monotonic()
        while not self._over.is_set():
            message = self._consumer.poll(0.2)
            if message is not None and message.error() is None:
                now = time.monotonic()
                self.longest_gap, last = max(self.longest_gap, now - last if self.count else 0.0), now
                self.count += 1

    def finish(self) -> None:
        self._over.set()
        self.join()
        self._consumer.close()


@dataclass
class Run:
    """One run, from an empty broker to the verdict."""

    folder: Path
    seconds: float
    say: Callable[[str], None] = print
    both: bool = False
    """Whether a worker of the job is killed, too, while the killed broker is away."""
    kafka: Kafka = field(default_factory=Kafka)
    outages: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.job = Job(self.folder, "local[2]")
        self._began = 0.0

    # --- from start to end ---
    def run(self) -> list[str]:
        """What is wrong with the results; nothing, if all is well."""
        try:
            self._prepare()
            self._go_through(self._schedule())
            self._end()
            self._verify()
        finally:
            if self.job.runs():
                self.job.kill_driver()
            self.kafka.remove()
        return self.wrong

    def _prepare(self) -> None:
        self.kafka.start()
        self.kafka.create_topic(INPUT, PARTITIONS)
        self.kafka.create_topic(OUTPUT, 2)
        self.kafka.create_topic(LATE, 1)
        self.readings = Readings(self.kafka.bootstrap, PARTITIONS, RATE)
        self.results = Results(self.kafka.bootstrap, OUTPUT)
        self.job.servers = self.kafka.bootstrap
        self.job.start()
        self.job.await_checkpoint(0)
        self._began = time.monotonic()
        self.readings.start()
        self.results.start()
        self._tell("the job runs")

    def _schedule(self) -> list[tuple[float, Callable[[], None]]]:
        """At which second what happens."""
        happens = [(0.22, self._restart_broker), (0.44, self._kill_broker), (0.61, self._add_partition)]
        happens += [(0.75, self._kill_slot_when_partition_is_known)]
        if self.seconds >= LONG:
            happens += [(0.24, self._fall_silent), (0.43, self._speak_again)]
        return sorted(((self.seconds * when, what) for when, what in happens), key=lambda it: it[0])

    def _go_through(self, schedule: list[tuple[float, Callable[[], None]]]) -> None:
        every = max(5.0, self.seconds / 60)
        next_line = every
        while (elapsed := time.monotonic() - self._began) < self.seconds:
            if schedule and elapsed >= schedule[0][0]:
                schedule.pop(0)[1]()
            if elapsed >= next_line:
                self._tell()
                next_line = elapsed + every
            if not self.job.runs():
                raise AssertionError(f"the job has ended:\n{self.job.log()}")
            time.sleep(0.2)

    def _end(self) -> None:
        """Close all windows, wait for them, and stop the job."""
        self.readings.finish()
        self._tell("the producer has ended")
        patience = Patience(PATIENCE)
        while self.results.count < len(self.readings.expected) and not patience.spent(self.results.count):
            time.sleep(0.2)
        came = self.results.count >= len(self.readings.expected)
        self._tell("all windows are out" if came else "not all windows came")
        self.checkpoints = self.job.checkpoint()
        (self.folder / "enough").touch()
        process = self.job.process
        assert process is not None
        self.job.until(lambda: process.poll() is not None, "the job does not end")
        self.results.finish()
        if process.returncode != 0:
            self.wrong.append(f"the job ended with {process.returncode}:\n{self.job.log()}")
        self._tell("the job has ended")

    def _tell(self, what: str = "") -> None:
        readings = self.readings
        self.say(
            f"{time.monotonic() - self._began:6.1f} s: {sum(readings.delivered.values())} of {readings.sent} records "
            f"written, {self.results.count} of {len(readings.expected)} windows out, "
            f"checkpoint {self.job.checkpoint()}, {self.job.restarts()} restarts{what and '; '}{what}"
        )

    # --- what happens on the way ---
    def _restart_broker(self) -> None:
        self._away("stopped", self.kafka.stop, 0)

    def _kill_broker(self) -> None:
        self._away("killed", self._kill_one_or_both, LONG_OUTAGE if self.seconds >= LONG else 0)

    def _kill_one_or_both(self) -> None:
        self.kafka.kill()
        if self.both:
            time.sleep(1)
            self._kill_slot()

    def _away(self, how: str, end: Callable[[], None], pause: float) -> None:
        began = time.monotonic()
        end()
        self._tell(f"the broker was {how}")
        time.sleep(pause)
        self.kafka.start()
        self.outages.append(time.monotonic() - began)
        self._tell(f"the broker is back after {self.outages[-1]:.1f} s")
        if self.outages[-1] > IDLE_SECONDS - 20:
            self.wrong.append("the broker was away for too long: partitions may have counted as idle")

    def _add_partition(self) -> None:
        """Only when the job is up to date: its event time may pass a partition that it has not heard of."""
        self._await(lambda: self._behind() < UP_TO_DATE, "the job does not catch up")
        self.kafka.add_partitions(INPUT, PARTITIONS + 1)
        self.readings.partitions = PARTITIONS + 1
        self._tell("the input topic has a new partition")

    def _fall_silent(self) -> None:
        self.readings.silent = SILENT
        self._tell(f"partition {SILENT} falls silent")

    def _speak_again(self) -> None:
        """By now the silent partition is idle, and only the windows of the last seconds may be held back."""
        self.readings.silent = None
        self._tell(f"partition {SILENT} has news again")
        behind = self._behind()
        if behind > IDLE_SECONDS / 2:
            self.wrong.append(f"results were {behind:.0f} s behind: the silent partition held event time back")

    def _behind(self) -> float:
        """Seconds of event time from the newest result to the newest record."""
        return (len(self.readings.expected) - self.results.count) / len(KEYS) * WINDOW_SECONDS

    def _kill_slot_when_partition_is_known(self) -> None:
        self._await(lambda: PARTITIONS in self.kafka.committed(GROUP, INPUT), "the new partition is not found")
        self._kill_slot()

    def _await(self, condition: Callable[[], bool], complaint: str) -> None:
        until(condition, progress=lambda: self.results.count, patience=PATIENCE, every=0.2, told=lambda: complaint)

    def _kill_slot(self) -> None:
        slots = self.job.slots()
        if not slots:
            self.wrong.append("there was no worker process to kill")
            return
        slots[0].kill()
        self._tell("a worker of the job was killed")

    # --- the verdict ---
    def _verify(self) -> None:
        self.wrong += self.readings.trouble
        self._verify_input()
        self._verify_windows()
        self._verify_topics()
        if not self.job.restarts():
            self.wrong.append("the job never restarted, though a worker was killed")

    def _verify_input(self) -> None:
        """Check that the producer is right about what it has written."""
        ends, delivered = self.kafka.end_offsets(INPUT), self.readings.delivered
        found = {partition: end - 1 for partition, end in ends.items()}
        if found != dict(delivered) or len(found) != PARTITIONS + 1:
            self.wrong.append(f"the producer knows of {dict(delivered)} records, the topic has {found}")

    def _verify_windows(self) -> None:
        texts = self.kafka.values(OUTPUT)
        self.windows = len(texts)
        self.wrong += differences(self.readings.expected, texts)

    def _verify_topics(self) -> None:
        """Nothing was late, nothing is open, and the group's offsets are at the end."""
        late = self.kafka.values(LATE)
        if late:
            self.wrong.append(f"{len(late)} records were late, such as {late[:3]}")
        for topic in (OUTPUT, LATE, MARKERS):
            end, stable = self.kafka.end_offsets(topic), self.kafka.stable_offsets(topic)
            if end != stable:
                self.wrong.append(f"{topic} has an open transaction: it is stable up to {stable} and ends at {end}")
        committed, ends = self.kafka.committed(GROUP, INPUT), self.kafka.end_offsets(INPUT)
        if committed != ends:
            self.wrong.append(f"group {GROUP} has committed {committed}, but {INPUT} ends at {ends}")


def differences(expected: Windows, texts: list[str]) -> list[str]:
    """In which way results are not exactly the windows that were expected."""
    rows = map(json.loads, texts)
    found = Counter((row["key"], row["start"], row["count"], row["sum"]) for row in rows)
    wanted = Counter((*where, *what) for where, what in expected.items())
    unlike = {"missing": wanted - found, "too many": found - wanted}
    return [f"{n.total()} windows {how}, such as {sorted(n.items())[:5]}" for how, n in unlike.items() if n]


def summary(run: Run) -> str:
    partitions = dict(sorted(run.readings.delivered.items()))
    away = ", ".join(f"{seconds:.1f} s" for seconds in run.outages)
    return (
        f"{run.seconds:.0f} s: {sum(partitions.values())} records in {partitions}, {run.windows} windows, "
        f"{run.checkpoints} checkpoints, {run.job.restarts()} restarts, broker away for {away}, "
        f"longest time without a result {run.results.longest_gap:.1f} s"
    )


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    folder = Path(tempfile.mkdtemp(prefix="penstock-kafka-soak-"))
    run = Run(folder, seconds, lambda line: print(line, flush=True))
    wrong = run.run()
    print(summary(run))
    print(*wrong, sep="\n") if wrong else print("every window of every key is there once, nothing late, nothing open")
    if wrong:
        print(f"the job's log and checkpoints are in {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
