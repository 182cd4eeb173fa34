"""Pages of answers. All pages of a request are from the cut of the first, so the rest is kept for the client."""

from __future__ import annotations

import secrets
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate

from penstock.engine.queryable.query_requests import MOST_ANSWER_BYTES, QueryAnswer, QueryRequest
from penstock.errors import QueryError

REST_SECONDS = 60.0
"""Time for which an answer is kept after its last page was fetched, in seconds."""


@dataclass
class _Scan:
    answer: QueryAnswer
    limit: int
    ends: tuple[int, ...]
    """Number of entries up to the end of each pack."""
    used: float = 0.0

    @property
    def bytes(self) -> int:
        return sum(len(pack.data) for pack in self.answer.packs)


class Scans:
    """Answers that are fetched in pages. May be used from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, most_bytes: int = 2 * MOST_ANSWER_BYTES) -> None:
        self._clock = clock
        self._most = most_bytes
        self._scans: dict[str, _Scan] = {}
        """Scans by name, the one unused for the longest time first."""
        self._lock = threading.Lock()

    def first(self, answer: QueryAnswer, limit: int) -> QueryAnswer:
        """Return the first page of an answer."""
        scan = _Scan(answer, limit, tuple(accumulate(pack.entries for pack in answer.packs)))
        return self._page(scan, secrets.token_hex(8), 0, limit)

    def page(self, request: QueryRequest) -> QueryAnswer:
        """Return the page to which a token points."""
        name, _, place = (request.token or "").partition(".")
        with self._lock:
            self._tidy()
            scan = self._scans.pop(name, None)
        if scan is None or not place.isdecimal() or scan.answer.name != request.name:
            raise QueryError(
                f"there is no page {request.token!r} of queryable state '{request.name}': the request is too old, "
                "or it went to an earlier run of the job, or the last page has been fetched; start again with "
                "the first page"
            )
        return self._page(scan, name, int(place), request.limit or scan.limit)

    def _page(self, scan: _Scan, name: str, start: int, limit: int) -> QueryAnswer:
        """Return the packs that contain a page. The scan is kept if there are more pages."""
        packs, ends = scan.answer.packs, scan.ends
        end = start + limit
        first, last = bisect_right(ends, start), bisect_left(ends, end)
        before = ends[first - 1] if first else 0
        more = bool(ends) and end < ends[-1]
        if more:
            self._keep(scan, name)
        return replace(
            scan.answer,
            packs=packs[first : last + 1],
            skip=start - before,
            limit=limit,
            next_token=f"{name}.{end}" if more else None,
        )

    def _keep(self, scan: _Scan, name: str) -> None:
        scan.used = self._clock()
        with self._lock:
            self._scans[name] = scan
            self._tidy()

    def _tidy(self) -> None:
        """Drop scans unused for too long. If the rest is too large, drop those unused for the longest time."""
        oldest = self._clock() - REST_SECONDS
        for name in [name for name, scan in self._scans.items() if scan.used < oldest]:
            del self._scans[name]
        while len(self._scans) > 1 and sum(scan.bytes for scan in self._scans.values()) > self._most:
            del self._scans[next(iter(self._scans))]
