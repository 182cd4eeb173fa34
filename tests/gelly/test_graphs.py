"""Iterations written by users against the library, and arguments that are refused."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.dataset import ExecutionEnvironment
from penstock.errors import InvalidArgument, JobFailed, NothingToExecute, ProgramError, TypeMismatch, UnsupportedKey
from penstock.gelly import Edge, EdgeDirection, Graph, Vertex
from penstock.gelly.generators import CirculantGraph, EchoGraph, GridGraph, RMatGraph, StarGraph
from penstock.gelly.gsa import ApplyFunction
from penstock.gelly.library import ConnectedComponents, SingleSourceShortestPaths
from penstock.gelly.library.linkanalysis import PageRank
from penstock.gelly.library.metric.directed import VertexMetrics
from penstock.gelly.pregel import ComputeFunction, MessageCombiner, VertexCentricConfiguration
from penstock.gelly.spargel import GatherFunction, ScatterFunction, ScatterGatherConfiguration
from penstock.testing import in_process

FAR = 1e300
EDGES = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(1, 9).map(float)), min_size=1, max_size=25)


@pytest.fixture(autouse=True)
def without_spark():
    with in_process():
        yield


def environment(parallelism=2):
    return ExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


class Distance(ComputeFunction):
    def compute(self, vertex, messages):
        start = 0.0 if vertex.get_id() == 0 else FAR
        least = min([start, *messages])
        if least < vertex.get_value():
            self.set_new_vertex_value(least)
            for edge in self.get_edges():
                self.send_message_to(edge.get_target(), least + edge.get_value())


class Least(MessageCombiner):
    def combine_messages(self, messages):
        self.send_combined_message(min(messages))


class SendDistance(ScatterFunction):
    def send_messages(self, vertex):
        if vertex.get_value() < FAR:
            for edge in self.get_edges():
                self.send_message_to(edge.get_target(), vertex.get_value() + edge.get_value())


class TakeLeast(GatherFunction):
    def update_vertex(self, vertex, messages):
        least = min(messages)
        if least < vertex.get_value():
            self.set_new_vertex_value(least)


class ApplyLeast(ApplyFunction):
    def apply(self, new_value, current_value):
        if new_value < current_value:
            self.set_result(new_value)


@settings(max_examples=15, deadline=None)
@given(EDGES, st.integers(1, 3), st.sampled_from([None, 1, 4]))
def test_all_models_find_the_same_distances(edges, tasks, parts):
    graph = Graph.from_collection([Edge(*edge) for edge in edges], lambda vertex_id: FAR, environment(tasks))
    at_start = graph.map_vertices(lambda vertex: 0.0 if vertex[0] == 0 else FAR)
    found = dict(graph.run(SingleSourceShortestPaths(0, 50)).collect())
    expected = {key: min(value, FAR) for key, value in found.items()}
    settings = VertexCentricConfiguration()
    if parts is not None:
        settings.set_parallelism(parts)
    for combiner in (None, Least()):
        centric = graph.run_vertex_centric_iteration(Distance(), combiner, 50, settings)
        assert dict(centric.get_vertices().collect()) == expected
    scattered = at_start.run_scatter_gather_iteration(SendDistance(), TakeLeast(), 50)
    assert dict(scattered.get_vertices().collect()) == expected
    gathered = at_start.run_gather_sum_apply_iteration(lambda pair: pair[0] + pair[1], min, ApplyLeast(), 50)
    assert dict(gathered.get_vertices().collect()) == expected


@settings(max_examples=15, deadline=None)
@given(EDGES, st.integers(1, 3), st.sampled_from(EdgeDirection))
def test_neighborhoods(edges, tasks, direction):
    graph = Graph.from_collection([Edge(*edge) for edge in edges], lambda vertex_id: vertex_id * 10, environment(tasks))
    ends = [pair for source, target, _ in edges for pair in pairs_of(source, target, direction)]
    sums = Counter()
    for vertex, neighbor in ends:
        sums[vertex] += neighbor * 10
    found = graph.reduce_on_neighbors(lambda one, other: one + other, direction).collect()
    assert dict(found) == {vertex: sums[vertex] for vertex, _ in ends}
    counts = graph.group_reduce_on_edges(lambda vertex, edges: [(vertex.id, len(list(edges)))], direction).collect()
    numbers = Counter(vertex for vertex, _ in ends)
    assert dict(counts) == {end: numbers[end] for edge in edges for end in edge[:2]}


def pairs_of(source, target, direction):
    if direction is not EdgeDirection.IN:
        yield source, target
    if direction is not EdgeDirection.OUT:
        yield target, source


@settings(max_examples=10, deadline=None)
@given(st.integers(2, 200), st.integers(1, 400), st.integers(1, 3))
def test_random_graphs_do_not_depend_on_the_number_of_tasks(vertices, edges, tasks):
    made = RMatGraph(environment(tasks), vertices, edges, 7).generate().get_edges().collect()
    assert len(made) == edges and all(0 <= end < vertices for edge in made for end in edge[:2])
    assert Counter(made) == Counter(RMatGraph(environment(1), vertices, edges, 7).generate().get_edges().collect())


# --- what is refused ---
def line():
    return Graph.from_collection([Edge(1, 2, 1.0), Edge(2, 3, 1.0)], lambda vertex_id: vertex_id, environment())


def test_elements_that_are_no_graph():
    env = environment()
    with pytest.raises(UnsupportedKey, match="the source or the target of Edge"):
        Graph.from_collection([Edge(1, None, 2)], env)
    with pytest.raises(TypeMismatch, match=r"a vertex is a Vertex\(id, value\) or such a tuple, not 3"):
        Graph.from_collection([3], [Edge(1, 2, None)], env)
    with pytest.raises(InvalidArgument, match=r"from_collection takes \(vertices, edges, env\)"):
        Graph.from_collection([Edge(1, 2, None)])
    with pytest.raises(JobFailed, match="an edge is an Edge"):
        Graph.from_dataset(env.from_elements((1, 2)), env).get_edges().collect()


def test_arguments_of_methods():
    graph = line()
    with pytest.raises(InvalidArgument, match=r"map_vertices takes a function, or an object with a method map\(\)"):
        graph.map_vertices(3)
    with pytest.raises(InvalidArgument, match="reduce_on_edges: direction must be a EdgeDirection"):
        graph.reduce_on_edges(min, "IN")
    with pytest.raises(InvalidArgument, match="takes a function of one or two arguments"):
        graph.group_reduce_on_edges(lambda: [1], EdgeDirection.IN)
    with pytest.raises(InvalidArgument, match="add_vertices takes a list of Vertex objects"):
        graph.add_vertices(Vertex(1, 2))
    with pytest.raises(InvalidArgument, match="run: algorithm must be a GraphAlgorithm"):
        graph.run(PageRank)
    with pytest.raises(InvalidArgument, match="takes an object of Distance, and not the class"):
        graph.run_vertex_centric_iteration(Distance, None, 3)
    with pytest.raises(ValueError, match="max_iterations must be a whole number of at least 1, not 0"):
        graph.run_vertex_centric_iteration(Distance(), None, 0)
    with pytest.raises(InvalidArgument, match="configuration must be a VertexCentricConfiguration"):
        graph.run_vertex_centric_iteration(Distance(), None, 3, ScatterGatherConfiguration())


def test_arguments_of_algorithms():
    env = environment()
    with pytest.raises(InvalidArgument, match=r"the damping factor must be between 0 and 1, not 1\.5"):
        PageRank(1.5, 10)
    with pytest.raises(InvalidArgument, match="the number of iterations must be a whole number of at least 1, not 0"):
        ConnectedComponents(0)
    with pytest.raises(InvalidArgument, match="must be even"):
        EchoGraph(env, 4, 2)
    with pytest.raises(InvalidArgument, match="distances go up to 4"):
        CirculantGraph(env, 5).add_range(3, 3)
    with pytest.raises(ProgramError, match="GridGraph has no dimension yet"):
        GridGraph(env).generate()
    with pytest.raises(InvalidArgument, match="of at least 2, not 1"):
        StarGraph(env, 1)
    with pytest.raises(NothingToExecute, match=r"call graph\.run\(analytic\)"):
        VertexMetrics().execute()


def test_vertices_that_are_not_there():
    env = environment()
    graph = Graph.from_collection([Vertex(1, 1.0)], [Edge(1, 9, 1.0)], env)
    with pytest.raises(JobFailed, match="a vertex that is not in the graph"):
        graph.in_degrees().collect()
    with pytest.raises(JobFailed, match="a message goes to the vertex 9, which is not in the graph"):
        graph.run_scatter_gather_iteration(SendDistance(), TakeLeast(), 3).get_vertices().collect()
    with pytest.raises(JobFailed, match="an edge begins or ends at the vertex 9, which is not in the graph"):
        graph.run(ConnectedComponents(3)).collect()
    assert graph.get_triplets().collect() == []


def test_values_that_do_not_fit():
    graph = Graph.from_collection([Edge(1, 2, "far")], environment())
    with pytest.raises(JobFailed, match="needs numbers as values of edges, and there is 'far'"):
        graph.run(SingleSourceShortestPaths(1, 3)).collect()


class AsksTwice(ScatterFunction):
    def send_messages(self, vertex):
        self.get_edges()
        self.send_message_to_all_neighbors(1)


class SetsTwice(GatherFunction):
    def update_vertex(self, vertex, messages):
        self.set_new_vertex_value(1)
        self.set_new_vertex_value(2)


class SendsOne(ScatterFunction):
    def send_messages(self, vertex):
        self.send_message_to_all_neighbors(1)


def test_functions_that_break_the_rules():
    graph = line()
    with pytest.raises(JobFailed, match=r"call either get_edges\(\) or send_message_to_all_neighbors\(\)"):
        graph.run_scatter_gather_iteration(AsksTwice(), TakeLeast(), 3).get_vertices().collect()
    with pytest.raises(JobFailed, match="set_new_vertex_value must be called at most once"):
        graph.run_scatter_gather_iteration(SendsOne(), SetsTwice(), 3).get_vertices().collect()


# --- pictures ---
def test_a_picture_has_all_vertices_and_edges():
    matplotlib = pytest.importorskip("matplotlib", reason="part of penstock[plot]")
    matplotlib.use("Agg")
    axes = line().get_undirected().plot(with_values=True)
    labels = [text.get_text() for text in axes.texts]
    assert sorted(filter(None, labels)) == ["1: 1", "2: 2", "3: 3"]
    assert labels.count("") == 2  # one line for each pair of vertices
    matplotlib.pyplot.close(axes.figure)
    with pytest.raises(ProgramError, match="plot draws at most 500 vertices, and the graph has 600"):
        StarGraph(environment(), 600).generate().plot()
