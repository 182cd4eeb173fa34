"""What a server does next about the driver of a job: a pure state machine. It knows no clock, process or storage.

watch, decision = decide(watch, facts, rules, now)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from penstock.common.job import JobStatus
from penstock.service.server.specs import How, Outcome


class Presence(Enum):
    """What can be seen of a job's last driver."""

    NONE = "there is none"
    ALIVE = "it runs"
    UNSEEN = "it runs elsewhere, if it does"


@dataclass(frozen=True)
class Rules:
    """When drivers are started again. Times are in milliseconds."""

    backoff: int = 1_000
    max_backoff: int = 60_000
    reset_after: int = 600_000
    """A driver that has lived for this long was healthy: the next one is started without much delay."""
    cancel_again: int = 5_000
    """A driver that was told to cancel, and runs on, is told again."""
    patience: int = 30_000
    """A driver that was told to cancel, and runs on for this long, is killed."""
    longest_silence: int = 180_000
    """A driver that has not answered for this long stands still, and is killed; the next one goes on."""


@dataclass(frozen=True)
class Watch:
    """What is remembered of a job."""

    deaths: int = 0
    """How many drivers have died, one after the other."""
    started: int | None = None
    """When the last driver was started; None before the first."""
    not_before: int = 0
    has_run: bool = False
    """Whether the job has ever run, so that a driver that cannot start it does not mean that the job is wrong."""
    cancel_since: int | None = None
    cancel_sent: int | None = None
    ended: bool = False


@dataclass(frozen=True)
class Facts:
    """What is seen of a job now."""

    driver: Presence
    outcome: Outcome | None = None
    """What the last driver said when it ended."""
    runs: bool = False
    """Whether a job of the driver has slots."""
    cancel: bool = False
    """Whether a client wants the job to be cancelled, and it has not ended yet."""
    revertible: bool = False
    """Whether this revision was to change a job that ran well before."""
    silent: int = 0
    """For how long the driver has not answered, in milliseconds."""


# --- decisions ---
@dataclass(frozen=True)
class Nothing:
    """All is well, or there is something to wait for."""


@dataclass(frozen=True)
class Start:
    """Start a driver, which takes over the job from any other."""


@dataclass(frozen=True)
class Cancel:
    """Tell the driver to cancel the job."""


@dataclass(frozen=True)
class Kill:
    """End the driver's processes."""


@dataclass(frozen=True)
class Revise:
    """Go on from the savepoint that the driver left, with another parallelism."""

    outcome: Outcome


@dataclass(frozen=True)
class Revert:
    """Go back to the revision before, since this one cannot be started."""

    outcome: Outcome


@dataclass(frozen=True)
class End:
    """The job is over."""

    status: JobStatus
    outcome: Outcome | None = None


Decision = Nothing | Start | Cancel | Kill | Revise | Revert | End
_STATUS = {How.FINISHED: JobStatus.FINISHED, How.FAILED: JobStatus.FAILED, How.CANCELED: JobStatus.CANCELED}


def decide(watch: Watch, facts: Facts, rules: Rules, now: int) -> tuple[Watch, Decision]:
    """What to do, and what to remember."""
    if watch.ended:
        return watch, Nothing()
    if facts.runs and not watch.has_run:
        watch = replace(watch, has_run=True)
    if facts.cancel and watch.cancel_since is None:
        watch = replace(watch, cancel_since=now)
    if facts.driver is Presence.ALIVE:
        return _decide_with_driver(watch, facts, rules, now)
    return _decide_without_driver(watch, facts, rules, now)


def _decide_with_driver(watch: Watch, facts: Facts, rules: Rules, now: int) -> tuple[Watch, Decision]:
    """The driver runs."""
    if facts.silent >= rules.longest_silence:
        return watch, Kill()
    if not facts.cancel or watch.cancel_since is None:
        return watch, Nothing()
    if now - watch.cancel_since >= rules.patience:
        return watch, Kill()
    if watch.cancel_sent is None or now - watch.cancel_sent >= rules.cancel_again:
        return replace(watch, cancel_sent=now), Cancel()
    return watch, Nothing()


def _decide_without_driver(watch: Watch, facts: Facts, rules: Rules, now: int) -> tuple[Watch, Decision]:
    """There is no driver, or none that can be spoken to."""
    outcome = facts.outcome
    if outcome is not None and outcome.how is How.RESCALED and not facts.cancel:
        return _reset(watch), Revise(outcome)
    if outcome is not None and outcome.how is How.FAILED and _may_pass(watch, outcome):
        if facts.revertible and not facts.cancel:
            return _reset(watch), Revert(outcome)
        outcome = None
    if outcome is not None and outcome.how in _STATUS:
        return replace(watch, ended=True), End(_STATUS[outcome.how], outcome)
    if facts.cancel:
        return replace(watch, ended=True), End(JobStatus.CANCELED)
    return _start_when_due(watch, outcome, rules, now)


def _may_pass(watch: Watch, outcome: Outcome) -> bool:
    """Whether a driver failed before it could run a job that has run before: the fault is hardly the job's."""
    return watch.has_run and not outcome.deployed


def _start_when_due(watch: Watch, outcome: Outcome | None, rules: Rules, now: int) -> tuple[Watch, Decision]:
    if watch.started is not None:
        watch = _after_death(watch, outcome, rules, now)
    if now < watch.not_before:
        return watch, Nothing()
    return replace(watch, started=now, not_before=0), Start()


def _after_death(watch: Watch, outcome: Outcome | None, rules: Rules, now: int) -> Watch:
    """A driver that was running is gone: the next one waits the longer the more have died."""
    assert watch.started is not None
    asked_to = outcome is not None and outcome.how is How.SUSPENDED
    deaths = 0 if asked_to else 1 if now - watch.started >= rules.reset_after else watch.deaths + 1
    delay = 0 if deaths == 0 else min(rules.max_backoff, rules.backoff * 2 ** min(deaths - 1, 30))
    return replace(watch, deaths=deaths, started=None, not_before=now + delay)


def _reset(watch: Watch) -> Watch:
    """The next driver starts at once."""
    return replace(watch, deaths=0, started=None, not_before=0)


def select_starts(waiting: list[str], starting: int, limit: int) -> list[str]:
    """Which of the jobs that wait for a start may have it now: the first ones, as many as may start at once."""
    return waiting[: max(0, limit - starting)]
