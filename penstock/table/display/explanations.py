"""The explanation of a query as a picture: its operators as a graph, and the plans as text."""

from __future__ import annotations

import re

from penstock.base.display.explanation import Explanation
from penstock.base.display.html_parts import code, fold, head, whole
from penstock.graph.plan import Plan
from penstock.graph.plan_picture import facts, graph

_TITLE = re.compile(r"^== (.+) ==$", re.MULTILINE)


def explanation(text: str, plan: Plan | None) -> Explanation:
    """Return the text of an explanation, which a notebook shows with the graph of a plan."""
    return Explanation(text, lambda: _as_html(text, plan))


def _as_html(text: str, plan: Plan | None) -> str:
    drawn = [] if plan is None else [head("Operators", *facts(plan)), graph(plan)]
    _, *parts = _TITLE.split(text)
    pairs = zip(parts[::2], parts[1::2], strict=True)
    sections = [fold(title, code(content.strip("\n")), title.startswith("Optimized Phys")) for title, content in pairs]
    return whole(*drawn, *(sections or [code(text)]))
