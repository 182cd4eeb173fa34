"""The ownership of a job. A job has one owner at a time: the attempt whose token lies in the job's folder.

    owner/00000007          the token: process, machine and start time of the owner
    owner/00000007.began    the checkpoints that this owner continues from; from then on only they and its own are valid
    owner/00000007.over     the ending of the owner, which needs no displacing any more
    owner/00000007.commits  the owner commits the results of a BATCH job, and cannot be displaced any more
    owner/00000007.application  the Spark application of the owner, whose cores the next owner may need
    owner/00000007.newest   the number of the newest checkpoint that the owner has published
    owner/00000007.pulse    a sign of life, rewritten regularly for drivers that cannot see the process

A driver takes a job by creating the next token, which only one driver can do, and by deleting the earlier tokens. A
driver that finds its own token therefore knows that each later owner will see everything that it has published so far.
`docs/decisions/0016-one-owner-per-job.md` explains why that is enough.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Protocol
from uuid import uuid4

from penstock.base.storage import Storage
from penstock.engine.checkpoint.metadata import Metadata
from penstock.engine.checkpoint.process_identity import Whereabouts
from penstock.engine.checkpoint.rules import Ending, Start
from penstock.engine.messages.owner_token import (
    FOLDER,
    Token,
    describe_holder,
    holds,
    number_of,
    read_or_none,
    token_name,
)
from penstock.errors import AlreadyThere, CorruptSnapshot, JobDisplaced, JobRunning, StorageError

BEGAN, OVER, COMMITS, PULSE, NEWEST = ".began", ".over", ".commits", ".pulse", ".newest"
APPLICATION = ".application"
RECORDS = (BEGAN, OVER, COMMITS, PULSE, NEWEST, APPLICATION)
TRIES = 10
"""Number of attempts to claim a job while other drivers come and go."""
log = logging.getLogger("penstock.job")
_held: set[str] = set()
"""The running drivers of this process, which may outlive a driver."""


class Clock(Protocol):
    """The functions used from the module `time`."""

    def time(self) -> float: ...

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float, /) -> None: ...


class NoOwnership:
    """The ownership of a job that no other driver can find, because its checkpoints are in the driver's memory."""

    number = 0
    token: Token | None = None
    earlier: Sequence[bytes] = ()
    """The applications of displaced drivers that are not known to be alive."""

    def check(self) -> None:
        """Raise JobDisplaced if the job has another owner, or StorageError if that cannot be determined."""

    def renew(self) -> None:
        """Become the next owner, so that leftovers of the last attempt can no longer act."""

    def begin(self, line: Iterable[Metadata]) -> None:
        """Begin an attempt. From now on only these checkpoints are valid, and those that the attempt will publish."""

    def note_published(self, number: int) -> None:
        """Record the number of the newest checkpoint, so that a recovery notices if this checkpoint is gone."""

    def note_application(self, described: bytes | None) -> None:
        """Record the application in which the job runs, for the next owner."""

    def decide(self) -> None:
        """Prevent any takeover from now on, before the job does what cannot be repeated. Raises as `check` does."""

    def watch(self, seconds: float, on_displaced: Callable[[JobDisplaced], None]) -> None:
        """Write a sign of life every `seconds` seconds, and call `on_displaced` when the job has another owner."""

    def end(self, finished: bool, kept: Iterable[Metadata] | None = None) -> None:
        """Record the end of the job: whether it has finished, and the checkpoints that are kept.

        None means all checkpoints.
        """

    def forget(self) -> None:
        """Delete all traces of a job that cannot be found again."""

    def let_go(self) -> None:
        """Release the job, because this driver does nothing more."""


class Ownership(NoOwnership):
    """One driver's hold on a job's folder, from `take` to `let_go`. All but `check` belong to the driver's thread."""

    def __init__(
        self, job_folder: str, job_name: str, limit: int, found_again: bool = True, clock: Clock = time
    ) -> None:
        """`limit`: time without a pulse, in milliseconds, after which others may consider the driver dead.

        `found_again`: whether another driver can find the same job, because its id was given.
        """
        self._storage = Storage(f"{job_folder}/{FOLDER}")
        self._driver = uuid4().hex
        self._found_again = found_again
        self._clock = clock
        self._over = self._decided = False
        self._noted: tuple[int, bytes] | None = None
        self._begun: tuple[int, bytes] | None = None
        """Number and text of a token whose creation has begun. A call that failed may have created it."""
        self._stopped = threading.Event()
        self._changing = threading.Lock()
        """Held while the next token replaces this one. A check in the meantime would find no token."""
        self._holder: dict[str, Any] = {
            **Whereabouts.here().as_dict(),
            "driver": self._driver,
            "job": job_name,
            "since": datetime.now(UTC).isoformat(" ", "seconds"),
            "limit": limit,
        }

    # --- taking ---
    def take(self, takeover: bool) -> None:
        """Become the owner of a job that no driver runs or, with `takeover`, of any job.

        Raises JobRunning otherwise.
        """
        for _ in range(TRIES):
            tokens = self._tokens()
            if not takeover:
                self._refuse_if_running(tokens)
            earlier = self._applications(tokens)
            if self._claim(tokens):
                self.earlier = earlier
                self._refuse_if_decided()
                return
        raise JobRunning(f"{self._whose()}: in {TRIES} attempts, another driver became its owner first")

    def _applications(self, tokens: dict[int, bytes]) -> list[bytes]:
        """Return the applications of drivers not known to be alive. A living driver ends its own application."""
        found = []
        for number, text in tokens.items():
            with suppress(ValueError, KeyError, TypeError, StorageError):
                noted = read_or_none(self._storage, token_name(number) + APPLICATION)
                if noted is not None and not Whereabouts.of(json.loads(text)).lives():
                    found.append(noted)
        return found

    def note_application(self, described: bytes | None) -> None:
        if self.token is None or described is None or self._noted == (self.number, described):
            return
        with suppress(StorageError):  # without the note the next owner only has to wait longer
            self._storage.write(token_name(self.number) + APPLICATION, [described])
            self._noted = self.number, described

    def renew(self) -> None:
        assert self.token is not None
        with self._changing:
            is_next = self._claim({self.number: self.token.text})
        if not is_next:
            self.check()
            raise JobDisplaced(f"{self._whose()}: another driver is about to become its owner. This one ends")

    def _claim(self, tokens: dict[int, bytes]) -> bool:
        """Create the next token, and delete the given ones. Return False if another driver was faster.

        A number may have become free again in the meantime, because earlier tokens are deleted first. So the new token
        only counts if the last one is still there, and if there is no higher one.
        """
        last = max(tokens, default=0)
        number = last + 1
        if self._begun is None or self._begun[0] != number:
            self._begun = number, self._text(number)
        text = self._begun[1]
        try:
            self._storage.create(token_name(number), text)
        except AlreadyThere:
            if not holds(self._storage, token_name(number), text):
                self._begun = None
                return False
        if not self._is_next(number, tokens):
            self._storage.delete(token_name(number))
            self._begun = None
            return False
        for lower in sorted(tokens):
            self._storage.delete(token_name(lower))
        self.number, self.token, self._decided = number, Token(self._storage.url(), number, text), False
        self._begun = None
        _held.add(self._driver)
        return True

    def _is_next(self, number: int, tokens: dict[int, bytes]) -> bool:
        if number - 1 in tokens and not holds(self._storage, token_name(number - 1), tokens[number - 1]):
            return False
        return max(self._numbers(), default=0) == number

    def _text(self, number: int) -> bytes:
        """Return the text of a token. No other claim has the same text, not even one of this driver."""
        return json.dumps({"number": number, **self._holder, "claim": uuid4().hex}).encode()

    def _numbers(self) -> list[int]:
        return [number for name in self._storage.names() if (number := number_of(name)) is not None]

    def _tokens(self) -> dict[int, bytes]:
        texts = {number: read_or_none(self._storage, token_name(number)) for number in self._numbers()}
        return {number: text for number, text in texts.items() if text is not None}

    # --- other drivers ---
    def _refuse_if_running(self, tokens: dict[int, bytes]) -> None:
        for number, text in tokens.items():
            if self._runs(number, text):
                raise JobRunning(
                    f"{self._whose()}: {describe_holder(text)} (token {number} in '{self._storage.url()}'). Let that "
                    "driver end, or take the job from it with execution.takeover=true: it then ends with JobDisplaced"
                )

    def _refuse_if_decided(self) -> None:
        """Raise JobRunning if another driver commits the results of the job.

        After this check no other driver can begin to commit, since each of them checks its token after `decide`.
        """
        names = set(self._storage.names())
        for name in names:
            number = number_of(name.removesuffix(COMMITS)) if name.endswith(COMMITS) else None
            if number is None or number == self.number or token_name(number) + OVER in names:
                continue
            text = read_or_none(self._storage, name) or b""
            if self._runs(number, text):
                raise JobRunning(
                    f"{self._whose()}: {describe_holder(text)}. It is committing the results of the job and can "
                    "no longer be displaced: start this program again when that driver has ended"
                )
            log.warning(
                "%s died while it committed the results of this job: some results may already be visible",
                describe_holder(text),
            )

    def _whose(self) -> str:
        return f"job '{self._holder['job']}' is run by another driver"

    def _runs(self, number: int, text: bytes) -> bool:
        try:
            holder = json.loads(text)
            where, driver, limit = Whereabouts.of(holder), holder["driver"], holder["limit"] / 1000
        except (ValueError, KeyError, TypeError):
            log.warning("token %d in '%s' cannot be read and is ignored", number, self._storage.url())
            return False
        if self._storage.exists(token_name(number) + OVER):
            return False
        if where.is_here():
            return driver in _held
        lives = where.lives()
        return self._shows_life(number, text, limit) if lives is None else lives

    def _shows_life(self, number: int, text: bytes, limit: float) -> bool:
        """Return True if an invisible process gives a sign of life within its limit. Do not wait after an old sign.

        The storage's clock gives the age of the sign, because the clocks of two hosts may differ by any amount.
        """
        sign = self._pulse(number, text)
        silence = self._storage.age(token_name(number) + PULSE) or self._storage.age(token_name(number))
        if silence is not None and silence > limit:
            return False
        log.warning(
            "waiting up to %g s (heartbeat.timeout) for a sign of life of %s, which ran this job",
            limit,
            describe_holder(text),
        )
        until = self._clock.monotonic() + limit
        while self._clock.monotonic() < until:
            self._clock.sleep(min(1.0, limit / 10))
            if self._storage.exists(token_name(number) + OVER):
                return False
            if self._pulse(number, text) != sign:
                return True
        return False

    def _pulse(self, number: int, text: bytes) -> bytes:
        """Return the last sign of life, or the token itself if there was none since."""
        return read_or_none(self._storage, token_name(number) + PULSE) or text

    # --- keeping ---
    def check(self) -> None:
        if self.token is not None and not self._decided:
            self.token.check()

    def note_published(self, number: int) -> None:
        if self.token is not None and self._found_again:
            self._storage.write(token_name(self.number) + NEWEST, [str(number).encode()])

    def decide(self) -> None:
        if self.token is not None:
            self._note(COMMITS, self.token.text)
            self.check()
            self._decided = True

    def begin(self, line: Iterable[Metadata]) -> None:
        start = Start(self.number, frozenset((metadata.owner, metadata.number) for metadata in line))
        self._note(BEGAN, json.dumps({"line": sorted(start.inherited)}).encode())
        with suppress(StorageError):
            self._delete_earlier()
        self.check()

    def _delete_earlier(self) -> None:
        """Delete the records of earlier owners. The start of this owner contains all that is still needed of them."""
        for name in self._storage.names():
            number, dot, kind = name.partition(".")
            if dot + kind in RECORDS and int(number) < self.number:
                self._storage.delete(name)

    def _note(self, kind: str, text: bytes) -> None:
        name = token_name(self.number) + kind
        try:
            self._storage.create(name, text)
        except AlreadyThere:
            if not holds(self._storage, name, text):
                raise

    def watch(self, seconds: float, on_displaced: Callable[[JobDisplaced], None]) -> None:
        if self._found_again:
            threading.Thread(
                target=self._watch, args=(seconds, on_displaced), name="penstock owner", daemon=True
            ).start()

    def _watch(self, seconds: float, on_displaced: Callable[[JobDisplaced], None]) -> None:
        while not self._stopped.wait(seconds):
            try:
                with self._changing:
                    self.check()
                self._storage.write(token_name(self.number) + PULSE, [json.dumps({"at": self._clock.time()}).encode()])
            except JobDisplaced as displaced:
                on_displaced(displaced)
                return
            except StorageError as error:
                log.debug("the driver could not write its sign of life: %s", error)

    # --- the end ---
    def end(self, finished: bool, kept: Iterable[Metadata] | None = None) -> None:
        if self.token is None or self._over:
            return
        ending = {"finished": finished, "kept": None if kept is None else sorted((m.owner, m.number) for m in kept)}
        self._note(OVER, json.dumps(ending).encode())
        self._over = True
        if ending["kept"] == []:
            self._storage.delete(token_name(self.number) + NEWEST)

    def forget(self) -> None:
        if self._found_again:
            return
        for name in self._storage.names():
            self._storage.delete(name)
        self._storage.delete_empty_folder("")

    def let_go(self) -> None:
        self._stopped.set()
        _held.discard(self._driver)


def last_start(job_folder: str) -> Start | None:
    """Return the start, and the ending if there is one, of the last owner that began an attempt, or None."""
    storage = Storage(f"{job_folder}/{FOLDER}")
    while True:
        names = storage.names()
        numbers = [int(name.removesuffix(BEGAN)) for name in names if name.endswith(BEGAN)]
        if not numbers:
            return None
        name = token_name(max(numbers))
        began, over = read_or_none(storage, name + BEGAN), read_or_none(storage, name + OVER)
        if began is not None:
            newest = read_or_none(storage, name + NEWEST)
            try:
                inherited = _pairs(json.loads(began)["line"])
                return Start(max(numbers), inherited, _ending(over), int(newest) if newest else None)
            except (ValueError, KeyError, TypeError) as error:
                raise CorruptSnapshot(f"a record of '{storage.url(name)}' is truncated or changed: {error}") from error
        # A later owner has begun meanwhile and deleted this record.


def _ending(text: bytes | None) -> Ending | None:
    if text is None:
        return None
    ending = json.loads(text)
    return Ending(ending["finished"], None if ending["kept"] is None else _pairs(ending["kept"]))


def _pairs(listed: list[list[int]]) -> frozenset[tuple[int, int]]:
    return frozenset((owner, number) for owner, number in listed)
