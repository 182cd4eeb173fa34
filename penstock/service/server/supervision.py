"""The supervision of drivers as a pure state machine, which knows no clock, process or storage.

watch, decision = decide(watch, facts, rules, now)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from penstock.common.job import JobStatus
from penstock.service.server.specs import How, Outcome


class Presence(Enum):
    """The visible state of a job's last driver."""

    NONE = "there is none"
    ALIVE = "it runs"
    UNSEEN = "another driver may be running it elsewhere"


@dataclass(frozen=True)
class Rules:
    """The rules for restarting and killing drivers. Times are in milliseconds."""

    backoff: int = 1_000
    max_backoff: int = 60_000
    reset_after: int = 600_000
    """Lifetime after which a driver counts as healthy. The next driver then gets the shortest delay."""
    cancel_again: int = 5_000
    """Time after which a cancel order is repeated if the driver still runs."""
    patience: int = 30_000
    """Time after a cancel request at which a driver that still runs is killed."""
    longest_silence: int = 180_000
    """Time without an answer after which a driver is killed and replaced."""


@dataclass(frozen=True)
class Watch:
    """The memory of the state machine for one job."""

    deaths: int = 0
    """The number of drivers that have died in a row."""
    started: int | None = None
    """The time at which the present driver was started, or None if there is none."""
    not_before: int = 0
    has_run: bool = False
    """Whether the job has ever run. If so, a driver that cannot start it does not prove that the job is faulty."""
    cancel_since: int | None = None
    cancel_sent: int | None = None
    ended: bool = False


@dataclass(frozen=True)
class Facts:
    """The present facts about a job."""

    driver: Presence
    outcome: Outcome | None = None
    """The outcome of the last driver, or None."""
    runs: bool = False
    """Whether a job of the driver has slots."""
    cancel: bool = False
    """Whether a client has requested the cancellation of a job that has not ended yet."""
    revertible: bool = False
    """Whether there is an earlier revision to go back to."""
    silent: int = 0
    """Time for which the driver has not answered, in milliseconds."""


# --- decisions ---
@dataclass(frozen=True)
class Nothing:
    """Do nothing: all is well, or something must be awaited."""


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
    """Continue from the savepoint that the driver left, with another parallelism."""

    outcome: Outcome


@dataclass(frozen=True)
class Revert:
    """Go back to the previous revision, because this one cannot start."""

    outcome: Outcome


@dataclass(frozen=True)
class End:
    """End the job with this status."""

    status: JobStatus
    outcome: Outcome | None = None


Decision = Nothing | Start | Cancel | Kill | Revise | Revert | End
_STATUS = {How.FINISHED: JobStatus.FINISHED, How.FAILED: JobStatus.FAILED, How.CANCELED: JobStatus.CANCELED}


def decide(watch: Watch, facts: Facts, rules: Rules, now: int) -> tuple[Watch, Decision]:
    """Return the next decision about a job, and the watch to remember."""
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
    """Decide while the driver runs."""
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
    """Decide without a driver, or with one that is not visible."""
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
    """Return True if a driver could not start a job that has run before, so that the job is hardly at fault."""
    return watch.has_run and not outcome.deployed


def _start_when_due(watch: Watch, outcome: Outcome | None, rules: Rules, now: int) -> tuple[Watch, Decision]:
    if watch.started is not None:
        watch = _after_death(watch, outcome, rules, now)
    if now < watch.not_before:
        return watch, Nothing()
    return replace(watch, started=now, not_before=0), Start()


def _after_death(watch: Watch, outcome: Outcome | None, rules: Rules, now: int) -> Watch:
    """Record the end of a driver. The delay of the next one doubles with each death in a row."""
    assert watch.started is not None
    asked_to = outcome is not None and outcome.how is How.SUSPENDED
    deaths = 0 if asked_to else 1 if now - watch.started >= rules.reset_after else watch.deaths + 1
    delay = 0 if deaths == 0 else min(rules.max_backoff, rules.backoff * 2 ** min(deaths - 1, 30))
    return replace(watch, deaths=deaths, started=None, not_before=now + delay)


def _reset(watch: Watch) -> Watch:
    """Let the next driver start at once."""
    return replace(watch, deaths=0, started=None, not_before=0)


def select_starts(waiting: list[str], starting: int, limit: int) -> list[str]:
    """Return the first of the waiting jobs, as many as may start now if `limit` jobs may start at once."""
    return waiting[: max(0, limit - starting)]
