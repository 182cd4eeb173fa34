"""The time of a stream: timestamps of records, and watermarks for the progress of event time.

Generators and assigners run in the slots; a strategy is their plain, picklable description, which is sent to the slots.
The assigners of Flink 1.x, at the end of this file, convert themselves into strategies.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from numbers import Real
from typing import Any, ClassVar, Generic, Self, overload

from penstock.base.arguments import check_arguments, invalid_argument, is_function
from penstock.base.type_variables import IN, T
from penstock.common.time import Duration, Instant, LengthOfTime, to_millis
from penstock.common.types import Row

__all__ = [
    "AscendingTimestampExtractor",
    "AscendingTimestampsWatermarks",
    "AscendingTimestampsWatermarksSupplier",
    "AssignerWithPeriodicWatermarks",
    "AssignerWithPeriodicWatermarksWrapper",
    "AssignerWithPunctuatedWatermarks",
    "BoundedOutOfOrdernessTimestampExtractor",
    "BoundedOutOfOrdernessWatermarks",
    "BoundedOutOfOrdernessWatermarksSupplier",
    "Duration",
    "NoWatermarksGenerator",
    "NoWatermarksSupplier",
    "TimestampAssigner",
    "Watermark",
    "WatermarkAlignment",
    "WatermarkGenerator",
    "WatermarkOutput",
    "WatermarkStrategy",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MIN_TIMESTAMP = -(2**63)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, order=True)
class Watermark:
    """A promise that no records with this or a lower timestamp are expected any more."""

    timestamp: int

    def __post_init__(self) -> None:
        given: Any = self.timestamp
        if type(given) is not int:
            if isinstance(given, bool) or not isinstance(given, Real) or not math.isfinite(given):
                raise invalid_argument("Watermark", "timestamp", given, "a whole number of milliseconds")
            object.__setattr__(self, "timestamp", math.trunc(given))


class WatermarkOutput(ABC):
    """Receives the watermarks of a generator. A watermark that does not advance event time is ignored."""

    @abstractmethod
    def emit_watermark(self, watermark: Watermark) -> None:
        """Emit a watermark. An idle channel becomes active again."""

    @abstractmethod
    def mark_idle(self) -> None:
        """Mark this channel as idle: others stop waiting for it until its next watermark."""

    @abstractmethod
    def mark_active(self) -> None:
        """Mark this channel as active: others wait for it again."""


class WatermarkGenerator(ABC):
    """Creates watermarks from the records that pass, or periodically."""

    @abstractmethod
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Process a record, and perhaps emit a watermark. Called for every record."""

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emit a watermark if one is due. Called at least once per epoch, after its records."""


@check_arguments
class BoundedOutOfOrdernessWatermarks(WatermarkGenerator):
    """Creates watermarks that follow the highest timestamp at a distance of the delay and one millisecond."""

    def __init__(self, delay_ms: int) -> None:
        self.delay_ms = _not_negative("the out-of-orderness", delay_ms)
        self.max_timestamp = _MIN_TIMESTAMP + delay_ms + 1

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if event_timestamp > self.max_timestamp:  # noqa: PLR1730 - once per record, and max() costs a call
            self.max_timestamp = event_timestamp

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        output.emit_watermark(Watermark(self.max_timestamp - self.delay_ms - 1))


class AscendingTimestampsWatermarks(BoundedOutOfOrdernessWatermarks):
    """Creates watermarks for timestamps that never go back, without a delay."""

    def __init__(self) -> None:
        super().__init__(0)


class NoWatermarksGenerator(WatermarkGenerator):
    """Creates no watermarks: event time stands still until the input ends."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        pass

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class TimestampAssigner(ABC, Generic[IN]):
    """Gives each record its event time."""

    @abstractmethod
    def extract_timestamp(self, value: IN, record_timestamp: int, /) -> int:
        """Return the event time in milliseconds since 1970.

        `record_timestamp` is the former timestamp, or the lowest long.
        """


@dataclass(frozen=True)
class _FromValue(TimestampAssigner):
    function: Callable[[Any], int]

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return self.function(value)


@dataclass(frozen=True)
class _FromRecord(TimestampAssigner):
    function: Callable[[Any, int], int]

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return self.function(value, record_timestamp)


@dataclass(frozen=True)
class FieldTimestamps(TimestampAssigner):
    """Takes the timestamp from a field: milliseconds, a datetime (UTC if it has no zone) or an Instant."""

    field: int | str

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        millis: int = millis_of(self._field_value(value))
        return millis

    def _field_value(self, value: Any) -> Any:
        if isinstance(self.field, str) and not isinstance(value, (Row, dict)):
            return getattr(value, self.field)
        return value[self.field]


def millis_of(moment: Any) -> Any:
    """Return a moment in whole milliseconds, rounded down. Any other object is returned unchanged."""
    if isinstance(moment, Instant):
        return moment.to_epoch_milli()
    if isinstance(moment, datetime):
        since = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)) - _EPOCH
        return since // timedelta(milliseconds=1)
    return moment


GeneratorSupplier = Callable[[Any], WatermarkGenerator]


@dataclass(frozen=True)
class BoundedOutOfOrdernessWatermarksSupplier:
    delay_ms: int

    def __call__(self, context: Any) -> WatermarkGenerator:
        return BoundedOutOfOrdernessWatermarks(self.delay_ms)


@dataclass(frozen=True)
class AscendingTimestampsWatermarksSupplier:
    def __call__(self, context: Any) -> WatermarkGenerator:
        return AscendingTimestampsWatermarks()


@dataclass(frozen=True)
class NoWatermarksSupplier:
    def __call__(self, context: Any) -> WatermarkGenerator:
        return NoWatermarksGenerator()


@dataclass(frozen=True)
class _WithoutContext:
    """Supplies generators by calling a generator class or a function without parameters."""

    make: Callable[[], WatermarkGenerator]

    def __call__(self, context: Any) -> WatermarkGenerator:
        return self.make()


@check_arguments
@dataclass(frozen=True)
class WatermarkAlignment:
    """Limit for the lead of a group's sources over the slowest of them."""

    group: str
    max_drift_ms: int
    update_interval_ms: int = 1000

    def __post_init__(self) -> None:
        if not self.group:
            raise ValueError("the watermark group needs a name")
        _not_negative("the allowed watermark drift", self.max_drift_ms)
        _positive("the update interval of an alignment", self.update_interval_ms)


@check_arguments
@dataclass(frozen=True)
class WatermarkStrategy(Generic[IN]):
    """A generator of watermarks, with an optional assigner of timestamps. The `with_…` methods return changed copies.

    >>> strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    >>> strategy.with_idleness(Duration.of_minutes(1)).idle_timeout
    60000
    """

    generator_supplier: GeneratorSupplier
    timestamp_assigner: TimestampAssigner[IN] | None = None
    idle_timeout: int | None = None
    alignment: WatermarkAlignment | None = None

    _also_allowed: ClassVar[str] = " (WatermarkStrategy.no_watermarks() if there are none) or an assigner of Flink 1.x"

    @staticmethod
    def _of_argument(value: Any) -> WatermarkStrategy | None:
        found: WatermarkStrategy | None = (
            value.to_strategy() if hasattr(value, "to_strategy") and not isinstance(value, type) else None
        )
        return found

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy[T]:
        """Return a strategy for timestamps that never go back within one source split."""
        return WatermarkStrategy(AscendingTimestampsWatermarksSupplier())

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration) -> WatermarkStrategy[T]:
        """Return a strategy for records that are late by at most `max_out_of_orderness`."""
        delay = _not_negative("the out-of-orderness", to_millis(max_out_of_orderness))
        return WatermarkStrategy(BoundedOutOfOrdernessWatermarksSupplier(delay))

    @staticmethod
    def no_watermarks() -> WatermarkStrategy[T]:
        """Return a strategy without watermarks: event time stands still until the input ends."""
        return WatermarkStrategy(NoWatermarksSupplier())

    @staticmethod
    def for_generator(
        generator_supplier: type[WatermarkGenerator] | GeneratorSupplier | Callable[[], WatermarkGenerator],
    ) -> WatermarkStrategy[T]:
        """Return a strategy with a custom generator.

        It is given by its class, or by a function that creates it. The function may have a parameter for the
        context.
        """
        if isinstance(generator_supplier, WatermarkGenerator):
            raise TypeError("pass the generator's class or a function that makes it: every subtask needs its own")
        if not callable(generator_supplier):
            raise TypeError(f"expected a WatermarkGenerator class or a function, not {generator_supplier!r}")
        if isinstance(generator_supplier, type) or _positional_parameters(generator_supplier) == 0:
            generator_supplier = _WithoutContext(generator_supplier)  # type: ignore[arg-type]
        return WatermarkStrategy(generator_supplier)  # type: ignore[arg-type]

    @overload
    def with_timestamp_assigner(self, timestamp_assigner: TimestampAssigner[IN] | Callable[[IN], int]) -> Self: ...

    @overload
    def with_timestamp_assigner(self, timestamp_assigner: Callable[[IN, int], int]) -> Self: ...

    def with_timestamp_assigner(
        self, timestamp_assigner: TimestampAssigner[IN] | Callable[[IN], int] | Callable[[IN, int], int]
    ) -> Self:
        """Take timestamps from an assigner or a function of the record.

        A function with two parameters also receives the former timestamp of the record.
        """
        return replace(self, timestamp_assigner=_as_assigner(timestamp_assigner))

    def with_timestamp_field(self, field: int | str) -> Self:
        """Take timestamps from a field, given by position or name. Records in columns are read as a column.

        It holds milliseconds, a datetime (of UTC if it has no zone) or an Instant.
        """
        if isinstance(field, bool) or not isinstance(field, (int, str)):
            raise TypeError(f"a field must be given by its position or name, not by {field!r}")
        return replace(self, timestamp_assigner=FieldTimestamps(field))

    def with_idleness(self, idle_timeout: Duration) -> Self:
        """Stop waiting for a source split that brings no record for this time."""
        return replace(self, idle_timeout=_positive("the idle timeout", to_millis(idle_timeout)))

    def with_watermark_alignment(
        self, watermark_group: str, max_allowed_watermark_drift: Duration, update_interval: Duration | None = None
    ) -> Self:
        """Hold back sources of the group that run ahead of its slowest one by more than the drift."""
        interval = 1000 if update_interval is None else to_millis(update_interval)
        drift = to_millis(max_allowed_watermark_drift)
        return replace(self, alignment=WatermarkAlignment(watermark_group, drift, interval))


def _as_assigner(assigner: Any) -> TimestampAssigner:
    if isinstance(assigner, TimestampAssigner):
        return assigner
    if isinstance(assigner, type) or not callable(assigner):
        raise TypeError(f"expected a TimestampAssigner or a function of the record, not {assigner!r}")
    parameters = _positional_parameters(assigner)
    if parameters not in (1, 2):
        raise TypeError(f"a timestamp function takes the record, or the record and its timestamp, not {parameters}")
    return _FromValue(assigner) if parameters == 1 else _FromRecord(assigner)


def _positional_parameters(function: Callable[..., Any]) -> int:
    """Return the number of required positional arguments, or 1 if inspection fails, as for operator.itemgetter."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return 1
    required = sum(p.kind in _POSITIONAL and p.default is p.empty for p in parameters)
    takes_any = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return max(1, required) if takes_any else required


def _not_negative(what: str, millis: int) -> int:
    if millis < 0:
        raise ValueError(f"{what} must not be negative, but is {millis} ms")
    return millis


def _positive(what: str, millis: int) -> int:
    if millis <= 0:
        raise ValueError(f"{what} must be positive, but is {millis} ms")
    return millis


class AssignerWithPeriodicWatermarks(TimestampAssigner):
    """An assigner of Flink 1.x: it gives timestamps and, when asked periodically, the watermark."""

    @abstractmethod
    def extract_timestamp(self, element: Any, record_timestamp: int) -> int:
        """Return the time of a record, in milliseconds since 1970. `record_timestamp` is its former timestamp."""

    @abstractmethod
    def get_current_watermark(self) -> Watermark | None:
        """Return the present watermark, or None if there is none."""

    def to_strategy(self) -> WatermarkStrategy:
        """Return a WatermarkStrategy that uses this assigner."""
        return WatermarkStrategy(_FromAssigner(_PeriodicGenerator, self), self)


class AssignerWithPunctuatedWatermarks(TimestampAssigner):
    """An assigner of Flink 1.x: it gives timestamps, and decides after every record whether a watermark is due."""

    @abstractmethod
    def extract_timestamp(self, element: Any, record_timestamp: int) -> int:
        """Return the time of a record, in milliseconds since 1970. `record_timestamp` is its former timestamp."""

    @abstractmethod
    def check_and_get_next_watermark(self, last_element: Any, extracted_timestamp: int) -> Watermark | None:
        """Return the watermark that is due after this record, or None. Called right after each record."""

    def to_strategy(self) -> WatermarkStrategy:
        """Return a WatermarkStrategy that uses this assigner."""
        return WatermarkStrategy(_FromAssigner(_PunctuatedGenerator, self), self)


class AscendingTimestampExtractor(AssignerWithPeriodicWatermarks):
    """An assigner of Flink 1.x for timestamps that never go back."""

    _highest = _MIN_TIMESTAMP

    @abstractmethod
    def extract_ascending_timestamp(self, element: Any) -> int:
        """Return the time of a record, in milliseconds since 1970. It never goes back."""

    def extract_timestamp(self, element: Any, record_timestamp: int) -> int:
        timestamp = self.extract_ascending_timestamp(element)
        self._highest = max(self._highest, timestamp)
        return timestamp

    def get_current_watermark(self) -> Watermark:
        return Watermark(max(self._highest - 1, _MIN_TIMESTAMP))


class BoundedOutOfOrdernessTimestampExtractor:
    """An assigner of Flink 1.x for records that are late by at most a given time.

    A function or a subclass gives their timestamps.

    Its watermark is the highest timestamp less that time: one millisecond more than
    `WatermarkStrategy.for_bounded_out_of_orderness` would give.
    """

    @check_arguments
    def __init__(self, max_out_of_orderness: LengthOfTime, extractor: Callable[[Any], int] | None = None) -> None:
        self._delay_ms = _not_negative("the out-of-orderness", to_millis(max_out_of_orderness))
        overrides = type(self).extract_timestamp is not BoundedOutOfOrdernessTimestampExtractor.extract_timestamp
        if extractor is None and not overrides:
            raise TypeError(f"{type(self).__name__} needs a function of the record, or a method extract_timestamp")
        if extractor is not None and not is_function(extractor):
            raise TypeError(f"the extractor must be a function of the record, not {extractor!r}")
        self._extractor = extractor

    def extract_timestamp(self, element: Any) -> int:
        """Return the time of a record, in milliseconds since 1970."""
        assert self._extractor is not None
        return self._extractor(element)

    def get_max_out_of_orderness_in_millis(self) -> int:
        """Return the time by which records may be late, in milliseconds."""
        return self._delay_ms

    def to_strategy(self) -> WatermarkStrategy:
        """Return a WatermarkStrategy that uses this extractor."""
        return _BoundedExtractorAdapter(self).to_strategy()


@check_arguments
class AssignerWithPeriodicWatermarksWrapper:
    """A wrapper of Flink 1.x for an existing assigner."""

    def __init__(self, assigner_with_periodic_watermarks: AssignerWithPeriodicWatermarks) -> None:
        self._assigner = assigner_with_periodic_watermarks

    def to_strategy(self) -> WatermarkStrategy:
        """Return a WatermarkStrategy that uses the wrapped assigner."""
        return self._assigner.to_strategy()


class _BoundedExtractorAdapter(AssignerWithPeriodicWatermarks):
    def __init__(self, extractor: BoundedOutOfOrdernessTimestampExtractor) -> None:
        self._extractor = extractor
        self._delay_ms = extractor.get_max_out_of_orderness_in_millis()
        self._highest = _MIN_TIMESTAMP + self._delay_ms

    def extract_timestamp(self, element: Any, record_timestamp: int) -> int:
        timestamp = self._extractor.extract_timestamp(element)
        self._highest = max(self._highest, timestamp)
        return timestamp

    def get_current_watermark(self) -> Watermark:
        return Watermark(self._highest - self._delay_ms)


@dataclass(frozen=True)
class _FromAssigner:
    """Creates a generator from the assigner of the same strategy.

    This assigner and the strategy's assigner stay one object when both are pickled together. Assigners of Flink 1.x
    rely on that: the generator uses what the assigner has seen.
    """

    generator: Callable[[Any], WatermarkGenerator]
    assigner: TimestampAssigner

    def __call__(self, context: Any) -> WatermarkGenerator:
        return self.generator(self.assigner)


@dataclass
class _PeriodicGenerator(NoWatermarksGenerator):
    assigner: AssignerWithPeriodicWatermarks

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        watermark = self.assigner.get_current_watermark()
        if watermark is not None:
            output.emit_watermark(watermark)


@dataclass
class _PunctuatedGenerator(NoWatermarksGenerator):
    assigner: AssignerWithPunctuatedWatermarks

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        watermark = self.assigner.check_and_get_next_watermark(event, event_timestamp)
        if watermark is not None:
            output.emit_watermark(watermark)
