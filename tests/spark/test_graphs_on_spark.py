"""Graph programs on real Spark."""

import os
from pathlib import Path
from typing import Any

import pytest

from penstock.common import RestartStrategies
from penstock.dataset import ExecutionEnvironment
from penstock.gelly import Edge, EdgeDirection, Graph
from penstock.gelly.generators import CompleteGraph, GridGraph
from penstock.gelly.library import ConnectedComponents, SingleSourceShortestPaths
from penstock.gelly.library.clustering.undirected import TriadicCensus
from penstock.gelly.library.linkanalysis import PageRank
from penstock.gelly.pregel import ComputeFunction
from tests.spark.once import Once

pytestmark = pytest.mark.spark


def die(_: Any) -> None:
    os._exit(1)


@pytest.fixture
def env() -> ExecutionEnvironment:
    return ExecutionEnvironment.get_execution_environment().set_parallelism(2)


def test_transformations_and_neighborhoods(env: ExecutionEnvironment) -> None:
    edges = [Edge(f"n{number}", f"n{number + 1}", float(number)) for number in range(100)]
    graph = Graph.from_collection(edges, len, env)
    assert graph.number_of_vertices() == 101
    sums = graph.get_undirected().reduce_on_edges(lambda one, other: one + other, EdgeDirection.OUT)
    assert dict(sums.collect())["n50"] == 99.0
    assert len(graph.filter_on_vertices(lambda vertex: vertex.id != "n50").get_triplets().collect()) == 98


def test_algorithms(env: ExecutionEnvironment) -> None:
    grid = GridGraph(env).add_dimension(8, False).add_dimension(9, False).generate()
    values = grid.map_vertices(lambda vertex: vertex.id).map_edges(lambda edge: 1.0)
    assert set(values.run(ConnectedComponents(40)).collect()) == {(number, 0) for number in range(72)}
    distances = dict(values.run(SingleSourceShortestPaths(0, 40)).collect())
    assert distances == {number: float(number // 9 + number % 9) for number in range(72)}
    assert sum(result.get_page_rank_score() for result in values.run(PageRank(0.85, 20)).collect()) == pytest.approx(1)
    assert CompleteGraph(env, 9).generate().run(TriadicCensus()).execute().get_count30() == 84


class Greatest(ComputeFunction):
    """Learns the greatest value, and kills its process for once."""

    def __init__(self, once: Once) -> None:
        self.once = once

    def compute(self, vertex: Any, messages: Any) -> None:
        self.once.map(self.get_superstep_number())
        greatest = max([vertex.get_value(), *messages])
        if self.get_superstep_number() == 1 or greatest > vertex.get_value():
            self.set_new_vertex_value(greatest)
            self.send_message_to_all_neighbors(greatest)


def test_an_iteration_whose_slot_dies_begins_anew(env: ExecutionEnvironment, tmp_path: Path) -> None:
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 0))
    edges = [Edge(number, number + 1, None) for number in range(10)]
    graph = Graph.from_collection(edges, lambda vertex_id: vertex_id, env).get_undirected()
    compute = Greatest(Once(4, tmp_path / "died", die))
    found = graph.run_vertex_centric_iteration(compute, None, 50).get_vertices().collect()
    assert dict(found) == dict.fromkeys(range(11), 10)
    assert (tmp_path / "died").exists()
