"""Runs reporters in threads of their own while jobs run, so that no reporter holds a job up.

Jobs of one process with the same options share their reporters. The port that Prometheus scrapes shows all these jobs.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from penstock.engine.job.job_record import JobRecord
from penstock.metrics.samples import Sample
from penstock.metrics.scopes import ScopeFormats
from penstock.service.reporters.record_samples import samples_of
from penstock.service.reporters.reporter import ReporterContext
from penstock.service.reporters.reporter_configuration import Ordered, read_reporters, relevant
from penstock.service.reporters.spans import Span, SpanFinder

log = logging.getLogger("penstock.reporters")
LAST_SECONDS = 5.0
"""Time, in seconds, that an ending program waits for the last reports."""
ReadRecord = Callable[[], JobRecord]


class Turn:
    """One reporter and its thread."""

    def __init__(
        self,
        order: Ordered,
        read: Callable[[], Sequence[Sample]],
        spans: Callable[[], list[Span]],
        before: Turn | None = None,
    ) -> None:
        """Start the thread. `before` has to end first, because it may hold the same port."""
        self.name = order.options.name
        self._before = before
        self._order = order
        self._read_spans = spans
        self._reporter = order.kind()
        self._context = ReporterContext(order.options, lambda: order.sieve.sift(read()), order.delimiter)
        self._is_open = False
        self._fails = False
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"penstock reporter {self.name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        """Report at every multiple of the interval. Intervals that pass during a slow report are skipped."""
        seconds = self._order.millis / 1000
        if self._before is not None:
            self._before.join(LAST_SECONDS)
            self._before = None
        began = time.monotonic()
        self._attempt(self._open)
        while not self._ending.wait(seconds - (time.monotonic() - began) % seconds):
            self._take_turn()
        self._take_turn()
        if self._is_open:
            self._attempt(self._reporter.close)

    def _take_turn(self) -> None:
        if not self._is_open:
            self._attempt(self._open)
        if self._is_open:
            self._attempt(self._report)

    def _open(self) -> None:
        self._reporter.open(self._context)
        self._is_open = True

    def _report(self) -> None:
        if not self._order.traces:
            self._reporter.report(self._context.samples())
        elif spans := self._read_spans():
            self._reporter.trace(spans)

    def _attempt(self, step: Callable[[], None]) -> None:
        """Run a step that may fail. Log repeated failures only once."""
        try:
            step()
        except Exception as error:
            if not self._fails:
                log.warning(
                    "reporter '%s' failed and will report again at the next interval: %s: %s",
                    self.name,
                    type(error).__name__,
                    error,
                )
                log.debug("reporter '%s'", self.name, exc_info=True)
            self._fails = True
        else:
            if self._fails:
                log.info("reporter '%s' works again", self.name)
            self._fails = False

    def end(self) -> None:
        """Ask for a last report and the end of the thread, and return at once."""
        self._ending.set()

    def join(self, seconds: float) -> None:
        """Wait at most this long for the end of the thread."""
        self._thread.join(seconds)

    @property
    def has_ended(self) -> bool:
        """True if the thread has ended."""
        return not self._thread.is_alive()


class Reporting:
    """The reporters of one configuration, and the jobs that they report on."""

    def __init__(
        self, configuration: Mapping[str, str], orders: Sequence[Ordered], before: Reporting | None = None
    ) -> None:
        self._formats = ScopeFormats.from_configuration(configuration)
        self._jobs: dict[str, ReadRecord] = {}
        self._lock = threading.Lock()
        ending: list[Turn | None] = [*before._turns] if before is not None else [None] * len(orders)
        self._turns: list[Turn] = [
            Turn(o, self.samples, self._span_reader(), b) for o, b in zip(orders, ending, strict=True)
        ]

    def add(self, job_id: str, record: ReadRecord) -> None:
        """Start to report on a job. `record` returns the job's current record."""
        with self._lock:
            self._jobs[job_id] = record

    def remove(self, job_id: str) -> bool:
        """Forget a job unless it is the last one. Return True if it is the last one."""
        with self._lock:
            if len(self._jobs) > 1:
                self._jobs.pop(job_id, None)
                return False
            return True

    def _records(self) -> list[JobRecord]:
        with self._lock:
            jobs = list(self._jobs.values())
        return [read() for read in jobs]

    def samples(self) -> list[Sample]:
        """Return the current metrics of all jobs. Metrics that jobs share, such as the driver's memory, appear once."""
        records = self._records()
        found = [sample for record in records for sample in samples_of(record, self._formats)]
        if len(records) < 2:
            return found
        alone = {(*one.logical_scope, one.name, *sorted(one.variables.items())): one for one in reversed(found)}
        return list(reversed(alone.values()))

    def _span_reader(self) -> Callable[[], list[Span]]:
        """Return a function that returns new spans. Each reporter has its own, which remembers reported spans."""
        finders: dict[str, SpanFinder] = {}

        def read() -> list[Span]:
            records = self._records()
            return [span for each in records for span in finders.setdefault(each.job_id, SpanFinder()).new(each)]

        return read

    def end(self) -> None:
        """Ask all reporters for a last report and their end, and return at once."""
        for turn in self._turns:
            turn.end()

    @property
    def has_ended(self) -> bool:
        """True if all reporters have ended."""
        return all(turn.has_ended for turn in self._turns)

    def join(self, seconds: float) -> None:
        """Wait at most this long for the end of all reporters."""
        until = time.monotonic() + seconds
        for turn in self._turns:
            turn.join(max(0.0, until - time.monotonic()))


# --- shared by the jobs of a process ---
_Key = tuple[tuple[str, str], ...]
_lock = threading.Lock()
_shared: dict[_Key, Reporting] = {}
_ending: dict[_Key, Reporting] = {}
"""Reporters that may not have sent their last report yet."""


class Place:
    """A job's membership in the jobs that the reporters of its configuration report on."""

    def __init__(self, configuration: Mapping[str, str], orders: Sequence[Ordered]) -> None:
        self._configuration = configuration
        self._orders = orders
        self._key: _Key = tuple(sorted(configuration.items()))
        self._job_id = ""

    def add(self, job_id: str, record: ReadRecord) -> None:
        """Report on the job, which is about to start, from now on."""
        self._job_id = job_id
        with _lock:
            if self._key not in _shared:
                before = _ending.pop(self._key, None)
                _shared[self._key] = Reporting(self._configuration, self._orders, before)
            _shared[self._key].add(job_id, record)

    def leave(self) -> None:
        """Stop to report on the job, which has ended. After the last job, the reporters report its end and close."""
        with _lock:
            reporting = _shared.get(self._key)
            if reporting is None or not reporting.remove(self._job_id):
                return
            for key in [key for key, one in _ending.items() if one.has_ended]:
                del _ending[key]
            _ending[self._key] = _shared.pop(self._key)
        reporting.end()


def place_for(configuration: Mapping[str, str]) -> Place | None:
    """Register with the reporters of a configuration, or return None if it names none.

    Raise ConfigurationError or MissingDependency for reporters that could never work.
    """
    chosen = relevant(configuration)
    orders = read_reporters(chosen)
    return Place(chosen, orders) if orders else None


@atexit.register
def _wait_for_last_reports() -> None:
    """Wait for the last reports of a program that ends right after its job."""
    with _lock:
        late = [*_ending.values(), *_shared.values()]
    for reporting in late:
        reporting.end()
    until = time.monotonic() + LAST_SECONDS
    for reporting in late:
        reporting.join(max(0.0, until - time.monotonic()))
