"""The activity of vertices during the last half hour, so that a page opened now can plot the past.

A thread looks at the jobs every few seconds while REST is served. Figures are kept as single-precision floats and for
a limited number of jobs, so that they take a few megabytes at most.
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
"""Largest number of figures in an answer. Jobs with very many vertices get fewer samples."""
FIGURES = ("records-in-per-second", "records-out-per-second", "busy", "back-pressured", "watermark-lag")
"""Names of the figures of each vertex, in the order in which a sample stores them."""


@dataclass
class _Samples:
    """The samples of one job. Each sample has all figures of the first vertex, then those of the second, and so on."""

    vertices: tuple[str, ...]
    times: deque[int] = field(default_factory=lambda: deque(maxlen=MOST_SAMPLES))
    figures: deque[array[float]] = field(default_factory=lambda: deque(maxlen=MOST_SAMPLES))


class ActivityHistory:
    """Remembers the activity of jobs. Any thread may call its methods."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._samples: dict[str, _Samples] = {}
        self._lock = threading.Lock()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Take samples within this block."""
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
            except Exception as error:  # requests for the jobs report the same error
                log.debug("could not sample the jobs: %s", error)

    def look(self) -> None:
        """Take a sample of every running job. If there are very many jobs, sample those that began last."""
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
        """Return the times of the samples, and for each vertex one list per figure. Unknown figures are None."""
        with self._lock:
            samples = self._samples.get(job_id) or _Samples(())
            times, figures, vertices = list(samples.times), list(samples.figures), samples.vertices
        step = max(1, -(-len(times) * len(vertices) * len(FIGURES) // MOST_FIGURES))
        # The newest sample is always included.
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
    """Return the value with as many digits as a plot can show, or None if it is not a number."""
    return None if math.isnan(value) else float(f"{value:.4g}")
