"""Restart strategies: pure decisions on whether and when a failed job restarts. The job's driver carries them out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from random import Random

from penstock.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from penstock.common.time import to_millis
from penstock.engine.operators.sources.source_operator import SourceOperator
from penstock.errors import (
    AccessDenied,
    AlreadyThere,
    CheckpointFailed,
    ConfigurationError,
    JobFailed,
    MissingDependency,
    NotEnoughSlots,
    NotFound,
    OffsetOutOfRange,
    ProgramError,
    SchemaMismatch,
    SlotLost,
    SnapshotError,
    StorageError,
)
from penstock.graph.plan import Plan

LASTING = (
    ProgramError,
    ConfigurationError,
    SnapshotError,
    MissingDependency,
    NotFound,
    AccessDenied,
    OffsetOutOfRange,
    SchemaMismatch,
)
"""Errors that another attempt would meet again."""
RESTARTABLE = (JobFailed, SlotLost, CheckpointFailed, StorageError)
DEFAULT_WITH_CHECKPOINTS = RestartStrategies.ExponentialDelayRestartStrategyConfiguration(
    initial_backoff=1_000,
    max_backoff=60_000,
    backoff_multiplier=1.5,
    reset_backoff_threshold=3_600_000,
    jitter_factor=0.1,
)
"""Default strategy of a job with checkpoints, as in Flink 2.x."""

MOST_UNSTORED_ATTEMPTS = 3
"""Number of attempts without a complete checkpoint after which a bounded job ends, if a checkpoint ended each."""

_LONGEST_BACKOFF = 2.0**62
"""Upper bound of a growing wait, far above any limit. It keeps the float from overflowing after many failures."""


def is_lasting(error: Exception, has_run: bool = False, has_stored: bool = False) -> bool:
    """Return True if another attempt would fail in the same way.

    A job that has run once (`has_run`) can get back the slots that it lacks now. A storage that has taken a checkpoint
    (`has_stored`) can take the next one when there is space again, or when it is writable again.
    """
    if isinstance(error, NotEnoughSlots):
        return not has_run
    if isinstance(error, StorageError) and not isinstance(error, AlreadyThere):
        return error.lasting and not has_stored
    return isinstance(error, LASTING) or not isinstance(error, RESTARTABLE) or getattr(error, "lasting", False)


class UnstoredAttempts:
    """The number of attempts in a row that a failed checkpoint has ended before any checkpoint was complete.

    A bounded job whose checkpoints never succeed would start from its beginning for ever.
    """

    def __init__(self, plan: Plan) -> None:
        sources = [node.operator for node in plan.nodes if isinstance(node.operator, SourceOperator)]
        self._is_bounded = all(operator.source.bounded for operator in sources)
        self._attempts = 0

    def is_hopeless(self, error: Exception, has_stored: bool) -> bool:
        """Count a failed attempt. Return True if the job has to end."""
        self._attempts = self._attempts + 1 if isinstance(error, CheckpointFailed) and not has_stored else 0
        return self._is_bounded and self._attempts >= MOST_UNSTORED_ATTEMPTS


class Restarts(ABC):
    """The restart strategy of one running job. It is given the time, and never waits itself."""

    @abstractmethod
    def count_failure(self, now_millis: int) -> int | None:
        """Count a failed attempt. Return the milliseconds to wait before the next one; None to end the job."""

    @abstractmethod
    def describe(self) -> str:
        """Return a clause for messages: the reason why the job ended, or the number of restarts used so far."""


class NoRestarts(Restarts):
    """No restarts: the first failure ends the job."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def count_failure(self, now_millis: int) -> int | None:
        return None

    def describe(self) -> str:
        return self._reason


class FixedDelay(Restarts):
    """A number of restarts, each after the same wait."""

    def __init__(self, strategy: RestartStrategies.FixedDelayRestartStrategyConfiguration) -> None:
        self._attempts = strategy.restart_attempts
        self._delay = to_millis(strategy.delay_between_attempts_interval)
        self._failures = 0

    def count_failure(self, now_millis: int) -> int | None:
        self._failures += 1
        return self._delay if self._failures <= self._attempts else None

    def describe(self) -> str:
        if self._failures > self._attempts:
            return f"{_restarts(self._attempts)} used up"
        return f"{self._failures} of {_restarts(self._attempts)} used"


class FailureRate(Restarts):
    """Restarts until too many failures have happened within the interval, which includes both of its ends."""

    def __init__(self, strategy: RestartStrategies.FailureRateRestartStrategyConfiguration) -> None:
        self._allowed = strategy.max_failure_rate
        self._interval = to_millis(strategy.failure_interval)
        self._delay = to_millis(strategy.delay_between_attempts_interval)
        self._recent: deque[int] = deque()

    def count_failure(self, now_millis: int) -> int | None:
        self._recent.append(now_millis)
        while now_millis - self._recent[0] > self._interval:
            self._recent.popleft()
        return self._delay if len(self._recent) <= self._allowed else None

    def describe(self) -> str:
        return f"it failed {_times(len(self._recent))} within {self._interval} ms, and {self._allowed} are allowed"


class ExponentialDelay(Restarts):
    """Restarts after waits that grow up to a limit.

    After an attempt that ran for the threshold, counted from the end of the wait before it, the next wait is short
    again and all attempts are available again. Flink counts failures during a wait as one; here an attempt fails only
    once, so every failure counts.
    """

    def __init__(
        self, strategy: RestartStrategies.ExponentialDelayRestartStrategyConfiguration, random: Random
    ) -> None:
        self._initial = to_millis(strategy.initial_backoff)
        self._longest = to_millis(strategy.max_backoff)
        self._multiplier = strategy.backoff_multiplier
        self._threshold = to_millis(strategy.reset_backoff_threshold)
        self._jitter = strategy.jitter_factor
        self._attempts = strategy.attempts_before_reset_backoff
        self._unlimited = self._attempts == strategy.INFINITE_ATTEMPTS
        self._random = random
        self._restarted_at: int | None = None
        self._failures = 0
        self._backoff = float(self._initial)

    def count_failure(self, now_millis: int) -> int | None:
        if self._restarted_at is not None and now_millis - self._restarted_at >= self._threshold:
            self._failures, self._backoff = 0, float(self._initial)
        self._failures += 1
        if self._failures > self._attempts and not self._unlimited:
            return None
        delay = self._delay()
        self._backoff = min(self._backoff * self._multiplier, _LONGEST_BACKOFF)
        self._restarted_at = now_millis + delay
        return delay

    def describe(self) -> str:
        quiet = f"without an attempt that ran for {self._threshold} ms"
        if self._unlimited:
            return f"it failed {_times(self._failures)} {quiet}"
        if self._failures > self._attempts:
            return f"{_restarts(self._attempts)} used up {quiet}"
        return f"{self._failures} of {_restarts(self._attempts)} used {quiet}"

    def _delay(self) -> int:
        """Return the wait, moved at random within the jitter. Jobs that fail together then restart one by one."""
        spread = int(self._backoff * self._jitter)
        moved = int(self._backoff) + self._random.randint(-spread, spread)
        return max(self._initial, min(moved, self._longest))


def restarts_of(
    strategy: RestartStrategyConfiguration | None, checkpointing: bool, seed: int | str | None = None
) -> Restarts:
    """Return the restarts of a job. As in Flink, a job without a strategy restarts only if it has checkpoints."""
    match strategy:
        case None | RestartStrategies.FallbackRestartStrategyConfiguration():
            if not checkpointing:
                return NoRestarts("a job without checkpoints and without a restart strategy is not restarted")
            return ExponentialDelay(DEFAULT_WITH_CHECKPOINTS, Random(seed))
        case RestartStrategies.NoRestartStrategyConfiguration():
            return NoRestarts("its restart strategy allows no restarts")
        case RestartStrategies.FixedDelayRestartStrategyConfiguration():
            return FixedDelay(strategy)
        case RestartStrategies.FailureRateRestartStrategyConfiguration():
            return FailureRate(strategy)
        case RestartStrategies.ExponentialDelayRestartStrategyConfiguration():
            return ExponentialDelay(strategy, Random(seed))
    raise TypeError(f"a restart strategy is made with RestartStrategies, and this is none: {strategy!r}")


def _restarts(number: int) -> str:
    return "1 restart was" if number == 1 else f"{number} restarts were"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
