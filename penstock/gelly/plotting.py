"""Pictures of small graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.base.libraries import optional_library
from penstock.errors import ProgramError

if TYPE_CHECKING:
    from penstock.gelly.graph_base import GraphBase

MOST_VERTICES = 500
_ROUNDS = 150


def plot(graph: GraphBase, axes: Any = None, with_values: bool = False, seed: int = 0) -> Any:
    """Draw a graph with matplotlib, and return the axes. See Graph.plot."""
    pyplot = optional_library("matplotlib.pyplot", "plot needs matplotlib", "plot")
    vertices = dict(graph.get_vertices().collect())
    if len(vertices) > MOST_VERTICES:
        raise ProgramError(f"plot draws at most {MOST_VERTICES} vertices, and the graph has {len(vertices)}: filter it")
    edges = [edge for edge in graph.get_edges().collect() if edge[0] in vertices and edge[1] in vertices]
    if axes is None:
        axes = pyplot.figure(figsize=(6, 6)).add_subplot()
    numbers = {vertex_id: number for number, vertex_id in enumerate(vertices)}
    pairs = [(numbers[source], numbers[target]) for source, target, _ in edges]
    places = layout(len(vertices), pairs, seed)
    draw_edges(axes, places, set(pairs))
    for (vertex_id, value), place in zip(vertices.items(), places, strict=True):
        label = f"{vertex_id}: {value}" if with_values and value is not None else f"{vertex_id}"
        box = {"boxstyle": "round", "facecolor": "#dbe9f6", "edgecolor": "#4a6f97"}
        axes.text(*place, label, ha="center", va="center", bbox=box, zorder=2)
    axes.set_axis_off()
    axes.margins(0.15)
    return axes


def draw_edges(axes: Any, places: Any, pairs: set[tuple[int, int]]) -> None:
    """Draw arrows; a line without a head if there are edges in both directions."""
    for source, target in sorted(pairs):
        if source == target or ((target, source) in pairs and target < source):
            continue
        style = "-" if (target, source) in pairs else "-|>"
        axes.plot(*zip(places[source], places[target], strict=True), alpha=0)
        arrow = {"arrowstyle": style, "color": "#707070", "shrinkA": 14, "shrinkB": 14}
        axes.annotate("", places[target], places[source], arrowprops=arrow, zorder=1)


def layout(vertices: int, pairs: list[tuple[int, int]], seed: int) -> Any:
    """Return a place for each vertex, so that distances are near to the numbers of edges between vertices.

    Each round moves all vertices so that the sum of the squares of the differences becomes less (SMACOF).
    """
    np = optional_library("numpy", "plot needs NumPy", "plot")
    wanted = hops(vertices, pairs)
    places = np.random.default_rng(seed).uniform(-1, 1, (vertices, 2))
    for _ in range(_ROUNDS):
        between = places[:, None, :] - places[None, :, :]
        distance = np.maximum(np.sqrt((between**2).sum(axis=2)), 1e-6)
        weights = -wanted / distance
        np.fill_diagonal(weights, 0.0)
        np.fill_diagonal(weights, -weights.sum(axis=1))
        places = weights @ places / max(vertices, 1)
    return places


def hops(vertices: int, pairs: list[tuple[int, int]]) -> Any:
    """Return the number of edges between all pairs of vertices. Unconnected ones are farther than all others."""
    np = optional_library("numpy", "plot needs NumPy", "plot")
    near = np.eye(vertices, dtype=np.float32)
    for source, target in pairs:
        near[source, target] = near[target, source] = 1
    found = np.where(near > 0, 1.0, np.inf)
    np.fill_diagonal(found, 0)
    reached, number = near > 0, 1
    while True:
        number += 1
        further = (reached @ near) > 0
        if (further == reached).all():
            break
        found[further & ~reached] = number
        reached = further
    found[np.isinf(found)] = number
    return found
