"""The names under which checkpoints know Penstock's classes. They stay when a class moves to another module.

pickle writes a class as a module and a name. A class marked with `persisted` is written as `penstock.persisted:<its
name>`, wherever it is defined. A class marked with `persisted_in` is written as part of a public module. Both marks set
`__module__`, from which pickle takes the name, so they cost nothing per object.

Whoever moves a marked class changes its entry in `PLACES`. Other moves need an entry in `MOVED` or `MOVED_MODULES`. No
entry is ever removed from these two, because checkpoints live longer than versions.
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
    "BatchFile": "penstock.spark.frames.streaming_source",
    "Closed": "penstock.connectors.files.parts",
    "Consumer": "penstock.connectors.rabbitmq.rabbitmq_reader",
    "Discarded": "penstock.connectors.files.parts",
    "FeedbackRecords": "penstock.engine.operators.feedback.feedback_queue",
    "FileSplit": "penstock.connectors.files.file_source",
    "GateState": "penstock.engine.operators.operator",
    "InProgress": "penstock.connectors.files.parts",
    "JdbcSplit": "penstock.connectors.jdbc.jdbc_source",
    "KafkaSplit": "penstock.connectors.kafka.kafka_source",
    "MergingWindowSet": "penstock.engine.windows.merging_windows",
    "PartialMatches": "penstock.cep.partial_matches",
    "PartitionStanding": "penstock.table.connectors.file_table_sink",
    "PartitionWaiting": "penstock.table.connectors.file_table_sink",
    "Pending": "penstock.connectors.files.parts",
    "Prepared": "penstock.connectors.committing.prepared_records",
    "SessionSet": "penstock.engine.windows.merging_windows",
    "TimeBuffer": "penstock.engine.windows.window_joins",
    "_Section": "penstock.connectors.committing.write_ahead_sink",
    "_Transaction": "penstock.connectors.committing.two_phase_sink",
}
"""Modules that define the persisted classes today, by the classes' names in checkpoints."""

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
"""Present names, by the names that are no longer written. Both have the form `module:name`."""

MOVED_MODULES: dict[str, tuple[str, ...]] = {
    "penstock.datastream._async_functions": ("penstock.api.functions.async_functions",),
    "penstock.datastream._checkpointed_functions": ("penstock.api.functions.checkpointed_functions",),
    "penstock.datastream._contexts": ("penstock.api.functions.contexts",),
    "penstock.datastream._element_functions": ("penstock.api.functions.element_functions",),
    "penstock.datastream._evictors": ("penstock.api.windows.evictors",),
    "penstock.datastream._process_functions": ("penstock.api.functions.process_functions",),
    "penstock.datastream._source_functions": ("penstock.api.functions.source_functions",),
    "penstock.datastream._state_ttl": ("penstock.api.state.time_to_live",),
    "penstock.datastream._triggers": ("penstock.api.windows.triggers",),
    "penstock.datastream._window_assigners": ("penstock.api.windows.assigners",),
    "penstock.datastream._window_functions": ("penstock.api.functions.window_functions",),
    "penstock.datastream._windows": ("penstock.api.windows.windows",),
    "penstock.datastream.connectors._cassandra_client": ("penstock.connectors.cassandra.cassandra_client",),
    "penstock.datastream.connectors._cassandra_statements": ("penstock.connectors.cassandra.cassandra_statements",),
    "penstock.datastream.connectors._cassandra_writer": ("penstock.connectors.cassandra.cassandra_writer",),
    "penstock.datastream.connectors._elasticsearch_writer": ("penstock.connectors.elasticsearch.elasticsearch_writer",),
    "penstock.datastream.connectors._file_access": ("penstock.connectors.files.access",),
    "penstock.datastream.connectors._file_buckets": ("penstock.connectors.files.buckets",),
    "penstock.datastream.connectors._file_compaction": ("penstock.connectors.files.compaction",),
    "penstock.datastream.connectors._file_parts": ("penstock.connectors.files.parts",),
    "penstock.datastream.connectors._file_sink": ("penstock.connectors.files.file_sink",),
    "penstock.datastream.connectors._file_source": ("penstock.connectors.files.file_source",),
    "penstock.datastream.connectors._file_writer": ("penstock.connectors.files.file_writer",),
    "penstock.datastream.connectors._jdbc_database": ("penstock.connectors.jdbc.database",),
    "penstock.datastream.connectors._jdbc_lookup": ("penstock.connectors.jdbc.lookup",),
    "penstock.datastream.connectors._jdbc_options": ("penstock.connectors.jdbc.jdbc_options",),
    "penstock.datastream.connectors._jdbc_rows": ("penstock.connectors.jdbc.jdbc_rows",),
    "penstock.datastream.connectors._jdbc_sink": ("penstock.connectors.jdbc.jdbc_writers",),
    "penstock.datastream.connectors._jdbc_source": ("penstock.connectors.jdbc.jdbc_source",),
    "penstock.datastream.connectors._jdbc_statements": ("penstock.connectors.jdbc.jdbc_statements",),
    "penstock.datastream.connectors._kafka_builders": ("penstock.connectors.kafka.builders",),
    "penstock.datastream.connectors._kafka_client": ("penstock.connectors.kafka.kafka_client",),
    "penstock.datastream.connectors._kafka_commit": ("penstock.connectors.kafka.commit",),
    "penstock.datastream.connectors._kafka_legacy": ("penstock.connectors.kafka.legacy",),
    "penstock.datastream.connectors._kafka_offsets": ("penstock.connectors.kafka.offsets",),
    "penstock.datastream.connectors._kafka_reader": ("penstock.connectors.kafka.kafka_reader",),
    "penstock.datastream.connectors._kafka_sink": ("penstock.connectors.kafka.kafka_sink",),
    "penstock.datastream.connectors._kafka_source": ("penstock.connectors.kafka.kafka_source",),
    "penstock.datastream.connectors._rabbitmq_connection": ("penstock.connectors.rabbitmq.connection",),
    "penstock.datastream.connectors._rabbitmq_reader": ("penstock.connectors.rabbitmq.rabbitmq_reader",),
    "penstock.datastream.connectors._rabbitmq_writer": ("penstock.connectors.rabbitmq.rabbitmq_writer",),
    "penstock.datastream.key_selectors": ("penstock.api.functions.key_selectors",),
}
"""Modules that hold the content of former modules, for names that are not in `MOVED`."""


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


def find_persisted(module: str, name: str) -> Any:
    """Return the object that a checkpoint of any version calls by this name."""
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
        f"if it was moved, {HOME} lacks its new place"
    )


def __getattr__(name: str) -> Any:
    """Return one of the classes in `PLACES`. pickle looks for them in this module."""
    if name not in PLACES:
        raise AttributeError(f"module {HOME!r} has no attribute {name!r}")
    return getattr(import_module(PLACES[name]), name)
