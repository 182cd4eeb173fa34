"""Tasks of a query in Spark's Python workers: our own operators and sources over the batches of a partition."""

from __future__ import annotations

import base64
import pickle
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from penstock.api.latency_marker import LatencyMarker
from penstock.engine.messages.commands_and_reports import Deployment
from penstock.engine.operators.operator import Clock, Fitting, Operator, OperatorContext
from penstock.engine.operators.sources.source_operator import Budget, SourceOperator
from penstock.engine.records.columns import Columns
from penstock.engine.records.elements import MAX_TIMESTAMP, Chunk, Receiver
from penstock.engine.records.failures import USER_ERRORS, Failure, OperatorFailed, failure_of
from penstock.spark.slots.guests import as_guest
from penstock.spark.slots.worker import move_in
from penstock.spark.sql.batch_transport import pack_batch, unpack_batch

NOBODY = -1
"""Number of the input of an additional row, which only keeps the partition from being empty."""
MAX_PARALLELISM = 128
_BUDGET_RECORDS = 1 << 16
_REST_SECONDS = 0.01
"""Pause, in seconds, before a source that has nothing to read yet is asked again."""
_TOLD = re.compile(r"penstock-failure:([A-Za-z0-9+/=]+);")


@dataclass
class Gathered:
    """Receiver that keeps the batches that an operator sends until they are taken."""

    chunks: list[Chunk] = field(default_factory=list)

    def chunk(self, chunk: Chunk) -> None:
        """Keep a chunk."""
        self.chunks.append(chunk)

    def watermark(self, timestamp: int) -> None:
        """Ignore the watermark: no operator behind this one waits for event time."""

    def status(self, idle: bool) -> None:
        """Ignore the status: no operator behind this one waits for event time."""

    def end(self) -> None:
        """Ignore the end: the end of the partition is known without it."""

    def marker(self, marker: LatencyMarker) -> None:
        """Ignore the marker: nothing is measured here."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches that were sent since the last call."""
        chunks, self.chunks = self.chunks, []
        for chunk in chunks:
            assert chunk.columns is not None
            yield chunk.columns.batch


@dataclass(frozen=True)
class Input:
    """Position and schema of an operator's input in the batches of a DataFrame."""

    first: int
    """Index of its first column."""
    schema: bytes
    """Serialised Arrow schema in which the operator gets the input."""


@dataclass(frozen=True)
class Surroundings:
    """Data that tasks need to run a part of a program: its modules and files, its parameters, and the time."""

    deployment: bytes
    now: int
    parameters: dict[str, str]

    def prepare_process(self) -> None:
        """Make the program's modules and files available in this process."""
        deployment: Deployment = pickle.loads(self.deployment)
        move_in(deployment)

    def context(self, name: str, uid: str, subtask: int, parallelism: int, output: Receiver) -> OperatorContext:
        """Return the context in which a task opens an operator."""
        return OperatorContext(
            name,
            uid,
            subtask,
            parallelism,
            MAX_PARALLELISM,
            output,
            {},
            Clock(self.now),
            batch=True,
            job_parameters=self.parameters,
        )


@dataclass(frozen=True)
class OperatorTask:
    """Runs an operator over a partition. With several inputs, the last column holds the number of a row's input."""

    operator: bytes
    name: str
    uid: str
    inputs: tuple[Input, ...]
    tagged: bool
    names: tuple[str, ...]
    """Names of the output columns."""
    surroundings: Surroundings

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with as_guest(), _encode_failures(self.name, self.uid):
            self.surroundings.prepare_process()
            operator: Operator = pickle.loads(self.operator)
            for batch in self._results(operator, batches):
                yield pack_batch(batch, self.names)

    def _results(self, operator: Operator, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        output = Gathered()
        operator.open(self.surroundings.context(self.name, self.uid, 0, 1, output))
        try:
            take = operator.inputs()
            schemas = [pa.ipc.read_schema(pa.py_buffer(input.schema)) for input in self.inputs]
            for batch in batches:
                for number, part in self._parts(batch):
                    first = self.inputs[number].first
                    columns = part.columns[first : first + len(schemas[number])]
                    take[number](Chunk.of(Columns(unpack_batch(columns, schemas[number], part.num_rows))))
                    yield from output.batches()
            yield from _finish_operator(operator, output)
        finally:
            operator.close()

    def _parts(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        if not self.tagged:
            yield 0, batch
            return
        tags = batch.column(batch.num_columns - 1)
        for number in range(len(self.inputs)):
            part = batch.filter(pc.equal(tags, number))
            if part.num_rows:
                yield number, part


def _finish_operator(operator: Operator, output: Gathered) -> Iterator[pa.RecordBatch]:
    """Tell the operator that all input has come, and yield its last batches."""
    operator.end_epoch()
    operator.watermark(MAX_TIMESTAMP)
    yield from output.batches()
    for _ in operator.finish() or ():
        yield from output.batches()
    yield from output.batches()


@dataclass(frozen=True)
class SourceTask:
    """Reads the share of a source for each reader number in its input, and runs the operators behind the source.

    `chain` holds the source and the operators that turn its records into batches, in order.
    """

    chain: tuple[bytes, ...]
    payloads: bytes
    """Pickled list of the payloads that the source's enumerator has assigned, by number of the reader."""
    name: str
    parallelism: int
    names: tuple[str, ...]
    surroundings: Surroundings

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with as_guest(), _encode_failures(self.name, "-"):
            self.surroundings.prepare_process()
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    for found in self._read(number):
                        yield pack_batch(found, self.names)

    def _read(self, number: int) -> Iterator[pa.RecordBatch]:
        output, clock = Gathered(), Clock()
        operators = self._open_operators(number, output, clock)
        source = operators[0]
        assert isinstance(source, SourceOperator)
        waiting = list(pickle.loads(self.payloads)[number])
        try:
            while not source.finished:
                clock.now = time.time_ns() // 1_000_000
                payload = waiting.pop(0) if waiting else None
                source.run(Budget(_BUDGET_RECORDS, sys.float_info.max, wait=0.1, payload=payload))
                if not (output.chunks or source.finished):
                    time.sleep(_REST_SECONDS)
                yield from output.batches()
        finally:
            for operator in operators:
                operator.close()

    def _open_operators(self, number: int, output: Gathered, clock: Clock) -> list[Operator]:
        operators: list[Operator] = [pickle.loads(one) for one in self.chain]
        receiver: Receiver = output
        for operator, behind in zip(reversed(operators), [None, *reversed(operators)], strict=False):
            if behind is not None and behind.wants_declared_form and operator.output_type is not None:
                receiver = Fitting(operator, receiver)
            context = self.surroundings.context(self.name, "-", number, self.parallelism, receiver)
            context.clock = clock
            operator.open(context)
            receiver = _Into(operator)
        return operators


class _Into(Gathered):
    """Receiver that passes chunks of one operator on to the next."""

    def __init__(self, operator: Operator) -> None:
        super().__init__()
        self._take = operator.chunk

    def chunk(self, chunk: Chunk) -> None:
        self._take(chunk)


# --- failures ---
@contextmanager
def _encode_failures(name: str, uid: str) -> Iterator[None]:
    """Raise errors of the block with an encoded Failure, which the driver finds again in Spark's error text."""
    try:
        yield
    except USER_ERRORS as error:
        failure = error.failure if isinstance(error, OperatorFailed) else failure_of(error, name, uid, 0)
        packed = base64.b64encode(pickle.dumps(failure)).decode()
        raise RuntimeError(f"{failure.describe()}\npenstock-failure:{packed};") from None


def failure_in(text: str) -> Failure | None:
    """Return the failure of an operator that the text of a Spark error holds, or None."""
    found = _TOLD.search(text)
    if found is None:
        return None
    failure: Failure = pickle.loads(base64.b64decode(found[1]))
    return failure


MapInArrow = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def schema_bytes(schema: pa.Schema) -> bytes:
    """Return a schema in serialised form."""
    return bytes(schema.serialize())


def inputs_of(schemas: Sequence[pa.Schema]) -> tuple[Input, ...]:
    """Return inputs whose columns follow each other in one batch."""
    made, first = [], 0
    for schema in schemas:
        made.append(Input(first, schema_bytes(schema)))
        first += max(1, len(schema))
    return tuple(made)
