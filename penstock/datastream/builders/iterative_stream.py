"""Loops in a program: IterativeStream, and ConnectedIterativeStreams for feedback of another type."""

from __future__ import annotations

from typing import Any, Self, TypeVar
from uuid import uuid4

from penstock.base.arguments import check_arguments
from penstock.base.type_variables import A, B, R, T_co
from penstock.common.time import LengthOfTime, to_millis
from penstock.common.type_information import DeclaredType, declared_type
from penstock.datastream.builders.connected_streams import ConnectedStreams
from penstock.datastream.data_stream import DataStream
from penstock.engine.operators.feedback.feedback_operators import (
    FeedbackHead,
    FeedbackInput,
    FeedbackSink,
    FeedbackSource,
)
from penstock.errors import ProgramError
from penstock.graph.transformations import StreamRef, Transformation, reachable

F = TypeVar("F")


class _Loop:
    """The operators that a loop adds to a program: its input, its head, and the sinks at its end."""

    def __init__(self, origin: DataStream[Any], quiet_millis: int) -> None:
        self._origin = origin
        self._edge = uuid4().hex
        self._uid: str | None = None
        self._sinks: list[Transformation] = []
        above = {ref.node.parallelism for ref in origin.refs}
        parallelism = above.pop() if len(above) == 1 else None
        inner = FeedbackInput(self._edge)
        self.source = FeedbackSource(self._edge, quiet_millis)
        self.input = Transformation("Iteration Input", inner, [origin.input_refs()], parallelism=parallelism)
        self.head = Transformation("Iteration Head", FeedbackHead(self.source), kind="source", parallelism=parallelism)

    def close_with(self, feedback: DataStream[F]) -> DataStream[F]:
        """Let a stream return to the head."""
        if not any(node in (self.head, self.input) for node in reachable([ref.node for ref in feedback.refs])):
            raise ProgramError(f"close_with: {feedback.refs[0].node.name} does not come from this iteration")
        sink = Transformation("Iteration Sink", FeedbackSink(self._edge), [feedback.input_refs()], kind="sink")
        sink.parallelism, sink.max_parallelism = self.head.parallelism, self.head.max_parallelism
        self._origin.get_execution_environment().add_node(sink)
        self._sinks.append(sink)
        self.source.is_closed = True
        if self._uid is not None:
            self.set_uid(self._uid)
        return feedback

    def set_uid(self, uid: str) -> None:
        """Give the operators of the loop uids that begin with this one, which is that of the input."""
        self._uid = self.input.uid = uid
        self.head.uid = f"{uid}-head"
        for number, sink in enumerate(self._sinks):
            sink.uid = f"{uid}-sink-{number}"

    def follow_input(self) -> None:
        """Give the head and the sinks the parallelism of the input."""
        for node in (self.head, *self._sinks):
            node.parallelism, node.max_parallelism = self.input.parallelism, self.input.max_parallelism


@check_arguments
class IterativeStream(DataStream[T_co]):
    """The begin of a loop: a stream together with the records that return to it. Made by DataStream.iterate."""

    def __init__(self, origin: DataStream[T_co], max_wait_time: LengthOfTime) -> None:
        millis = to_millis(max_wait_time)
        if millis < 0:
            raise ValueError(f"iterate: max_wait_time is at least 0, not {millis} ms")
        self._loop = _Loop(origin, millis)
        environment = origin.get_execution_environment()
        super().__init__(environment, [StreamRef(self._loop.input), StreamRef(self._loop.head)], origin.get_type())

    @property
    def _node(self) -> Transformation:  # type: ignore[override]
        return self._loop.input

    def close_with(self, feedback: DataStream[R]) -> DataStream[R]:
        """Let the records of a stream return to the begin of the loop. Return that stream.

        Several streams may return.
        """
        return self._loop.close_with(feedback)

    def with_feedback_type(self, feedback_type: DeclaredType[R]) -> ConnectedIterativeStreams[T_co, R]:
        """Keep records that return apart from those that enter, so that they may have another type."""
        return ConnectedIterativeStreams(self, self._loop, declared_type(feedback_type))

    def uid(self, uid: str) -> Self:
        """Set the identity of the loop, by which the records under way are found in a savepoint."""
        super().uid(uid)
        self._loop.set_uid(uid)
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the number of subtasks of the loop's head."""
        super().set_parallelism(parallelism)
        self._loop.follow_input()
        return self

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Set the most subtasks to which the loop's head can be scaled."""
        super().set_max_parallelism(max_parallelism)
        self._loop.follow_input()
        return self


class ConnectedIterativeStreams(ConnectedStreams[A, B]):
    """A loop in which the records that return are a stream of their own, beside those that enter."""

    def __init__(self, origin: IterativeStream[A], loop: _Loop, feedback_type: Any) -> None:
        environment = origin.get_execution_environment()
        entering: DataStream[A] = DataStream(environment, [StreamRef(loop.input)], origin.get_type())
        super().__init__(entering, DataStream(environment, [StreamRef(loop.head)], feedback_type))
        self._loop = loop

    def close_with(self, feedback: DataStream[B]) -> DataStream[B]:
        """Let the records of a stream return to the begin of the loop. Return that stream."""
        return self._loop.close_with(feedback)
