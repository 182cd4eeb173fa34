"""A plan as a picture for notebooks: a box for each chain of operators."""

from __future__ import annotations

from penstock.base.display.explanation import Explanation
from penstock.base.display.flow_graph import Arrow, Box, draw
from penstock.base.display.html_parts import code, fold, head, note, whole
from penstock.base.display.short_texts import count
from penstock.graph.plan import Node, Plan
from penstock.graph.plan_text import as_text, title

MOST_CHAINS = 60
"""Largest number of chains in a picture. Further chains are left out."""
_MOST_OPERATORS = 4
"""Largest number of operators that a box names after the first one."""
_COLOURS = {"source": "hsl(150, 60%, 40%)", "sink": "hsl(275, 55%, 55%)", "committing sink": "hsl(275, 55%, 55%)"}
_OPERATOR_COLOUR = "hsl(210, 70%, 50%)"


def explanation(plan: Plan) -> Explanation:
    """Return a plan as text, which a notebook shows as a graph."""
    text = as_text(plan)
    return Explanation(text, lambda: as_html(plan, plan.job_name))


def as_html(plan: Plan, name: str) -> str:
    """Return the graph of a plan with a headline, and its text."""
    return whole(head(name, *facts(plan)), graph(plan), fold("as text", code(as_text(plan))))


def facts(plan: Plan) -> list[str]:
    """Return a short summary of a plan."""
    mode = "BATCH" if plan.batch else "STREAMING"
    return [mode, count(plan.slots, "slot"), count(plan.stages, "stage"), count(len(plan.nodes), "operator")]


def graph(plan: Plan) -> str:
    """Return the chains of a plan and the ways of records between them as SVG."""
    chains: dict[int, list[Node]] = {}
    for node in plan.nodes:
        chains.setdefault(node.chain, []).append(node)
    shown = dict(list(chains.items())[:MOST_CHAINS])
    arrows = [
        Arrow(str(plan.nodes[edge.source].chain), str(plan.nodes[edge.target].chain), edge.partitioning.label)
        for edge in plan.edges
        if plan.nodes[edge.source].chain != plan.nodes[edge.target].chain
    ]
    drawing = draw([_box(nodes) for nodes in shown.values()], arrows, plan.job_name)
    left_out = len(chains) - len(shown)
    return f'<div class="scroll">{drawing}</div>' + (note(f"and {left_out} more") if left_out else "")


def _box(nodes: list[Node]) -> Box:
    first, *others = nodes
    lines = [f"→ {title(node)}" for node in others[:_MOST_OPERATORS]]
    if len(others) > _MOST_OPERATORS:
        lines[-1] = f"→ and {len(others) - _MOST_OPERATORS + 1} more"
    kinds = [node.kind for node in nodes]
    kind = next((kind for kind in (kinds[0], kinds[-1]) if kind in _COLOURS), "operator")
    whole_text = "\n".join(f"{title(node)} (uid {node.uid})" for node in nodes)
    parallelism = f"parallelism {first.parallelism}"
    return Box(str(first.chain), title(first), (*lines, parallelism), _COLOURS.get(kind, _OPERATOR_COLOUR), whole_text)
