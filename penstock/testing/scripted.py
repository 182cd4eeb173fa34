"""A source that follows a script: records, and markers between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.common.typeinfo import TypeInformation
from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.engine.operators.operator import OperatorContext
from penstock.engine.operators.sources.source_operator import Budget, Reader, Source
from penstock.engine.records.elements import Chunk, Receiver


@dataclass(frozen=True)
class at:  # noqa: N801 - reads as a word in a script
    """A record with a timestamp."""

    value: Any
    timestamp: int


@dataclass(frozen=True)
class watermark:  # noqa: N801
    """Advances event time to this timestamp."""

    timestamp: int


@dataclass(frozen=True)
class idle:  # noqa: N801
    """Makes the source idle until its next record."""


@dataclass(frozen=True)
class pause:  # noqa: N801
    """Ends the input of the present epoch."""


@dataclass(frozen=True)
class fail:  # noqa: N801
    """Makes the source raise ScriptedFailure."""

    message: str = "scripted failure"


@dataclass(frozen=True)
class end:  # noqa: N801
    """Ends the source here, even if the script goes on."""


class ScriptedFailure(RuntimeError):
    """The error that `fail` raises."""


@dataclass
class ScriptedSource(Source):
    """Plays a script in one subtask. It ends with the script, unless `stay` keeps it open."""

    script: tuple[Any, ...]
    stay: bool = False
    parallel = False

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        return not self.stay

    def reader(self, context: OperatorContext, position: Any = None) -> Reader:
        return _ScriptReader(self, *(position or (0, False)))


class _ScriptReader(Reader):
    def __init__(self, source: ScriptedSource, start: int, idle: bool) -> None:
        self._source = source
        self._next = start
        self._idle = idle

    def poll(self, output: Receiver, budget: Budget) -> int:
        if self._next >= len(self._source.script):
            self.finished = not self._source.stay
            return 0
        step = self._source.script[self._next]
        self._next += 1
        if isinstance(step, pause):
            return 0
        if isinstance(step, fail):
            raise ScriptedFailure(step.message)
        if isinstance(step, end):
            self.finished = True
            return 0
        self._play(step, output)
        return 1

    def _play(self, step: Any, output: Receiver) -> None:
        if isinstance(step, idle) or self._idle:
            self._idle = isinstance(step, idle)
            output.status(self._idle)
        if isinstance(step, watermark):
            output.watermark(step.timestamp)
        elif isinstance(step, at):
            output.chunk(Chunk([step.value], [step.timestamp]))
        elif not isinstance(step, idle):
            output.chunk(Chunk([step]))

    def position(self) -> tuple[int, bool]:
        return self._next, self._idle

    def waits_for_input(self) -> bool:
        return True


def scripted(
    environment: StreamExecutionEnvironment, *script: Any, type_info: TypeInformation | None = None, stay: bool = False
) -> DataStream:
    """Return a stream that plays a script.

    The script has values, at(value, timestamp), watermark(t), idle(), pause(), fail() and end().
    """
    return environment._source("Scripted Source", ScriptedSource(script, stay), type_info)
