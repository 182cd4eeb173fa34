"""Graphs of known shapes, and random ones. Their vertices are numbered from 0 on, and nothing has a value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Self

from penstock.base.libraries import optional_library
from penstock.dataset import DataSet, ExecutionEnvironment
from penstock.dataset.plan.checks import check_count, check_type
from penstock.errors import InvalidArgument, ProgramError
from penstock.gelly.elements import Edge
from penstock.gelly.graph import Graph
from penstock.gelly.transforming import bare_vertex

__all__ = [
    "CirculantGraph",
    "CompleteGraph",
    "CycleGraph",
    "EchoGraph",
    "EmptyGraph",
    "GraphGenerator",
    "GridGraph",
    "HypercubeGraph",
    "PathGraph",
    "RMatGraph",
    "SingletonEdgeGraph",
    "StarGraph",
]
RMAT_BLOCK = 50_000
"""Number of random edges that one element of the source stands for."""
RMAT_SHARES = (0.57, 0.19, 0.19, 0.05)
"""Shares of the edges in the four quarters of the adjacency matrix."""


class GraphGenerator(ABC):
    """Makes a graph."""

    def __init__(self, env: ExecutionEnvironment) -> None:
        check_type(type(self).__name__, "env", env, ExecutionEnvironment)
        self.env = env

    @abstractmethod
    def generate(self) -> Graph:
        """Return the graph."""

    def numbers(self, count: int) -> DataSet:
        """Return the numbers from 0 to count - 1."""
        return self.env.generate_sequence(0, count - 1) if count else self.env.from_collection([])

    def graph_of(self, count: int, targets: Any) -> Graph:
        """Return a graph with some vertices, given a function that returns the targets of a vertex."""
        numbers = self.numbers(count)
        edges = numbers.flat_map(lambda number: [Edge(number, target, None) for target in targets(number)])
        return Graph(numbers.map(bare_vertex), edges, self.env)


def check_vertices(name: str, count: Any, least: int = 2) -> int:
    """Return a number of vertices. Raise an error if it is too small."""
    if not isinstance(count, int) or isinstance(count, bool) or count < least:
        raise InvalidArgument(
            f"{name}: the number of vertices must be a whole number of at least {least}, not {count!r}"
        )
    return count


class SizedGenerator(GraphGenerator):
    """Base of the generators that take the number of vertices."""

    least = 2

    def __init__(self, env: ExecutionEnvironment, vertex_count: int) -> None:
        super().__init__(env)
        self.vertex_count = check_vertices(type(self).__name__, vertex_count, self.least)


class EmptyGraph(SizedGenerator):
    """A graph without edges."""

    least = 0

    def generate(self) -> Graph:
        """Return the graph."""
        return self.graph_of(self.vertex_count, lambda number: ())


class CompleteGraph(SizedGenerator):
    """A graph with an edge from every vertex to every other."""

    def generate(self) -> Graph:
        """Return the graph."""
        count = self.vertex_count
        return self.graph_of(count, lambda number: (other for other in range(count) if other != number))


class CycleGraph(SizedGenerator):
    """A graph in which each vertex is connected with the next, and the last one with the first."""

    def generate(self) -> Graph:
        """Return the graph."""
        return GridGraph(self.env).add_dimension(self.vertex_count, True).generate()


class PathGraph(SizedGenerator):
    """A graph in which each vertex is connected with the next."""

    def generate(self) -> Graph:
        """Return the graph."""
        return GridGraph(self.env).add_dimension(self.vertex_count, False).generate()


class StarGraph(SizedGenerator):
    """A graph in which one vertex is connected with all others."""

    def generate(self) -> Graph:
        """Return the graph."""
        count = self.vertex_count
        return self.graph_of(count, lambda number: (0,) if number else range(1, count))


class SingletonEdgeGraph(GraphGenerator):
    """A graph of pairs of vertices that are connected with each other."""

    def __init__(self, env: ExecutionEnvironment, vertex_pair_count: int) -> None:
        super().__init__(env)
        check_count("SingletonEdgeGraph", "vertex_pair_count", vertex_pair_count)
        self.vertex_pair_count = vertex_pair_count

    def generate(self) -> Graph:
        """Return the graph."""
        return self.graph_of(2 * self.vertex_pair_count, lambda number: (number ^ 1,))


class HypercubeGraph(GraphGenerator):
    """The corners and edges of a cube of some number of dimensions."""

    def __init__(self, env: ExecutionEnvironment, dimensions: int) -> None:
        super().__init__(env)
        check_count("HypercubeGraph", "dimensions", dimensions)
        self.dimensions = dimensions

    def generate(self) -> Graph:
        """Return the graph."""
        bits = [1 << at for at in range(self.dimensions)]
        return self.graph_of(1 << self.dimensions, lambda number: (number ^ bit for bit in bits))


class GridGraph(GraphGenerator):
    """A grid of some number of dimensions, in which neighbouring vertices are connected."""

    def __init__(self, env: ExecutionEnvironment) -> None:
        super().__init__(env)
        self.dimensions: list[tuple[int, bool]] = []

    def add_dimension(self, size: int, wrap_endpoints: bool) -> Self:
        """Add a dimension. With `wrap_endpoints` the last vertex is connected with the first."""
        check_type("add_dimension", "wrap_endpoints", wrap_endpoints, bool)
        self.dimensions.append((check_vertices("add_dimension", size), wrap_endpoints))
        return self

    def generate(self) -> Graph:
        """Return the graph."""
        if not self.dimensions:
            raise ProgramError("GridGraph has no dimension yet: call add_dimension(size, wrap_endpoints)")
        count = 1
        for size, _ in self.dimensions:
            count *= size
        return self.graph_of(count, GridNeighbors(self.dimensions))


class GridNeighbors:
    """Returns the neighbours of a vertex of a grid."""

    def __init__(self, dimensions: list[tuple[int, bool]]) -> None:
        self.dimensions = dimensions

    def __call__(self, number: int) -> set[int]:
        neighbors, step = set[int](), 1
        for size, wraps in reversed(self.dimensions):
            place = number // step % size
            for other in (place - 1, place + 1):
                if wraps or 0 <= other < size:
                    neighbors.add(number + (other % size - place) * step)
            step *= size
        return neighbors


class CirculantGraph(SizedGenerator):
    """A graph in which each vertex has edges to those at some distances after it; behind the last is the first."""

    def __init__(self, env: ExecutionEnvironment, vertex_count: int) -> None:
        super().__init__(env, vertex_count)
        self.distances: list[int] = []

    def add_range(self, offset: int, length: int) -> Self:
        """Add the distances offset, offset + 1, and so on."""
        check_count("add_range", "offset", offset)
        check_count("add_range", "length", length)
        if offset + length > self.vertex_count:
            raise InvalidArgument(
                f"add_range: distances go up to {self.vertex_count - 1}, and these to {offset + length - 1}"
            )
        new = range(offset, offset + length)
        if not set(new).isdisjoint(self.distances):
            raise InvalidArgument(
                f"add_range: the distances {offset} to {offset + length - 1} overlap with earlier ones"
            )
        self.distances += new
        return self

    def generate(self) -> Graph:
        """Return the graph."""
        count, distances = self.vertex_count, list(self.distances)
        return self.graph_of(count, lambda number: ((number + distance) % count for distance in distances))


class EchoGraph(SizedGenerator):
    """A graph in which each vertex is connected with those that are farthest away on a circle."""

    def __init__(self, env: ExecutionEnvironment, vertex_count: int, vertex_degree: int) -> None:
        super().__init__(env, vertex_count)
        check_count("EchoGraph", "vertex_degree", vertex_degree)
        if vertex_degree >= vertex_count:
            raise InvalidArgument(f"EchoGraph: the degree must be less than {vertex_count}, not {vertex_degree}")
        if vertex_count % 2 == vertex_degree % 2:
            raise InvalidArgument(
                "EchoGraph: either the number of vertices or the degree must be even, and not both, "
                f"unlike {vertex_count} and {vertex_degree}"
            )
        self.vertex_degree = vertex_degree

    def generate(self) -> Graph:
        """Return the graph."""
        offset = (self.vertex_count - self.vertex_degree + 1) // 2
        return CirculantGraph(self.env, self.vertex_count).add_range(offset, self.vertex_degree).generate()


class RMatGraph(GraphGenerator):
    """A random graph with few vertices of high degree and many of low degree, as social networks have.

    It may have loops and parallel edges. Its vertices are those with edges.
    """

    def __init__(self, env: ExecutionEnvironment, vertex_count: int, edge_count: int, seed: int = 0) -> None:
        """Create the generator. Equal seeds give equal graphs."""
        super().__init__(env)
        check_count("RMatGraph", "edge_count", edge_count)
        check_type("RMatGraph", "seed", seed, int)
        self.vertex_count = check_vertices("RMatGraph", vertex_count)
        self.edge_count = edge_count
        self.seed = seed
        self.shares = RMAT_SHARES

    def set_constants(self, a: float, b: float, c: float) -> Self:
        """Set the shares of the edges in three quarters of the adjacency matrix. The fourth gets the rest."""
        if min(a, b, c) < 0 or a + b + c > 1:
            raise InvalidArgument(f"set_constants takes three shares of at most 1 together, not {(a, b, c)!r}")
        self.shares = a, b, c, 1 - a - b - c
        return self

    def generate(self) -> Graph:
        """Return the graph."""
        blocks = self.numbers(-(-self.edge_count // RMAT_BLOCK)).rebalance()
        edges = blocks.flat_map(RMatEdges(self.vertex_count, self.edge_count, self.seed, self.shares))
        return Graph.from_dataset(edges, self.env)


class RMatEdges:
    """Makes a block of random edges."""

    def __init__(self, vertices: int, edges: int, seed: int, shares: tuple[float, float, float, float]) -> None:
        self.vertices = vertices
        self.edges = edges
        self.seed = seed
        self.shares = shares

    def __call__(self, block: int) -> Iterator[Edge]:
        count = min(RMAT_BLOCK, self.edges - block * RMAT_BLOCK)
        np = optional_library("numpy", "RMatGraph needs NumPy", "gelly")
        random = np.random.default_rng([self.seed, block])
        sources, targets = self.draw(random, count)
        return (Edge(source, target, None) for source, target in zip(sources.tolist(), targets.tolist(), strict=True))

    def draw(self, random: Any, count: int) -> tuple[Any, Any]:
        """Return the sources and targets of random edges between vertices that exist."""
        np = optional_library("numpy", "RMatGraph needs NumPy", "gelly")
        sources, targets = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        while len(sources) < count:
            rows, columns = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
            for _ in range((self.vertices - 1).bit_length()):
                quarters = random.choice(4, size=count, p=self.shares)
                rows, columns = rows * 2 + quarters // 2, columns * 2 + quarters % 2
            exist = (rows < self.vertices) & (columns < self.vertices)
            sources, targets = np.append(sources, rows[exist]), np.append(targets, columns[exist])
        return sources[:count], targets[:count]
