"""The settings of an execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from penstock.base.arguments import check_arguments
from penstock.errors import InvalidParallelism

__all__ = ["ExecutionConfig", "check_max_parallelism", "check_parallelism"]

_HIGHEST_MAX_PARALLELISM = 1 << 15


@check_arguments
@dataclass
class ExecutionConfig:
    """Settings for running a job: parallelism, intervals in milliseconds, and switches.

    Setters return the configuration.

    Nothing is written with Kryo or Avro here, and no closure is cleaned: these switches are kept and have no effect.
    """

    def __hash__(self) -> int:
        """Return a hash of the settings that seldom change. Equal configurations have equal hashes."""
        return hash((self._parallelism, self._max_parallelism))

    PARALLELISM_DEFAULT: ClassVar[int] = -1
    PARALLELISM_UNKNOWN: ClassVar[int] = -2

    _parallelism: int = -1
    _max_parallelism: int = -1
    _auto_watermark_interval: int = 200
    _latency_tracking_interval: int = 0
    _task_cancellation_interval: int = 30_000
    _task_cancellation_timeout: int = 180_000
    _closure_cleaner: bool = True
    _force_kryo: bool = False
    _force_avro: bool = False
    _generic_types: bool = True
    _auto_generated_uids: bool = True
    _object_reuse: bool = False
    _snapshot_compression: bool = False
    _global_job_parameters: dict[str, str] = field(default_factory=dict)

    def get_parallelism(self) -> int:
        """Return the parallelism of operators without their own."""
        return self._parallelism

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """Set the parallelism of operators without their own. PARALLELISM_DEFAULT leaves it to the cluster."""
        if parallelism != self.PARALLELISM_DEFAULT:
            check_parallelism(parallelism, self._max_parallelism)
        self._parallelism = parallelism
        return self

    def get_max_parallelism(self) -> int:
        """Return the number of key groups, or -1 if no number was set."""
        return self._max_parallelism

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        """Set the number of key groups, which is the greatest parallelism that the job can ever have with its state."""
        check_max_parallelism(max_parallelism)
        if self._parallelism > max_parallelism:
            raise InvalidParallelism(f"max parallelism {max_parallelism} is below the parallelism {self._parallelism}")
        self._max_parallelism = max_parallelism
        return self

    def get_auto_watermark_interval(self) -> int:
        """Return the interval of periodic watermarks, in milliseconds."""
        return self._auto_watermark_interval

    def set_auto_watermark_interval(self, interval: int) -> ExecutionConfig:
        """Set the interval of periodic watermarks, in milliseconds; 0 turns them off."""
        self._auto_watermark_interval = _not_negative("the auto watermark interval", interval)
        return self

    def get_latency_tracking_interval(self) -> int:
        """Return the interval of latency markers, in milliseconds."""
        return self._latency_tracking_interval

    def set_latency_tracking_interval(self, interval: int) -> ExecutionConfig:
        """Set the interval of latency markers of sources, in milliseconds; 0 turns them off."""
        self._latency_tracking_interval = _not_negative("the latency tracking interval", interval)
        return self

    def get_task_cancellation_interval(self) -> int:
        """Return the setting, in milliseconds. It has no effect: a slot that does not end is killed."""
        return self._task_cancellation_interval

    def set_task_cancellation_interval(self, interval: int) -> ExecutionConfig:
        """Accept an interval in milliseconds. It has no effect: a slot that does not end is killed."""
        self._task_cancellation_interval = _not_negative("the task cancellation interval", interval)
        return self

    def get_task_cancellation_timeout(self) -> int:
        """Return the setting, in milliseconds. It has no effect: a slot that does not end is killed."""
        return self._task_cancellation_timeout

    def set_task_cancellation_timeout(self, timeout: int) -> ExecutionConfig:
        """Accept a time limit in milliseconds. It has no effect: a slot that does not end is killed."""
        self._task_cancellation_timeout = _not_negative("the task cancellation timeout", timeout)
        return self

    def enable_closure_cleaner(self) -> ExecutionConfig:
        """Accept the setting of a Flink program. It has no effect, because closures are not cleaned."""
        self._closure_cleaner = True
        return self

    def disable_closure_cleaner(self) -> ExecutionConfig:
        """Accept the setting of a Flink program. It has no effect, because closures are not cleaned."""
        self._closure_cleaner = False
        return self

    def is_closure_cleaner_enabled(self) -> bool:
        """Return the setting. It has no effect, because closures are not cleaned."""
        return self._closure_cleaner

    def enable_force_kryo(self) -> ExecutionConfig:
        """Accept the setting of a Flink program. It has no effect, because nothing is written with Kryo."""
        self._force_kryo = True
        return self

    def disable_force_kryo(self) -> ExecutionConfig:
        """Accept the setting of a Flink program. It has no effect, because nothing is written with Kryo."""
        self._force_kryo = False
        return self

    def is_force_kryo_enabled(self) -> bool:
        """Return the setting. It has no effect, because nothing is written with Kryo."""
        return self._force_kryo

    def enable_force_avro(self) -> ExecutionConfig:
        """Accept the setting of a Flink program. It has no effect, because Avro is not used for state or records."""
        self._force_avro = True
        return self

    def disable_force_avro(self) -> ExecutionConfig:
        """Accept the setting of a Flink program. It has no effect, because Avro is not used for state or records."""
        self._force_avro = False
        return self

    def is_force_avro_enabled(self) -> bool:
        """Return the setting. It has no effect, because Avro is not used for state or records."""
        return self._force_avro

    def enable_generic_types(self) -> ExecutionConfig:
        """Allow streams with undeclared types, whose values are only known to be picklable."""
        self._generic_types = True
        return self

    def disable_generic_types(self) -> ExecutionConfig:
        """Refuse streams with undeclared types, whose values are only known to be picklable."""
        self._generic_types = False
        return self

    def has_generic_types_disabled(self) -> bool:
        """Return True if types that are only known to be picklable are refused."""
        return not self._generic_types

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        """Allow operators without a uid."""
        self._auto_generated_uids = True
        return self

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """Refuse jobs with an operator that has no uid, so that no savepoint can lose its state."""
        self._auto_generated_uids = False
        return self

    def has_auto_generated_uids_enabled(self) -> bool:
        """Return True if operators without a uid are allowed."""
        return self._auto_generated_uids

    def enable_object_reuse(self) -> ExecutionConfig:
        """Accept the setting of a Flink program. It has no effect, because a chain never copies records."""
        self._object_reuse = True
        return self

    def disable_object_reuse(self) -> ExecutionConfig:
        """Accept the setting of a Flink program. It has no effect, because a chain never copies records."""
        self._object_reuse = False
        return self

    def is_object_reuse_enabled(self) -> bool:
        """Return the setting. It has no effect, because a chain never copies records."""
        return self._object_reuse

    def is_use_snapshot_compression(self) -> bool:
        """Return True if state is compressed in checkpoints and savepoints."""
        return self._snapshot_compression

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        """Set whether state is compressed in checkpoints and savepoints."""
        self._snapshot_compression = bool(use_snapshot_compression)
        return self

    def get_global_job_parameters(self) -> dict[str, str]:
        """Return the parameters that every function can read from its runtime context."""
        return dict(self._global_job_parameters)

    def set_global_job_parameters(self, global_job_parameters_dict: Mapping[str, Any]) -> ExecutionConfig:
        """Set parameters that every function can read from its runtime context. Values are kept as text."""
        self._global_job_parameters = {str(key): str(value) for key, value in global_job_parameters_dict.items()}
        return self

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        """Return an empty dict, because nothing is written with Kryo."""
        return {}

    def get_registered_kryo_types(self) -> list[str]:
        """Return an empty list, because nothing is written with Kryo."""
        return []

    def get_registered_pojo_types(self) -> list[str]:
        """Return an empty list, because Python has no POJO types."""
        return []


def check_parallelism(parallelism: int, max_parallelism: int = -1) -> int:
    """Return the given parallelism. Raise an error if no operator can have it."""
    if isinstance(parallelism, bool) or not isinstance(parallelism, int) or parallelism < 1:
        raise InvalidParallelism(f"parallelism must be an int of at least 1, not {parallelism!r}")
    if 0 < max_parallelism < parallelism:
        raise InvalidParallelism(f"parallelism {parallelism} is above the max parallelism {max_parallelism}")
    return parallelism


def check_max_parallelism(max_parallelism: int) -> int:
    """Return the given max parallelism. Raise an error if no job or operator can have it."""
    whole = isinstance(max_parallelism, int) and not isinstance(max_parallelism, bool)
    if not whole or not 1 <= max_parallelism <= _HIGHEST_MAX_PARALLELISM:
        allowed = f"an int from 1 to {_HIGHEST_MAX_PARALLELISM}"
        raise InvalidParallelism(f"max parallelism must be {allowed}, not {max_parallelism!r}")
    return max_parallelism


def _not_negative(what: str, millis: int) -> int:
    if isinstance(millis, bool) or not isinstance(millis, int):
        raise TypeError(f"{what} is a whole number of milliseconds, not {millis!r}")
    if millis < 0:
        raise ValueError(f"{what} must not be negative, but is {millis} ms")
    return millis
