"""A plan as stable text and as JSON, for explain(), tests and user interfaces."""

from __future__ import annotations

import json
from typing import Any

from penstock.graph.plan import Edge, Node, Plan

_PACTS = {"source": "Data Source", "sink": "Data Sink", "committing sink": "Data Sink"}
"""Names that Flink's plan visualiser has for the kinds of operators."""
_TITLES = {"source": "Source: {}", "sink": "Sink: {}", "committing sink": "{}: Writer"}


def as_text(plan: Plan) -> str:
    """Return a plan as text, by stage and chain. Inputs are shown where they are not the operator above."""
    mode = "BATCH" if plan.batch else "STREAMING"
    lines = [f"{plan.job_name}: {mode}, {_count(plan.slots, 'slot')}, {_count(plan.stages, 'stage')}"]
    for stage in range(plan.stages):
        lines.append(f"Stage {stage}")
        for chain in sorted({node.chain for node in plan.nodes if node.stage == stage}):
            lines.extend(_chain_lines(plan, [n for n in plan.nodes if n.stage == stage and n.chain == chain]))
    return "\n".join(lines) + "\n"


def _chain_lines(plan: Plan, nodes: list[Node]) -> list[str]:
    lines = []
    for depth, node in enumerate(nodes):
        marker = "- " if depth == 0 else "  → "
        group = "" if node.slot_sharing_group == "default" else f", group {node.slot_sharing_group}"
        lines.append(f"  {marker}{node.name} [uid {node.uid}, parallelism {node.parallelism}{group}]")
        edges = [edge for edge in plan.incoming[node.id] if depth == 0 or not _obvious(edge, nodes[depth - 1])]
        lines.extend(f"      ← {_edge_text(plan, edge)}" for edge in edges)
    return lines


def _obvious(edge: Edge, above: Node) -> bool:
    """Return True if an operator simply reads the main output of the one above it."""
    return edge.source == above.id and edge.tag is None


def _edge_text(plan: Plan, edge: Edge) -> str:
    source = plan.nodes[edge.source]
    tag = f", side output '{edge.tag}'" if edge.tag is not None else ""
    into = f", input {edge.input_index + 1}" if _two_inputs(plan, edge.target) else ""
    return f"{edge.partitioning.label} from {source.name} [uid {source.uid}]{tag}{into}"


def _two_inputs(plan: Plan, target: int) -> bool:
    return any(edge.input_index > 0 for edge in plan.incoming[target])


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def as_json(plan: Plan) -> str:
    """Return the nodes with their predecessors, in the form that Flink's plan visualiser reads."""
    return json.dumps({"nodes": [_node_json(plan, node) for node in plan.nodes]}, indent=2)


def _node_json(plan: Plan, node: Node) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": node.id + 1,
        "type": title(node),
        "pact": _PACTS.get(node.kind, "Operator"),
        "contents": node.description or title(node),
        "parallelism": node.parallelism,
        "uid": node.uid,
        "stage": node.stage,
        "chain": node.chain,
    }
    edges = plan.incoming[node.id]
    if edges:
        described["predecessors"] = [
            {"id": edge.source + 1, "ship_strategy": edge.partitioning.label, "side": _side(edge)} for edge in edges
        ]
    return described


def title(node: Node) -> str:
    """Return a node's name as Flink's plans show it. Sources and sinks are marked as such."""
    return _TITLES.get(node.kind, "{}").format(node.name)


def _side(edge: Edge) -> str:
    return "first" if edge.input_index == 0 else "second"
