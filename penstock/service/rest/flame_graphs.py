"""Profiles of jobs, taken in the background on request and kept for a while."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.engine.observe.profiling import Seen
from penstock.service.options.rest_options import FlameSettings
from penstock.service.rest.job_backend import Jobs

log = logging.getLogger("penstock.rest")


@dataclass(frozen=True)
class Profile:
    """The stacks that were sampled in all slots of a job."""

    seen: Sequence[Seen]
    ended: int
    """End of the profile, in milliseconds since 1970."""
    taken: float


class FlameGraphs:
    """Takes and keeps one profile per job, which serves all its vertices. Nothing runs without a request."""

    def __init__(self, jobs: Jobs, settings: FlameSettings) -> None:
        self._jobs = jobs
        self._settings = settings
        self._profiles: dict[str, Profile] = {}
        self._under_way: set[str] = set()
        self._lock = threading.Lock()

    def of(self, job_id: str) -> Profile | None:
        """Return the last profile, or None. Begin a new profile if the last one is old or missing."""
        now = time.monotonic()
        with self._lock:
            for old in [job for job, one in self._profiles.items() if now - one.taken > self._settings.cleanup / 1000]:
                del self._profiles[old]
            last = self._profiles.get(job_id)
            is_old = last is None or now - last.taken > self._settings.refresh / 1000
            if is_old and job_id not in self._under_way:
                self._under_way.add(job_id)
                threading.Thread(target=self._take, args=(job_id,), name="penstock profile", daemon=True).start()
        return last

    def _take(self, job_id: str) -> None:
        try:
            seen = self._jobs.profile(job_id, self._settings.order)
            with self._lock:
                self._profiles[job_id] = Profile(seen, int(time.time() * 1000), time.monotonic())
        except Exception as error:
            log.warning("job %s could not be profiled: %s", job_id, error)
        finally:
            with self._lock:
                self._under_way.discard(job_id)
