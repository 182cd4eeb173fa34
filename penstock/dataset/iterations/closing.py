"""Bulk and delta iterations: how programs write them, and how they become operators."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Self

from penstock.dataset.aggregators import Aggregator, ConvergenceCriterion
from penstock.dataset.data_set import DataSet
from penstock.dataset.iterations.iteration_driver import IterationDriver
from penstock.dataset.iterations.iteration_operators import (
    ElementsSink,
    HeadSource,
    IterationHead,
    IterationSink,
    Role,
    SolutionSink,
    StaticInput,
    SuperstepOperator,
    TerminationSink,
)
from penstock.dataset.iterations.place import Identity
from penstock.dataset.operators.record_operators import UnionElements
from penstock.dataset.plan.checks import check_count, check_type
from penstock.dataset.plan.keys import Key, key_of_fields
from penstock.dataset.plan.steps import Lowering, Ref, Refs, Step
from penstock.errors import ProgramError, UnsupportedOperation
from penstock.graph.partitioning import Broadcast, ByKey, Partitioning
from penstock.graph.transformations import StreamRef, Transformation

if TYPE_CHECKING:
    from penstock.dataset.execution_environment import ExecutionEnvironment

_START, _SOLUTION = "the initial elements", "the initial solution set"
_numbers = count(1)


@dataclass(eq=False)
class Iteration:
    """An iteration as a program has written it."""

    name: str
    start: Refs
    max_iterations: int
    result: Refs = ()
    """The elements for the next superstep. In a bulk iteration they are also the result."""
    termination: Refs | None = None
    aggregators: dict[str, Aggregator] = field(default_factory=dict)
    criterion: tuple[str, ConvergenceCriterion] | None = None
    key: Callable[[Any], Any] | None = None
    """Key of the solution set; None in a bulk iteration."""
    solution_start: Refs = ()
    delta: Refs = ()

    def __post_init__(self) -> None:
        self.head = Step(f"{self.name} Head", make=self._refuse)
        """The step for the elements of a superstep."""
        self.solution = Step(f"{self.name} Solution Set", make=self._refuse)

    def _refuse(self, lowering: Lowering) -> StreamRef:
        raise ProgramError(f"{self.name} is used outside of the iteration, or close_with(...) is missing")

    def register(self, name: str, aggregator: Aggregator, criterion: ConvergenceCriterion | None = None) -> None:
        """Add an aggregator, and perhaps a criterion that looks at it."""
        check_type("register_aggregator", "name", name, str)
        check_type("register_aggregator", "aggregator", aggregator, Aggregator)
        if name in self.aggregators:
            raise ProgramError(f"{self.name} has an aggregator '{name}' already")
        self.aggregators[name] = aggregator
        if criterion is not None:
            check_type("register_aggregation_convergence_criterion", "criterion", criterion, ConvergenceCriterion)
            if self.criterion is not None:
                raise ProgramError(f"{self.name} has a convergence criterion already")
            self.criterion = name, criterion

    def depends(self, refs: Refs, steps: tuple[Step, ...]) -> bool:
        """Return True if some elements are computed from those of one of these steps."""
        known: dict[Step, bool] = dict.fromkeys(steps, True)
        return any(_depends(ref.step, known) for ref in refs)

    def result_step(self) -> Step:
        """Return the step that gives the result."""
        return Step(f"{self.name} Result", make=lambda lowering: IterationLowering(self, lowering).lower())


def _depends(step: Step, known: dict[Step, bool]) -> bool:
    if step not in known:
        known[step] = False
        above = [ref.step for refs in (*step.inputs, *step.sets.values()) for ref in refs]
        known[step] = any(_depends(one, known) for one in above)
    return known[step]


class IterationLowering:
    """Turns one iteration into transformations."""

    def __init__(self, iteration: Iteration, lowering: Lowering) -> None:
        self._iteration = iteration
        self._lowering = lowering
        self._identity = Identity(iteration.name, pickle.dumps(iteration.aggregators))
        self._known: dict[Step, bool] = {iteration.head: True, iteration.solution: True}
        self._made: dict[Step, StreamRef] = {}
        self._static = count(1)
        self._inputs: set[str] = set()
        self._parallelism = lowering.parallelism

    def lower(self) -> StreamRef:
        """Add the iteration to the program, and return the stream of its result."""
        iteration, wanted = self._iteration, self._outputs()
        self._parallelism = self._most_tasks(wanted)
        driver = self._driver()
        head = self._head(driver, Role.ELEMENTS, iteration.head.name)
        self._lowering.handlers[head] = driver
        self._made[iteration.head] = StreamRef(head)
        if iteration.key is not None:
            self._made[iteration.solution] = StreamRef(self._head(driver, Role.SOLUTION, iteration.solution.name))
        self._add_sinks()
        role = Role.RESULT if iteration.key is None else Role.SOLUTION_RESULT
        driver.set_inputs(frozenset(self._inputs))
        return StreamRef(self._head(driver, role, f"{iteration.name} Result"))

    def _outputs(self) -> Refs:
        return (*self._iteration.result, *self._iteration.delta, *(self._iteration.termination or ()))

    def _most_tasks(self, wanted: Refs) -> int:
        """Return the highest parallelism within the iteration. Each of these slots keeps a part of it."""
        steps, seen = [ref.step for ref in wanted], set[Step]()
        most = self._parallelism
        while steps:
            step = steps.pop()
            if step not in seen and _depends(step, self._known):
                seen.add(step)
                most = max(most, step.parallelism or 1)
                steps += [ref.step for refs in (*step.inputs, *step.sets.values()) for ref in refs]
        return most

    def _driver(self) -> IterationDriver:
        iteration = self._iteration
        return IterationDriver(
            iteration.name,
            self._parallelism,
            iteration.max_iterations,
            iteration.aggregators,
            iteration.criterion,
            ends_when_empty=iteration.key is not None,
            has_termination=iteration.termination is not None,
        )

    def _head(self, driver: IterationDriver, role: Role, name: str) -> Transformation:
        operator = IterationHead(HeadSource(self._identity, role, driver))
        return Transformation(name, operator, kind="source", parallelism=self._parallelism)

    # --- sinks ---
    def _add_sinks(self) -> None:
        iteration, identity = self._iteration, self._identity
        self._sink("Start", ElementsSink(identity, _START), self._lowering.lower(iteration.start))
        self._inputs.add(_START)
        self._sink("Feedback", ElementsSink(identity), self._input(iteration.result)[0])
        if iteration.termination is not None:
            self._sink("Termination", TerminationSink(identity), self._input(iteration.termination)[0])
        if iteration.key is not None:
            by_key = ByKey(iteration.key)
            start = self._lowering.lower(iteration.solution_start, by_key)
            self._sink("Solution Start", SolutionSink(identity, iteration.key, _SOLUTION), start)
            self._inputs.add(_SOLUTION)
            delta, _ = self._input(iteration.delta, by_key)
            self._sink("Delta", SolutionSink(identity, iteration.key), delta)

    def _sink(self, name: str, operator: IterationSink, refs: list[StreamRef]) -> None:
        text = f"{self._iteration.name} {name}"
        node = Transformation(text, operator, [refs], kind="sink", parallelism=self._parallelism)
        self._lowering.environment.add_node(node)

    # --- steps ---
    def _input(self, refs: Refs, partitioning: Partitioning | None = None) -> tuple[list[StreamRef], bool]:
        """Return the streams of an input, and True if they come from outside of the iteration."""
        inside = tuple(ref for ref in refs if _depends(ref.step, self._known))
        outside = tuple(ref for ref in refs if not _depends(ref.step, self._known))
        if not inside:
            return [self._from_outside(outside, partitioning)], True
        if not outside:
            return [self._ref(ref, partitioning) for ref in inside], False
        plain = [StreamRef(self._ref(ref).node) for ref in inside]
        operator = SuperstepOperator(self._identity, UnionElements(), (True, False))
        node = Transformation("Union", operator, [[self._from_outside(outside)], plain])
        return [StreamRef(node, None, partitioning or refs[0].partitioning)], False

    def _from_outside(self, refs: Refs, partitioning: Partitioning | None = None) -> StreamRef:
        name = f"input {next(self._static)}"
        self._inputs.add(name)
        inputs = self._lowering.lower(tuple(Ref(ref.step) for ref in refs))
        operator = StaticInput(self._identity, name)
        node = Transformation("Iteration Input", operator, [inputs], parallelism=self._parallelism)
        return StreamRef(node, None, partitioning or refs[0].partitioning)

    def _ref(self, ref: Ref, partitioning: Partitioning | None = None) -> StreamRef:
        made = self._made.get(ref.step)
        if made is None:
            made = self._made[ref.step] = self._make(ref.step)
        return StreamRef(made.node, made.tag, partitioning or ref.partitioning)

    def _make(self, step: Step) -> StreamRef:
        if step.operator is None:
            raise UnsupportedOperation(f"{step.name} is inside {self._iteration.name}: iterations cannot be nested")
        step.operator.sets = list(step.sets)
        inputs = [self._input(data, Broadcast()) for data in step.sets.values()]
        inputs += [self._input(refs) for refs in step.inputs]
        operator = SuperstepOperator(self._identity, step.operator, [outside for _, outside in inputs])
        node = Transformation(step.name, operator, [refs for refs, _ in inputs], parallelism=step.parallelism)
        if step.has_accumulators:
            self._lowering.add_accumulators(node)
        return StreamRef(node)


# --- what programs use ---
class _Registers:
    """The methods for aggregators, which both kinds of iterations have."""

    iteration: Iteration

    def register_aggregator(self, name: str, aggregator: Aggregator) -> Self:
        """Add an aggregator, which functions of the iteration get by its name."""
        self.iteration.register(name, aggregator)
        return self

    def register_aggregation_convergence_criterion(
        self, name: str, aggregator: Aggregator, criterion: ConvergenceCriterion
    ) -> Self:
        """Add an aggregator, and end the iteration when a criterion that looks at it is met."""
        check_type("register_aggregation_convergence_criterion", "criterion", criterion, ConvergenceCriterion)
        self.iteration.register(name, aggregator, criterion)
        return self

    def get_max_iterations(self) -> int:
        """Return the highest number of supersteps."""
        return self.iteration.max_iterations


class IterativeDataSet(_Registers, DataSet):
    """The elements of a superstep of a bulk iteration."""

    def __init__(self, origin: DataSet, max_iterations: int) -> None:
        check_count("iterate", "max_iterations", max_iterations)
        self.iteration = Iteration(f"Iteration {next(_numbers)}", origin.refs, max_iterations)
        super().__init__(origin.env, (Ref(self.iteration.head),), origin.kind)

    def close_with(self, iteration_result: DataSet, termination_criterion: DataSet | None = None) -> DataSet:
        """End the step: its result is the input of the next one, and that of the last one the result of all.

        The iteration ends early if the termination set is empty after a superstep.
        """
        iteration = self.iteration
        check_type("close_with", "iteration_result", iteration_result, DataSet)
        _check_closed(iteration)
        if not iteration.depends(iteration_result.refs, (iteration.head,)):
            raise ProgramError(f"{iteration.name}: the result of a superstep does not depend on its elements")
        iteration.result = iteration_result.refs
        if termination_criterion is not None:
            check_type("close_with", "termination_criterion", termination_criterion, DataSet)
            iteration.termination = termination_criterion.refs
        return DataSet(self.env, (Ref(iteration.result_step()),), self.kind)


class SolutionSet(DataSet):
    """The solution set of a delta iteration. It can be joined and co-grouped by its own keys."""

    def __init__(self, env: ExecutionEnvironment, iteration: Iteration, key: Key, origin: DataSet) -> None:
        self.key = key
        super().__init__(env, (Ref(iteration.solution),), origin.kind)

    def check_key(self, key: Key, method: str) -> None:
        paths = [getattr(each.selector, "paths", None) for each in (key, self.key)]
        if paths[0] != paths[1] or (paths[0] is None and not _is_same_function(key, self.key)):
            raise ProgramError(f"{method}: a solution set can be joined and co-grouped only by its own keys")

    def add(self, name: str, *_: Any, **__: Any) -> DataSet:
        raise ProgramError(f"{name}: the only operations on a solution set are joins and co-groups by its own keys")


class DeltaIteration(_Registers):
    """A delta iteration.

    Each superstep changes a part of the solution set, and produces the workset of the next superstep.
    """

    def __init__(self, solution: DataSet, workset: DataSet, max_iterations: int, keys: tuple[Any, ...]) -> None:
        check_type("iterate_delta", "workset", workset, DataSet)
        check_count("iterate_delta", "max_iterations", max_iterations)
        key = key_of_fields(keys, solution.kind, "iterate_delta")
        name = f"Delta Iteration {next(_numbers)}"
        self.iteration = Iteration(name, workset.refs, max_iterations, key=key.selector, solution_start=solution.refs)
        self._env = solution.env
        self._solution = SolutionSet(solution.env, self.iteration, key, solution)
        self._workset = DataSet(workset.env, (Ref(self.iteration.head),), workset.kind)
        self._kind = solution.kind

    def get_workset(self) -> DataSet:
        """Return the workset of a superstep."""
        return self._workset

    def get_solution_set(self) -> SolutionSet:
        """Return the solution set as it is at the begin of a superstep."""
        return self._solution

    def get_initial_solution_set(self) -> DataSet:
        """Return the solution set before the first superstep."""
        return DataSet(self._env, self.iteration.solution_start, self._kind)

    def get_initial_workset(self) -> DataSet:
        """Return the workset of the first superstep."""
        return DataSet(self._env, self.iteration.start, self._workset.kind)

    def close_with(self, solution_set_delta: DataSet, new_workset: DataSet) -> DataSet:
        """End the step: put a delta into the solution set, and go on with a new workset unless it is empty."""
        iteration = self.iteration
        check_type("close_with", "solution_set_delta", solution_set_delta, DataSet)
        check_type("close_with", "new_workset", new_workset, DataSet)
        _check_closed(iteration)
        if not iteration.depends(new_workset.refs, (iteration.head,)):
            raise ProgramError(f"{iteration.name}: the new workset does not depend on the workset")
        iteration.result, iteration.delta = new_workset.refs, solution_set_delta.refs
        return DataSet(self._env, (Ref(iteration.result_step()),), self._kind)


def _is_same_function(one: Key, other: Key) -> bool:
    """Return True unless two functions certainly differ."""
    functions = [getattr(key.selector, "function", None) for key in (one, other)]
    codes = [getattr(function, "__code__", type(function)) for function in functions]
    return bool(functions[0] is functions[1] or codes[0] == codes[1])


def _check_closed(iteration: Iteration) -> None:
    if iteration.result:
        raise ProgramError(f"{iteration.name} is closed already")
