"""How a stream tells time: which timestamp a record has, and how far event time has come.

Generators and assigners run in the slots; a strategy is the plain, picklable description that is shipped there. The
assigners of Flink 1.x, at the end of this file, turn themselves into strategies.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from penstock.base.arguments import check_arguments, is_function
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
    """The promise that no more records with this or a lower timestamp are expected."""

    timestamp: int


class WatermarkOutput(ABC):
    """Where a generator sends its watermarks. One that does not advance event time is ignored."""

    @abstractmethod
    def emit_watermark(self, watermark: Watermark) -> None:
        """Announce a watermark; a channel that was idle is active again."""

    @abstractmethod
    def mark_idle(self) -> None:
        """Let others stop waiting for this channel until its next watermark."""

    @abstractmethod
    def mark_active(self) -> None:
        """Let others wait for this channel again."""


class WatermarkGenerator(ABC):
    """Makes watermarks from the records that pass, or from time to time."""

    @abstractmethod
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Called for every record; may emit a watermark right after it."""

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called at least once per epoch, after its records; may emit a watermark."""


class BoundedOutOfOrdernessWatermarks(WatermarkGenerator):
    """Follows the highest timestamp seen, one millisecond and the delay behind it."""

    def __init__(self, delay_ms: int) -> None:
        self.delay_ms = _not_negative("the out-of-orderness", delay_ms)
        self.max_timestamp = _MIN_TIMESTAMP + delay_ms + 1

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if event_timestamp > self.max_timestamp:  # noqa: PLR1730 - once per record, and max() costs a call
            self.max_timestamp = event_timestamp

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        output.emit_watermark(Watermark(self.max_timestamp - self.delay_ms - 1))


class AscendingTimestampsWatermarks(BoundedOutOfOrdernessWatermarks):
    """For timestamps that never go back: no delay."""

    def __init__(self) -> None:
        super().__init__(0)


class NoWatermarksGenerator(WatermarkGenerator):
    """Event time stands still until the input ends."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        pass

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class TimestampAssigner(ABC):
    """Gives each record its event time."""

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Milliseconds since the epoch. `record_timestamp` is what the record had before, else the lowest long."""


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
    """The value of a field: milliseconds, a datetime (of UTC if it has no zone) or an Instant."""

    field: int | str

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        millis: int = millis_of(self._field_value(value))
        return millis

    def _field_value(self, value: Any) -> Any:
        if isinstance(self.field, str) and not isinstance(value, (Row, dict)):
            return getattr(value, self.field)
        return value[self.field]


def millis_of(moment: Any) -> Any:
    """A moment in whole milliseconds, rounded down; what is no moment is left as it is."""
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
    """A generator class, or a function without parameters that makes a generator."""

    make: Callable[[], WatermarkGenerator]

    def __call__(self, context: Any) -> WatermarkGenerator:
        return self.make()


@dataclass(frozen=True)
class WatermarkAlignment:
    """How far the sources of a group may run ahead of the slowest of them."""

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
class WatermarkStrategy:
    """A generator of watermarks, with an optional assigner of timestamps. The `with_…` methods return changed copies.

    >>> strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    >>> strategy.with_idleness(Duration.of_minutes(1)).idle_timeout
    60000
    """

    generator_supplier: GeneratorSupplier
    timestamp_assigner: TimestampAssigner | None = None
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
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """For timestamps that never go back within one source split."""
        return WatermarkStrategy(AscendingTimestampsWatermarksSupplier())

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration) -> WatermarkStrategy:
        """For records that come late by no more than this."""
        delay = _not_negative("the out-of-orderness", to_millis(max_out_of_orderness))
        return WatermarkStrategy(BoundedOutOfOrdernessWatermarksSupplier(delay))

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        return WatermarkStrategy(NoWatermarksSupplier())

    @staticmethod
    def for_generator(
        generator_supplier: type[WatermarkGenerator] | GeneratorSupplier | Callable[[], WatermarkGenerator],
    ) -> WatermarkStrategy:
        """For a custom generator: its class, or a function that creates one (given a context if it takes one)."""
        if isinstance(generator_supplier, WatermarkGenerator):
            raise TypeError("pass the generator's class or a function that makes it: every subtask needs its own")
        if not callable(generator_supplier):
            raise TypeError(f"expected a WatermarkGenerator class or a function, not {generator_supplier!r}")
        if isinstance(generator_supplier, type) or _positional_parameters(generator_supplier) == 0:
            generator_supplier = _WithoutContext(generator_supplier)  # type: ignore[arg-type]
        return WatermarkStrategy(generator_supplier)  # type: ignore[arg-type]

    def with_timestamp_assigner(
        self, timestamp_assigner: TimestampAssigner | Callable[[Any], int] | Callable[[Any, int], int]
    ) -> WatermarkStrategy:
        """Take timestamps from an assigner, or from a function of the record (and, if it has two parameters, of the
        timestamp the record had before)."""
        return replace(self, timestamp_assigner=_as_assigner(timestamp_assigner))

    def with_timestamp_field(self, field: int | str) -> WatermarkStrategy:
        """Take timestamps from a field, by position or name. Of records in columns it is read as a column.

        It holds milliseconds, a datetime (of UTC if it has no zone) or an Instant.
        """
        if isinstance(field, bool) or not isinstance(field, (int, str)):
            raise TypeError(f"a field is given by its position or name, not by {field!r}")
        return replace(self, timestamp_assigner=FieldTimestamps(field))

    def with_idleness(self, idle_timeout: Duration) -> WatermarkStrategy:
        """Stop waiting for a source split that brings no record for this long."""
        return replace(self, idle_timeout=_positive("the idle timeout", to_millis(idle_timeout)))

    def with_watermark_alignment(
        self, watermark_group: str, max_allowed_watermark_drift: Duration, update_interval: Duration | None = None
    ) -> WatermarkStrategy:
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
    """How many positional arguments must be given; 1 for what cannot be inspected, such as operator.itemgetter."""
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
    """Flink 1.x: one object that gives timestamps and, when asked from time to time, the watermark."""

    @abstractmethod
    def extract_timestamp(self, element: Any, record_timestamp: int) -> int: ...

    @abstractmethod
    def get_current_watermark(self) -> Watermark | None:
        """The watermark as of now; None when there is nothing to say."""

    def to_strategy(self) -> WatermarkStrategy:
        return WatermarkStrategy(_FromAssigner(_PeriodicGenerator, self), self)


class AssignerWithPunctuatedWatermarks(TimestampAssigner):
    """Flink 1.x: one object that gives timestamps and decides after every record whether a watermark is due."""

    @abstractmethod
    def extract_timestamp(self, element: Any, record_timestamp: int) -> int: ...

    @abstractmethod
    def check_and_get_next_watermark(self, last_element: Any, extracted_timestamp: int) -> Watermark | None:
        """Called right after each record; None when no watermark is due."""

    def to_strategy(self) -> WatermarkStrategy:
        return WatermarkStrategy(_FromAssigner(_PunctuatedGenerator, self), self)


class AscendingTimestampExtractor(AssignerWithPeriodicWatermarks):
    """Flink 1.x: for timestamps that never go back."""

    _highest = _MIN_TIMESTAMP

    @abstractmethod
    def extract_ascending_timestamp(self, element: Any) -> int: ...

    def extract_timestamp(self, element: Any, record_timestamp: int) -> int:
        timestamp = self.extract_ascending_timestamp(element)
        self._highest = max(self._highest, timestamp)
        return timestamp

    def get_current_watermark(self) -> Watermark:
        return Watermark(max(self._highest - 1, _MIN_TIMESTAMP))


class BoundedOutOfOrdernessTimestampExtractor:
    """Flink 1.x: for records that come late by no more than the given time. A function or a subclass tells their times.

    Its watermark is the highest timestamp less that time: one millisecond more than
    `WatermarkStrategy.for_bounded_out_of_orderness` would give.
    """

    def __init__(self, max_out_of_orderness: LengthOfTime, extractor: Callable[[Any], int] | None = None) -> None:
        self._delay_ms = _not_negative("the out-of-orderness", to_millis(max_out_of_orderness))
        overrides = type(self).extract_timestamp is not BoundedOutOfOrdernessTimestampExtractor.extract_timestamp
        if extractor is None and not overrides:
            raise TypeError(f"{type(self).__name__} needs a function of the record, or a method extract_timestamp")
        if extractor is not None and not is_function(extractor):
            raise TypeError(f"the extractor must be a function of the record, not {extractor!r}")
        self._extractor = extractor

    def extract_timestamp(self, element: Any) -> int:
        """The time of a record, in milliseconds since 1970."""
        assert self._extractor is not None
        return self._extractor(element)

    def get_max_out_of_orderness_in_millis(self) -> int:
        return self._delay_ms

    def to_strategy(self) -> WatermarkStrategy:
        return _BoundedExtractorAdapter(self).to_strategy()


class AssignerWithPeriodicWatermarksWrapper:
    """Flink 1.x: holds an existing assigner."""

    def __init__(self, assigner_with_periodic_watermarks: AssignerWithPeriodicWatermarks) -> None:
        self._assigner = assigner_with_periodic_watermarks

    def to_strategy(self) -> WatermarkStrategy:
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
    """Makes a generator from the assigner of the same strategy.

    This assigner and that of the strategy stay one object when both are pickled together. Assigners of Flink 1.x rely
    on that: the generator uses what the assigner has seen.
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
