"""Compilation of transformations into a plan: parallelism, edges, stages and chains, all checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import md5
from itertools import accumulate
from typing import Any

from penstock.engine.state.key_groups import UPPER_BOUND_MAX_PARALLELISM, default_max_parallelism
from penstock.errors import DuplicateUid, InvalidParallelism, NothingToExecute, ProgramError
from penstock.graph.partitioning import Forward, Partitioning, Rebalance
from penstock.graph.transformations import Chaining, StreamRef, Transformation, reachable


@dataclass(frozen=True)
class Settings:
    """Settings of the environment for all operators."""

    parallelism: int = 1
    max_parallelism: int | None = None
    chaining: bool = True
    batch: bool = False
    most: int | None = None
    """Greatest parallelism of an operator, even if the program sets more; None for no limit."""


@dataclass
class Node:
    """An operator of the plan."""

    id: int
    name: str
    uid: str
    kind: str
    operator: Any
    parallelism: int
    max_parallelism: int
    max_parallelism_given: bool = False
    """True if the program sets the max parallelism. Otherwise it follows from the parallelism."""
    stage: int = 0
    chain: int = 0
    slot_sharing_group: str = "default"
    description: str | None = None
    aligned: tuple[tuple[str, str], ...] = ()
    """For a source, pairs of alignment group and uid of the watermark operator, for the streams that it feeds."""
    alignment: tuple[str, int] | None = None
    """For a watermark operator, its alignment group and the allowed lead in milliseconds."""


@dataclass
class Edge:
    """A stream between two operators. A `local` edge is a call inside a slot and a stage."""

    id: int
    source: int
    target: int
    input_index: int
    tag: str | None
    partitioning: Partitioning
    local: bool = False

    def connects(self, plan: Plan, sender: int) -> Sequence[int]:
        """Return the downstream subtasks to which upstream subtask `sender` writes."""
        upstream, downstream = plan.nodes[self.source], plan.nodes[self.target]
        return self.partitioning.targets(sender, upstream.parallelism, downstream.parallelism)


@dataclass
class Plan:
    """The plan of a job: nodes in topological order, edges, and the number of slots and stages."""

    nodes: list[Node]
    edges: list[Edge]
    batch: bool = False
    job_name: str = "Penstock job"
    slots: int = field(init=False)
    stages: int = field(init=False)

    def __post_init__(self) -> None:
        self.slots = max(node.parallelism for node in self.nodes)
        self.stages = max(node.stage for node in self.nodes) + 1

    @cached_property
    def outgoing(self) -> dict[int, list[Edge]]:
        """The edges that leave each node."""
        edges: dict[int, list[Edge]] = {node.id: [] for node in self.nodes}
        for edge in self.edges:
            edges[edge.source].append(edge)
        return edges

    @cached_property
    def incoming(self) -> dict[int, list[Edge]]:
        """The edges that enter each node."""
        edges: dict[int, list[Edge]] = {node.id: [] for node in self.nodes}
        for edge in self.edges:
            edges[edge.target].append(edge)
        return edges


def compile_plan(roots: Sequence[Transformation], settings: Settings, job_name: str = "Penstock job") -> Plan:
    """Return the plan of a program. An error names the operator at fault."""
    transformations = reachable(roots)
    if not transformations:
        raise NothingToExecute(
            "nothing to execute: no operator has been defined since the last execute(). Define a source and at least "
            "one operator or sink first"
        )
    counts = accumulate((transformation.is_numbered for transformation in transformations), initial=0)
    nodes = [
        _node(index, count, transformation, settings)
        for index, (count, transformation) in enumerate(zip(counts, transformations, strict=False))
    ]
    _inherit_groups(transformations, nodes)
    _check_uids(nodes)
    _check_queryable_names(nodes)
    numbers = {transformation: index for index, transformation in enumerate(transformations)}
    edges = _edges(transformations, numbers, nodes)
    _assign_stages(nodes, edges)
    _assign_chains(transformations, nodes, edges, settings)
    _assign_alignment(transformations, nodes, edges)
    return Plan(nodes, edges, settings.batch, job_name)


def _node(index: int, count: int, transformation: Transformation, settings: Settings) -> Node:
    """Return the node of a transformation. `count` numbers the operators without a given uid."""
    parallelism = 1 if transformation.non_parallel else transformation.parallelism or settings.parallelism
    parallelism = min(parallelism, settings.most or parallelism)
    maximum = transformation.max_parallelism or settings.max_parallelism or default_max_parallelism(parallelism)
    name = transformation.name
    if not 0 < maximum <= UPPER_BOUND_MAX_PARALLELISM:
        raise InvalidParallelism(
            f"{name}: max parallelism is {maximum}; allowed are 1 to {UPPER_BOUND_MAX_PARALLELISM}"
        )
    if parallelism > maximum:
        raise InvalidParallelism(
            f"{name}: parallelism {parallelism} is above its max parallelism {maximum}; lower it or raise the maximum"
        )
    return Node(
        id=index,
        name=name,
        uid=transformation.uid or transformation.uid_hash or f"{_slug(name)}-{count}",
        kind=transformation.kind,
        operator=transformation.operator,
        parallelism=parallelism,
        max_parallelism=maximum,
        max_parallelism_given=bool(transformation.max_parallelism or settings.max_parallelism),
        slot_sharing_group=transformation.slot_sharing_group or "default",
        description=transformation.description,
    )


def _inherit_groups(transformations: list[Transformation], nodes: list[Node]) -> None:
    """Put operators without a slot sharing group into the group of their inputs, if the inputs agree."""
    numbers = {transformation: index for index, transformation in enumerate(transformations)}
    for node, transformation in zip(nodes, transformations, strict=True):
        groups = {nodes[numbers[above]].slot_sharing_group for above in transformation.upstream()}
        if transformation.slot_sharing_group is None and len(groups) == 1:
            node.slot_sharing_group = groups.pop()


def operator_id(uid: str) -> str:
    """Return the name of an operator where Flink has hexadecimal ids. It is the same in every run of the program."""
    return md5(uid.encode(), usedforsecurity=False).hexdigest()


def _slug(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name.lower()).strip("-") or "operator"


def _check_uids(nodes: list[Node]) -> None:
    for uid, times in Counter(node.uid for node in nodes).items():
        if times > 1:
            names = ", ".join(node.name for node in nodes if node.uid == uid)
            raise DuplicateUid(f"uid '{uid}' is given to {times} operators ({names}); each operator needs its own uid")


def _check_queryable_names(nodes: list[Node]) -> None:
    """Check the names of queryable streams. States that functions make queryable are checked when the job runs."""
    owners: dict[str, str] = {}
    for node in nodes:
        for name in getattr(node.operator, "queryable_names", ()):
            if name in owners:
                raise ProgramError(
                    f"two states are queryable as '{name}': those of {owners[name]} and {node.name} (uid {node.uid}); "
                    "each needs a name of its own in the job"
                )
            owners[name] = f"{node.name} (uid {node.uid})"


def _edges(transformations: list[Transformation], numbers: dict[Transformation, int], nodes: list[Node]) -> list[Edge]:
    edges: list[Edge] = []
    for target, transformation in enumerate(transformations):
        for input_index, refs in enumerate(transformation.inputs):
            for ref in refs:
                partitioning = _partitioning(ref, nodes[numbers[ref.node]], nodes[target])
                edges.append(Edge(len(edges), numbers[ref.node], target, input_index, ref.tag, partitioning))
    return edges


def _partitioning(ref: StreamRef, source: Node, target: Node) -> Partitioning:
    if ref.partitioning is None:
        return Forward() if source.parallelism == target.parallelism else Rebalance()
    if isinstance(ref.partitioning, Forward) and source.parallelism != target.parallelism:
        raise InvalidParallelism(
            f"forward() from {source.name} (parallelism {source.parallelism}) to {target.name} (parallelism "
            f"{target.parallelism}): both sides must have the same parallelism; use rebalance() or rescale()"
        )
    return ref.partitioning


def _needs_exchange(edge: Edge, nodes: list[Node]) -> bool:
    """Return True if an edge leaves its slot. Forward edges and edges between single subtasks stay in their slot."""
    alone = nodes[edge.source].parallelism == nodes[edge.target].parallelism == 1
    return not (alone or isinstance(edge.partitioning, Forward))


def _assign_stages(nodes: list[Node], edges: list[Edge]) -> None:
    """Put each operator into the first stage in which all its inputs are available."""
    entering: dict[int, list[Edge]] = {node.id: [] for node in nodes}
    for edge in edges:
        entering[edge.target].append(edge)
    for node in nodes:
        node.stage = max((nodes[e.source].stage + _needs_exchange(e, nodes) for e in entering[node.id]), default=0)
    for edge in edges:
        same_stage = nodes[edge.source].stage == nodes[edge.target].stage
        edge.local = same_stage and not _needs_exchange(edge, nodes)


def _assign_chains(
    transformations: list[Transformation], nodes: list[Node], edges: list[Edge], settings: Settings
) -> None:
    """Assign a chain number to each operator. It joins its only input's chain where nothing forbids it."""
    entering: dict[int, list[Edge]] = {node.id: [] for node in nodes}
    for edge in edges:
        entering[edge.target].append(edge)
    chains = 0
    for node, transformation in zip(nodes, transformations, strict=True):
        only = entering[node.id][0] if len(entering[node.id]) == 1 else None
        if only is not None and settings.chaining and _chainable(only, transformation, transformations, nodes):
            node.chain = nodes[only.source].chain
        else:
            node.chain = chains
            chains += 1


def _chainable(edge: Edge, target: Transformation, transformations: list[Transformation], nodes: list[Node]) -> bool:
    return (
        isinstance(edge.partitioning, Forward)
        and edge.local
        and target.chaining is Chaining.ALWAYS
        and transformations[edge.source].chaining is not Chaining.NEVER
        and nodes[edge.source].slot_sharing_group == nodes[edge.target].slot_sharing_group
    )


def _assign_alignment(transformations: list[Transformation], nodes: list[Node], edges: list[Edge]) -> None:
    """Tell each source which aligned watermark operators it feeds in its own slot."""
    upstream: dict[int, list[int]] = {node.id: [] for node in nodes}
    for edge in edges:
        if edge.local:
            upstream[edge.target].append(edge.source)
    for node, transformation in zip(nodes, transformations, strict=True):
        node.alignment = transformation.alignment
        if node.alignment is not None:
            for source in _sources_above(node.id, upstream):
                nodes[source].aligned = (*nodes[source].aligned, (node.alignment[0], node.uid))


def _sources_above(node: int, upstream: dict[int, list[int]]) -> list[int]:
    found, waiting = [], [node]
    while waiting:
        current = waiting.pop()
        if not upstream[current]:
            found.append(current)
        waiting.extend(upstream[current])
    return found
