"""A lease on the storage: the leader renews it, and a server that sees no renewal for its whole duration takes it.

    leaders/00000007         the id and address of the seventh leader
    leaders/00000007.pulse   rewritten with each renewal

Only one server can create the next number. No clocks are compared: a standby measures with its own clock for how long
the pulse has not changed, and the leader measures with its own clock for how long it could not renew the lease. The
leader gives up before another server may take the lease. A slow leader whose lease nobody took competes for the next
number at once. A leader that was paused and does not know of its successor yet is recognised by its old number.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from penstock.base.storage import Storage
from penstock.errors import StorageError
from penstock.service.server.leadership.elections import Deposed, Elected, last_leader
from penstock.service.server.leadership.fencing_numbers import (
    FOLDER,
    claim_fence,
    fence_name,
    forget_before,
    newest_fence,
)

log = logging.getLogger("penstock.server")
SAFE_PART = 2 / 3
"""Share of the duration after which a leader that could not renew the lease stops leading."""
RELEASED = b"released"


class Lease:
    """One server's view of the lease. `step` is called every renewal period; it may raise StorageError."""

    def __init__(
        self, storage: Storage, who: Mapping[str, Any], duration: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._storage = storage
        self._who = who
        self._duration = duration
        self._clock = clock
        self._held: int | None = None
        self._renewed = 0.0
        self._beats = 0
        self._seen: tuple[int, bytes] | None = None
        self._seen_at = 0.0

    @property
    def fence(self) -> int | None:
        """The number under which this server leads, as far as it knows, or None."""
        return self._held

    def is_valid(self) -> bool:
        """Return True if this server certainly leads, unless it is paused after the call."""
        return self._held is not None and self._clock() - self._renewed < SAFE_PART * self._duration

    def step(self) -> None:
        """Renew the lease, give it up, or take it."""
        if self._held is None:
            self._compete()
        else:
            self._renew(self._held)

    # --- leading ---
    def _renew(self, held: int) -> None:
        began = self._clock()
        if newest_fence(self._storage) != held:
            self._held = self._seen = None
            return
        if self.is_valid():
            self._beat(held)
        if self.is_valid():
            self._renewed = began
            return
        # The pulse came so late that another server may be about to take the lease without having seen it. This server
        # competes for the next number like all others.
        self._held = self._seen = None
        self._take(held + 1)

    def _beat(self, held: int) -> None:
        self._beats += 1
        said = json.dumps({"beat": self._beats, "at": time.time()}).encode()
        self._storage.write(_pulse_name(held), [said])

    def release(self) -> None:
        """Let the next leader take the lease at once."""
        if self._held is not None:
            held, self._held = self._held, None
            self._storage.write(_pulse_name(held), [RELEASED])

    # --- standing by ---
    def _compete(self) -> None:
        began = self._clock()
        newest = newest_fence(self._storage)
        pulse = self._pulse(newest)
        if (newest, pulse) != self._seen:
            # The time is taken after the look, because the pulse may have been written until then.
            self._seen, self._seen_at = (newest, pulse), self._clock()
        silent = began - self._seen_at >= self._duration
        if newest == 0 or pulse == RELEASED or silent:
            self._take(newest + 1)

    def _take(self, number: int) -> None:
        began = self._clock()
        if claim_fence(self._storage, number, self._who):
            self._held, self._renewed, self._seen = number, began, None
            forget_before(self._storage, number)

    def _pulse(self, number: int) -> bytes:
        with suppress(FileNotFoundError):
            return self._storage.read(_pulse_name(number))
        return b""


def _pulse_name(number: int) -> str:
    return f"{FOLDER}/{fence_name(number)}.pulse"


class LeaseElection:
    """Competes for the lease in a separate thread."""

    def __init__(self, storage: Storage, who: Mapping[str, Any], duration: float, renewal: float) -> None:
        self._storage = storage
        self._lease = Lease(storage, who, duration)
        self._renewal = renewal
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, on_elected: Elected, on_deposed: Deposed) -> None:
        self._step()
        self._tell(None, on_elected, on_deposed)
        self._thread = threading.Thread(
            target=self._run, args=(on_elected, on_deposed), name="penstock lease", daemon=True
        )
        self._thread.start()

    def _run(self, on_elected: Elected, on_deposed: Deposed) -> None:
        while not self._stopped.wait(self._renewal):
            before = self._lease.fence
            self._step()
            self._tell(before, on_elected, on_deposed)

    def _step(self) -> None:
        try:
            self._lease.step()
        except StorageError as error:
            log.warning("the lease on the storage could not be read: %s", error)

    def _tell(self, before: int | None, on_elected: Elected, on_deposed: Deposed) -> None:
        held = self._lease.fence
        if held == before:
            return
        try:
            if before is not None:
                on_deposed()
            if held is not None:
                on_elected(held)
        except Exception:
            log.exception("the change of the leader could not be processed")

    def leads(self) -> bool:
        return self._lease.is_valid()

    def leader(self) -> Mapping[str, Any]:
        return last_leader(self._storage)

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(30)
        try:
            self._lease.release()
        except StorageError as error:
            log.warning("the lease could not be released; it will expire: %s", error)
