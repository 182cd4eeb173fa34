"""The names under which checkpoints know Penstock's classes. They stay when a class moves to another module.

pickle writes a class as a module and a name. A class that is marked with `persisted` is written as
`penstock.persisted:<its name>`, wherever it is defined; one that is marked with `persisted_in`, as part of a public
module. Both marks set `__module__`, which is where pickle takes the name from, so that they cost nothing per object.

Who moves a marked class changes its entry in `PLACES`. Who moves anything else adds an entry to `MOVED` or
`MOVED_MODULES`. No entry is ever removed from these two, since checkpoints live longer than versions.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from pickle import UnpicklingError
from typing import Any, TypeVar

C = TypeVar("C", bound=type)
HOME = __name__

PLACES = {
    "BatchFile": "penstock.spark.streaming_source",
    "Closed": "penstock.datastream.connectors._file_parts",
    "Consumer": "penstock.datastream.connectors._rabbitmq_reader",
    "Discarded": "penstock.datastream.connectors._file_parts",
    "FileSplit": "penstock.datastream.connectors._file_source",
    "GateState": "penstock.runtime.operator",
    "InProgress": "penstock.datastream.connectors._file_parts",
    "JdbcSplit": "penstock.datastream.connectors._jdbc_source",
    "KafkaSplit": "penstock.datastream.connectors._kafka_source",
    "MergingWindowSet": "penstock.runtime.merging_windows",
    "Pending": "penstock.datastream.connectors._file_parts",
    "Prepared": "penstock.datastream.connectors.prepared",
    "SessionSet": "penstock.runtime.merging_windows",
    "TimeBuffer": "penstock.runtime.joins",
    "_Section": "penstock.datastream.connectors.write_ahead",
    "_Transaction": "penstock.datastream.connectors.two_phase_commit",
}
"""By the name in checkpoints: the module that defines the class today."""

MOVED = {
    # Names of format 1, which knew classes by the modules that defined them.
    "penstock.datastream._evictors:TimestampedValue": "penstock.datastream.window:TimestampedValue",
    "penstock.datastream._windows:CountWindow": "penstock.datastream.window:CountWindow",
    "penstock.datastream._windows:GlobalWindow": "penstock.datastream.window:GlobalWindow",
    "penstock.datastream._windows:TimeWindow": "penstock.datastream.window:TimeWindow",
    "penstock.datastream._windows:TriggerResult": "penstock.datastream.window:TriggerResult",
    "penstock.datastream.connectors._file_parts:Closed": f"{HOME}:Closed",
    "penstock.datastream.connectors._file_parts:Discarded": f"{HOME}:Discarded",
    "penstock.datastream.connectors._file_parts:InProgress": f"{HOME}:InProgress",
    "penstock.datastream.connectors._file_parts:Pending": f"{HOME}:Pending",
    "penstock.datastream.connectors._file_source:FileSplit": f"{HOME}:FileSplit",
    "penstock.datastream.connectors._jdbc_source:JdbcSplit": f"{HOME}:JdbcSplit",
    "penstock.datastream.connectors._kafka_offsets:KafkaTopicPartition": (
        "penstock.datastream.connectors.kafka:KafkaTopicPartition"
    ),
    "penstock.datastream.connectors._kafka_source:KafkaRecord": "penstock.datastream.connectors.kafka:KafkaRecord",
    "penstock.datastream.connectors._kafka_source:KafkaSplit": f"{HOME}:KafkaSplit",
    "penstock.datastream.connectors._rabbitmq_reader:Consumer": f"{HOME}:Consumer",
    "penstock.datastream.connectors.prepared:Prepared": f"{HOME}:Prepared",
    "penstock.datastream.connectors.two_phase_commit:_Transaction": f"{HOME}:_Transaction",
    "penstock.datastream.connectors.write_ahead:_Section": f"{HOME}:_Section",
    "penstock.runtime.joins:TimeBuffer": f"{HOME}:TimeBuffer",
    "penstock.runtime.merging_windows:MergingWindowSet": f"{HOME}:MergingWindowSet",
    "penstock.runtime.merging_windows:SessionSet": f"{HOME}:SessionSet",
    "penstock.runtime.operator:GateState": f"{HOME}:GateState",
    "penstock.spark.streaming_source:BatchFile": f"{HOME}:BatchFile",
}
"""Names that are no longer written, as `module:name`, and what they are called now."""

MOVED_MODULES: dict[str, tuple[str, ...]] = {}
"""Former modules, and where to look for what was in them if it is not named above."""


def persisted(cls: C) -> C:
    """Mark a class whose objects are part of checkpoints. It is written under its name in this module."""
    if PLACES.get(cls.__qualname__) != cls.__module__:
        raise AssertionError(
            f"{cls.__module__} defines {cls.__qualname__}, which checkpoints hold; PLACES in {HOME} says that it is "
            f"in {PLACES.get(cls.__qualname__, 'no module')}"
        )
    cls.__module__ = HOME
    return cls


def persisted_in(public: str) -> Callable[[C], C]:
    """Mark a class that users know from a public module, which re-exports it. It is written under its name there."""

    def mark(cls: C) -> C:
        cls.__module__ = public
        return cls

    return mark


def found(module: str, name: str) -> Any:
    """What a checkpoint calls by this name, whichever version wrote it."""
    now = MOVED.get(f"{module}:{name}", f"{module}:{name}")
    today, _, attribute = now.partition(":")
    for place in (today, *MOVED_MODULES.get(today, ())):
        try:
            return attrgetter(attribute)(import_module(place))
        except (AttributeError, ModuleNotFoundError) as error:
            if isinstance(error, ModuleNotFoundError) and not f"{place}.".startswith(f"{error.name}."):
                raise  # the module is there, but a library that it needs is not
    raise UnpicklingError(
        f"this version of Penstock has no '{name}' of '{module}'. If a newer version wrote it, read it with that one; "
        f"if it was moved, its new place is missing in {HOME}"
    )


def __getattr__(name: str) -> Any:
    """The classes of `PLACES`, which pickle looks for in this module."""
    if name not in PLACES:
        raise AttributeError(f"module {HOME!r} has no attribute {name!r}")
    return getattr(import_module(PLACES[name]), name)
