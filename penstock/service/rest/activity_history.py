"""What vertices did in the last half hour: so that a page which is opened now can show how it came to this.

A thread looks at the jobs every few seconds while REST is served. Figures are kept as single floats, and only of so
many jobs, so that they need a few megabytes at most.
"""

from __future__ import annotations

import logging
import math
import threading
from array import array
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from penstock.engine.job.job_record import JobRecord
from penstock.service.rest.answers.activity_answers import activity
from penstock.service.rest.answers.flink_numbers import Json
from penstock.service.rest.job_backend import Jobs

log = logging.getLogger("penstock.rest")

EVERY_SECONDS = 5.0
MOST_SAMPLES = 360
MOST_JOBS = 50
MOST_FIGURES = 40_000
"""How many figures an answer has at most: of jobs with very many vertices fewer samples are told."""
FIGURES = ("records-in-per-second", "records-out-per-second", "busy", "back-pressured", "watermark-lag")
"""Of each vertex, in this order."""


@dataclass
class _Samples:
    """Of one job. Each sample has all figures of the first vertex, then those of the second, and so on."""

    vertices: tuple[str, ...]
    times: deque[int] = field(default_factory=lambda: deque(maxlen=MOST_SAMPLES))
    figures: deque[array[float]] = field(default_factory=lambda: deque(maxlen=MOST_SAMPLES))


class ActivityHistory:
    """Remembers what jobs did. May be asked from any thread."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._samples: dict[str, _Samples] = {}
        self._lock = threading.Lock()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Within this block samples are taken."""
        over = threading.Event()
        thread = threading.Thread(target=self._watch, args=(over,), name="penstock rest history", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()

    def _watch(self, over: threading.Event) -> None:
        while not over.wait(EVERY_SECONDS):
            try:
                self.look()
            except Exception as error:  # whatever ails the jobs is told to whoever asks for them
                log.debug("no sample of the jobs could be taken: %s", error)

    def look(self) -> None:
        """Take a sample of every job that runs; of very many, of those that began last."""
        records = sorted(self._jobs.records(), key=lambda record: record.ended is None)[-MOST_JOBS:]
        with self._lock:
            known = {record.job_id for record in records}
            self._samples = {job: samples for job, samples in self._samples.items() if job in known}
            for record in records:
                if record.ended is None and record.slots:
                    self._add(record)

    def _add(self, record: JobRecord) -> None:
        vertices = tuple(vertex.id for vertex in record.vertices)
        samples = self._samples.get(record.job_id)
        if samples is None or samples.vertices != vertices:
            samples = self._samples[record.job_id] = _Samples(vertices)
        if not samples.times or record.taken > samples.times[-1]:
            samples.times.append(record.taken)
            samples.figures.append(array("f", _figures(record)))

    def answer(self, job_id: str) -> Json:
        """Times, and by vertex one list for each figure; what is not known is null."""
        with self._lock:
            samples = self._samples.get(job_id) or _Samples(())
            times, figures, vertices = list(samples.times), list(samples.figures), samples.vertices
        step = max(1, -(-len(times) * len(vertices) * len(FIGURES) // MOST_FIGURES))
        # The newest sample is always among them.
        times, figures = times[::-step][::-1], figures[::-step][::-1]
        width = len(FIGURES)
        return {
            "times": times,
            "vertices": {
                vertex: {
                    name: [_round_for_plot(sample[width * place + number]) for sample in figures]
                    for number, name in enumerate(FIGURES)
                }
                for place, vertex in enumerate(vertices)
            },
        }


def _figures(record: JobRecord) -> Iterator[float]:
    for vertex in activity(record)["vertices"]:
        mark = vertex["watermark"]
        lag = float("nan") if mark is None else float(record.taken - mark)
        yield from (*(float(vertex[name]) for name in FIGURES[:-1]), lag)


def _round_for_plot(value: float) -> float | None:
    """With as many digits as a plot can show."""
    return None if math.isnan(value) else float(f"{value:.4g}")
