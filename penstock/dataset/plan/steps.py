"""The steps of a DataSet program, and how they become the operators of a BATCH job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.dataset.functions import RichFunction
from penstock.dataset.operators.dataset_operator import ACCUMULATORS, DataSetOperator
from penstock.graph.partitioning import Broadcast, Partitioning
from penstock.graph.transformations import StreamRef, Transformation
from penstock.service.launch.collected_results import ResultHandler

if TYPE_CHECKING:
    from penstock.datastream.data_stream import DataStream
    from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment


@dataclass(frozen=True)
class Ref:
    """The elements of a step, and how they are distributed."""

    step: Step
    partitioning: Partitioning | None = None
    """Distribution of the elements. None leaves them where they are, if the parallelism allows it."""


Refs = tuple[Ref, ...]
"""The union of some steps."""


@dataclass(eq=False)
class Step:
    """An operator with its inputs, or a source."""

    name: str
    operator: DataSetOperator | None = None
    inputs: tuple[Refs, ...] = ()
    read: Callable[[StreamExecutionEnvironment], DataStream] | None = None
    """Function that adds a source to a program."""
    parallelism: int | None = None
    sets: dict[str, Refs] = field(default_factory=dict)
    """Broadcast sets by name."""
    make: Callable[[Lowering], StreamRef] | None = None
    """Function that adds an iteration to a program, instead of a source or an operator."""
    combiner: Step | None = None
    """The step that does a part of this one's work before the exchange, with the same function."""

    def add_set(self, name: str, data: Refs) -> None:
        """Add a broadcast set for the function of this step."""
        self.sets[name] = data
        if self.combiner is not None:
            self.combiner.add_set(name, data)

    @property
    def has_accumulators(self) -> bool:
        """True if the function of the step may have accumulators."""
        return self.operator is not None and isinstance(self.operator.function, RichFunction)


class Lowering:
    """Turns steps into transformations. A step that several others read becomes one transformation."""

    def __init__(self, environment: StreamExecutionEnvironment) -> None:
        self.environment = environment
        self.parallelism = environment.get_parallelism()
        self._made: dict[Step, StreamRef] = {}
        self.accumulators: list[StreamRef] = []
        """The accumulators of all steps so far."""
        self.handlers: dict[Transformation, ResultHandler] = {}
        """The drivers of iterations, by the head that reports to each."""

    def add_accumulators(self, node: Transformation) -> None:
        """Read the accumulators of an operator."""
        self.accumulators.append(StreamRef(node, ACCUMULATORS))

    def lower(self, refs: Refs, partitioning: Partitioning | None = None) -> list[StreamRef]:
        """Return the streams of some steps. `partitioning` replaces that of the references."""
        return [self._ref(ref, partitioning) for ref in refs]

    def _ref(self, ref: Ref, partitioning: Partitioning | None) -> StreamRef:
        made = self._made.get(ref.step)
        if made is None:
            made = self._made[ref.step] = self._make(ref.step)
        return StreamRef(made.node, made.tag, partitioning or ref.partitioning)

    def _make(self, step: Step) -> StreamRef:
        if step.make is not None:
            return step.make(self)
        if step.read is not None:
            (source,) = step.read(self.environment).input_refs()
            if not source.node.non_parallel:
                source.node.parallelism = step.parallelism
            return source
        assert step.operator is not None
        step.operator.sets = list(step.sets)
        inputs = [self.lower(data, Broadcast()) for data in step.sets.values()]
        inputs += [self.lower(refs) for refs in step.inputs]
        node = Transformation(step.name, step.operator, inputs, parallelism=step.parallelism)
        if step.has_accumulators:
            self.add_accumulators(node)
        return StreamRef(node)
