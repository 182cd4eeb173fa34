"""Strategies for restarts after a failure, as plain data that the driver of a job reads."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from penstock.base.arguments import check_arguments
from penstock.common.time import Duration, Time, to_millis

__all__ = ["RestartStrategies", "RestartStrategyConfiguration"]

Interval = int | timedelta | Duration | Time


@check_arguments
@dataclass(frozen=True)
class RestartStrategyConfiguration:
    """Base of the restart strategies. Times are kept in milliseconds."""

    def get_description(self) -> str:
        """Return a short text about the strategy."""
        raise NotImplementedError


@check_arguments
class RestartStrategies:
    """Makes restart strategies. Times are int milliseconds, timedelta or Duration."""

    @check_arguments
    @dataclass(frozen=True)
    class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
        """The first failure ends the job."""

        def get_description(self) -> str:
            return "no restarts"

    @check_arguments
    @dataclass(frozen=True)
    class FallbackRestartStrategyConfiguration(RestartStrategyConfiguration):
        """The strategy that the configuration names."""

        def get_description(self) -> str:
            return "as the configuration says"

    @check_arguments
    @dataclass(frozen=True)
    class FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """A number of restarts, each after the same wait."""

        restart_attempts: int
        delay_between_attempts_interval: Interval

        def __post_init__(self) -> None:
            _at_least("restart_attempts", self.restart_attempts, 0)
            _as_millis(self, "delay_between_attempts_interval")

        def get_restart_attempts(self) -> int:
            """Return the number of restarts."""
            return self.restart_attempts

        def get_delay_between_attempts_interval(self) -> timedelta:
            """Return the wait before each restart."""
            return _timedelta(self.delay_between_attempts_interval)

        def get_description(self) -> str:
            return f"up to {self.restart_attempts} restarts, each after {self.delay_between_attempts_interval} ms"

    @check_arguments
    @dataclass(frozen=True)
    class FailureRateRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Restarts as long as failures within the interval do not exceed the rate."""

        max_failure_rate: int
        failure_interval: Interval
        delay_between_attempts_interval: Interval

        def __post_init__(self) -> None:
            _at_least("max_failure_rate", self.max_failure_rate, 1)
            _as_millis(self, "failure_interval", lowest=1)
            _as_millis(self, "delay_between_attempts_interval")

        def get_max_failure_rate(self) -> int:
            """Return the greatest number of failures within the interval after which the job still restarts."""
            return self.max_failure_rate

        def get_failure_interval(self) -> timedelta:
            """Return the interval within which failures are counted."""
            return _timedelta(self.failure_interval)

        def get_delay_between_attempts_interval(self) -> timedelta:
            """Return the wait before each restart."""
            return _timedelta(self.delay_between_attempts_interval)

        def get_description(self) -> str:
            return (
                f"up to {self.max_failure_rate} restarts within {self.failure_interval} ms, "
                f"each after {self.delay_between_attempts_interval} ms"
            )

    @check_arguments
    @dataclass(frozen=True)
    class ExponentialDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
        """Restarts after waits that grow up to a limit and start small again after a quiet time.

        The number of restarts is unlimited unless `attempts_before_reset_backoff` is set.
        """

        INFINITE_ATTEMPTS: ClassVar[int] = 2**31 - 1

        initial_backoff: Interval
        max_backoff: Interval
        backoff_multiplier: float
        reset_backoff_threshold: Interval
        jitter_factor: float
        attempts_before_reset_backoff: int = INFINITE_ATTEMPTS

        def __post_init__(self) -> None:
            _as_millis(self, "initial_backoff", lowest=1)
            _as_millis(self, "max_backoff", lowest=to_millis(self.initial_backoff))
            _as_millis(self, "reset_backoff_threshold", lowest=1)
            if self.backoff_multiplier < 1:
                raise ValueError(f"backoff_multiplier must be at least 1, not {self.backoff_multiplier}")
            if not 0 <= self.jitter_factor <= 1:
                raise ValueError(f"jitter_factor must be between 0 and 1, not {self.jitter_factor}")
            _at_least("attempts_before_reset_backoff", self.attempts_before_reset_backoff, 1)

        def get_initial_backoff(self) -> timedelta:
            """Return the first and shortest wait."""
            return _timedelta(self.initial_backoff)

        def get_max_backoff(self) -> timedelta:
            """Return the longest wait."""
            return _timedelta(self.max_backoff)

        def get_backoff_multiplier(self) -> float:
            """Return the factor by which the wait grows after each failure."""
            return self.backoff_multiplier

        def get_reset_backoff_threshold(self) -> timedelta:
            """Return the time for which an attempt must run before waits start small again."""
            return _timedelta(self.reset_backoff_threshold)

        def get_jitter_factor(self) -> float:
            """Return the greatest random change of a wait, as a fraction of the wait."""
            return self.jitter_factor

        def get_description(self) -> str:
            return (
                f"restarts after {self.initial_backoff} ms, each wait {self.backoff_multiplier} times the last "
                f"up to {self.max_backoff} ms, from the start again after {self.reset_backoff_threshold} quiet ms"
            )

    @staticmethod
    def no_restart() -> NoRestartStrategyConfiguration:
        """Return a strategy without restarts."""
        return RestartStrategies.NoRestartStrategyConfiguration()

    @staticmethod
    def fall_back_restart() -> FallbackRestartStrategyConfiguration:
        """Return the strategy that the configuration names."""
        return RestartStrategies.FallbackRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: Interval
    ) -> FixedDelayRestartStrategyConfiguration:
        """Return a strategy of `restart_attempts` restarts, each after the same delay."""
        return RestartStrategies.FixedDelayRestartStrategyConfiguration(restart_attempts, delay_between_attempts)

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: Interval, delay_interval: Interval
    ) -> FailureRateRestartStrategyConfiguration:
        """Return a strategy that restarts, each time after `delay_interval`, until failures exceed a rate.

        The job fails after more than `failure_rate` failures within `failure_interval`.
        """
        return RestartStrategies.FailureRateRestartStrategyConfiguration(failure_rate, failure_interval, delay_interval)

    @staticmethod
    def exponential_delay_restart(
        initial_backoff: Interval = 1000,
        max_backoff: Interval = 300_000,
        backoff_multiplier: float = 2.0,
        reset_backoff_threshold: Interval = 3_600_000,
        jitter_factor: float = 0.1,
    ) -> ExponentialDelayRestartStrategyConfiguration:
        """Return a strategy of unlimited restarts after waits that grow from `initial_backoff` to `max_backoff`.

        Each failure multiplies the wait by `backoff_multiplier`, and each wait changes at random by at most the
        fraction `jitter_factor`. After an attempt that runs for `reset_backoff_threshold`, waits start again at
        `initial_backoff`.
        """
        return RestartStrategies.ExponentialDelayRestartStrategyConfiguration(
            initial_backoff, max_backoff, backoff_multiplier, reset_backoff_threshold, jitter_factor
        )


def _as_millis(configuration: RestartStrategyConfiguration, name: str, lowest: int = 0) -> None:
    try:
        millis = to_millis(getattr(configuration, name))
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    _at_least(name, millis, lowest)
    object.__setattr__(configuration, name, millis)


def _at_least(name: str, value: int, lowest: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if value < lowest:
        raise ValueError(f"{name} must be at least {lowest}, not {value}")


def _timedelta(millis: Interval) -> timedelta:
    return timedelta(milliseconds=to_millis(millis))
