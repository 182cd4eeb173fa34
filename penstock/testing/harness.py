"""Drives one operator, or a short pipeline, element by element on the real runtime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.api.output_tag import OutputTag
from penstock.common.job import JobID
from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.engine.exchange.frames import FrameBuilder, deliver
from penstock.engine.job.deploying import deployment_of
from penstock.engine.job.driver_parts import job_failed
from penstock.engine.messages.commands_and_reports import Command, Report
from penstock.engine.operators.operator import Operator, OperatorContext
from penstock.engine.operators.sources.source_operator import Budget, Reader, Source
from penstock.engine.records.elements import Receiver, Timestamps, Values
from penstock.engine.state.tables import Layout, Table
from penstock.errors import PenstockError
from penstock.graph.transformations import Transformation
from penstock.service.launch import submission
from penstock.testing.cluster import InProcessCluster


@dataclass
class _PushedSource(Source):
    """Emits the frames that the harness puts into the command."""

    parallel = False

    def reader(self, context: OperatorContext, position: Any = None) -> Reader:
        return _PushedReader()


class _PushedReader(Reader):
    def poll(self, output: Receiver, budget: Budget) -> int:
        frames, budget.payload = budget.payload or [], None
        for frame in frames:
            deliver(frame, _EndMarker(self, output))
        return 0

    def position(self) -> None:
        return None


class _EndMarker:
    """Passes everything on except the end of the stream, which is recorded in the reader."""

    def __init__(self, reader: Reader, output: Receiver) -> None:
        self._reader = reader
        self.chunk = output.chunk
        self.watermark = output.watermark
        self.status = output.status
        self.marker = output.marker

    def end(self) -> None:
        self._reader.finished = True


class _RecordingSink(Operator):
    """Reports records with their timestamps, and watermarks."""

    wants_declared_form = True

    def records(self, values: Values, timestamps: Timestamps) -> None:
        assert self.context.results is not None
        stamps = timestamps if timestamps is not None else [None] * len(values)
        for value, timestamp in zip(values, stamps, strict=True):
            self.context.results(self.context.uid, ("record", value, timestamp))

    def watermark(self, timestamp: int) -> None:
        super().watermark(timestamp)
        assert self.context.results is not None
        self.context.results(self.context.uid, ("watermark", timestamp, None))


class OperatorHarness:
    """A harness for one operator: push elements, watermarks and processing time, and read its output.

    `build` receives a stream per input and returns the stream to observe. Every push is a separate epoch, after
    which periodic watermark generators run. Pushed values are serialised on the way in. Errors are raised as by
    execute().

        harness = OperatorHarness(lambda stream: stream.key_by(0).process(Silence(3000)))
        harness.push(("s1", 20.0), timestamp=1000)
        harness.watermark(4000)
        assert harness.output() == [("s1 is silent", 4000)]
    """

    def __init__(
        self,
        build: Callable[..., DataStream],
        inputs: int = 1,
        side_outputs: tuple[OutputTag, ...] = (),
        parallelism: int = 1,
    ) -> None:
        environment = StreamExecutionEnvironment()
        environment.set_parallelism(parallelism)
        streams = [environment._source(f"Input {i + 1}", _PushedSource(), None) for i in range(inputs)]
        observed = build(*streams)
        self._names: dict[str, str | None] = {self._observe(environment, observed): None}
        for tag in side_outputs:
            self._names[self._observe(environment, observed.get_side_output(tag), tag.tag_id)] = tag.tag_id
        self._plan = submission.plan_of(environment, "harness")
        by_name = {node.name: node.id for node in self._plan.nodes if node.kind == "source"}
        names = (f"Input {i + 1}" for i in range(inputs))
        self._sources = [by_name[name] for name in names if name in by_name]
        self._cluster = InProcessCluster()
        self._now = 0
        self._epoch = 0
        self._seen: dict[str | None, list[tuple[str, Any, int | None]]] = {name: [] for name in self._names.values()}
        backend = environment.settings.state_backend
        deployment = deployment_of(self._plan, JobID().hex, watermark_interval=-1, state_backend=backend)
        self._absorb(self._cluster.deploy(deployment))

    @staticmethod
    def _observe(environment: StreamExecutionEnvironment, stream: DataStream, name: str = "main") -> str:
        uid = f"observed {name}"
        environment.add_node(
            Transformation("Observe", _RecordingSink(), [stream.input_refs()], kind="sink", uid=uid, parallelism=1)
        )
        return uid

    # --- input ---
    def push(self, value: Any, timestamp: int | None = None, input: int = 1) -> None:
        """Push one record into an input. Inputs are counted from 1."""
        self._send(input, lambda builder: builder.extend([value], None if timestamp is None else [timestamp]))

    def push_all(self, values: list[Any], input: int = 1) -> None:
        """Push several records without timestamps in one epoch."""
        self._send(input, lambda builder: builder.extend(values, None))

    def watermark(self, timestamp: int, input: int = 1) -> None:
        """Advance the event time of an input to `timestamp`."""
        self._send(input, lambda builder: builder.watermark(timestamp))

    def idle(self, input: int = 1) -> None:
        """Make an input idle."""
        self._send(input, lambda builder: builder.status(True))

    def active(self, input: int = 1) -> None:
        """Make an input active again."""
        self._send(input, lambda builder: builder.status(False))

    def end(self, input: int = 1) -> None:
        """End an input."""
        self._send(input, lambda builder: builder.end())

    def advance_processing_time(self, now: int) -> None:
        """Run an epoch without input at processing time `now`."""
        if now < self._now:
            raise ValueError(f"processing time is {self._now} and cannot be set back to {now}")
        self._now = now
        self._run({})

    def _send(self, input_number: int, fill: Callable[[FrameBuilder], None]) -> None:
        builder = FrameBuilder()
        fill(builder)
        source = self._sources[input_number - 1]
        self._run({source: [builder.take()] * self._plan.slots})

    def _run(self, assignments: dict[int, list[Any]]) -> None:
        command = Command(self._epoch, 0, self._now, 1_000_000, 60_000, assignments=assignments)
        self._epoch += 1
        self._absorb(self._cluster.run(command))

    def _absorb(self, reports: list[Report]) -> None:
        for report in reports:
            for uid, element in report.results:
                self._seen[self._names[uid]].append(element)
        for report in reports:
            if report.failure is not None:
                raise job_failed(report.failure)

    # --- what came out ---
    def output(self) -> list[tuple[Any, int | None]]:
        """Return the records since the last call, each with its timestamp."""
        return self._take(None)

    def values(self) -> list[Any]:
        """Return the records since the last call, without timestamps."""
        return [value for value, _ in self._take(None)]

    def side_output(self, tag: OutputTag) -> list[tuple[Any, int | None]]:
        """Return the records since the last call of a side output that was named in `side_outputs`."""
        if tag.tag_id not in self._seen:
            raise PenstockError(f"the harness does not observe side output '{tag.tag_id}': name it in side_outputs=")
        return self._take(tag.tag_id)

    def elements(self) -> list[tuple[str, Any, int | None]]:
        """Return all elements since the last call, as ('record', value, timestamp) or ('watermark', time, None)."""
        seen, self._seen[None] = self._seen[None], []
        return seen

    def _take(self, name: str | None) -> list[tuple[Any, int | None]]:
        seen, self._seen[name] = self._seen[name], []
        return [(value, timestamp) for kind, value, timestamp in seen if kind == "record"]

    # --- what is left ---
    def state_entries(self) -> int:
        """Return the number of entries of keyed state, over all states and keys."""
        return sum(len(table.entries) for table in self._tables() if table.layout is not Layout.TIMER)

    def timers(self) -> int:
        """Return the number of waiting timers, of both time domains."""
        return sum(len(table.entries) for table in self._tables() if table.layout is Layout.TIMER)

    def next_due(self) -> int | None:
        """Return the next processing time at which something happens without input, or None."""
        due = [time for operator in self._operators() if (time := operator.next_due()) is not None]
        return min(due, default=None)

    def _tables(self) -> list[Table]:
        backends = [backend for operator in self._operators() for backend in operator.backends().values()]
        return [table for backend in backends for table in backend.tables.values()]

    def _operators(self) -> list[Operator]:
        return [operator for slot in self._cluster.slots for operator in slot.operators.values()]

    def close(self) -> None:
        """Close the functions."""
        self._absorb(self._cluster.release())

    def __enter__(self) -> OperatorHarness:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
