"""The library of algorithms against networkx and plain Python, with ids of several types and several tasks."""

from collections import Counter, defaultdict
from itertools import combinations
from math import isclose, isnan

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.dataset import ExecutionEnvironment
from penstock.gelly import Edge, Graph, Vertex
from penstock.gelly.asm.simple import undirected as simple
from penstock.gelly.library import ConnectedComponents, KCore, LabelPropagation, SingleSourceShortestPaths
from penstock.gelly.library.clustering import directed, undirected
from penstock.gelly.library.linkanalysis import HITS, PageRank
from penstock.gelly.library.similarity import JaccardIndex
from penstock.testing import in_process

NAMES = {
    "int": lambda number: number * 1000 - 3000,
    "str": lambda number: f"n{number}",
    "tuple": lambda number: (number % 2, f"{number}"),
    "large": lambda number: 2**70 + number,
    "mixed with floats": lambda number: number + 0.5 if number % 2 else number,
}
TASKS = st.integers(1, 3)
EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30)


@pytest.fixture(autouse=True)
def without_spark():
    with in_process():
        yield


@st.composite
def graphs(draw):
    """A graph with its edges between named vertices, 0 to 9, of which some may have no edge."""
    name = NAMES[draw(st.sampled_from(sorted(NAMES)))]
    edges = [(name(source), name(target), float(weight)) for source, target, weight in draw(EDGES)]
    env = ExecutionEnvironment.get_execution_environment().set_parallelism(draw(TASKS))
    vertices = [Vertex(name(number), name(number)) for number in range(10)]
    return Graph.from_collection(vertices, [Edge(*edge) for edge in edges], env), [v.id for v in vertices], edges


def simple_edges(edges):
    return sorted({(source, target) for source, target, _ in edges if source != target})


def same(found, expected):
    found, expected = dict(found), dict(expected)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert isclose(found[key], value, rel_tol=1e-6, abs_tol=1e-9), (key, found[key], value)


@settings(max_examples=15, deadline=None)
@given(graphs(), st.sampled_from([0.5, 0.85]))
def test_page_rank(made, damping):
    graph, ids, edges = made
    pairs = simple_edges(edges)
    plain = graph.with_data(edges=graph.get_edges().filter(lambda edge: edge[0] != edge[1]).distinct(0, 1))
    other = nx.DiGraph(pairs)
    other.add_nodes_from(ids)
    found = plain.run(PageRank(damping, 200, 1e-10).set_include_zero_degree_vertices(True)).collect()
    matrix, scores = nx.google_matrix(other, damping), np.full(len(ids), 1 / len(ids))
    for _ in range(200):
        scores = scores @ matrix
    same(found, dict(zip(other, scores.tolist(), strict=True)))
    assert {result.get_vertex_id0() for result in plain.run(PageRank(damping, 2)).collect()} == set(sum(pairs, ()))


@settings(max_examples=15, deadline=None)
@given(graphs())
def test_components_and_distances(made):
    graph, ids, edges = made
    other = nx.MultiDiGraph()
    other.add_nodes_from(ids)
    other.add_weighted_edges_from(edges)
    components = {member: min(part) for part in nx.weakly_connected_components(other) for member in part}
    assert dict(graph.run(ConnectedComponents(20)).collect()) == components
    distances = nx.single_source_dijkstra_path_length(other, ids[0])
    found = dict(graph.run(SingleSourceShortestPaths(ids[0], 20)).collect())
    assert {key: value for key, value in found.items() if value < 1e300} == distances
    assert found.keys() == set(ids)


@settings(max_examples=15, deadline=None)
@given(graphs())
def test_triangles(made):
    graph, ids, edges = made
    pairs = set(simple_edges(edges))
    both = graph.run(simple.Simplify(False))
    other = nx.Graph(pairs)
    other.add_nodes_from(ids)
    expected = sorted(
        tuple(sorted(three))
        for three in combinations(ids, 3)
        if all(other.has_edge(*two) for two in combinations(three, 2))
    )
    listing = undirected.TriangleListing().set_sort_triangle_vertices(True)
    assert sorted(map(tuple, both.run(listing).collect())) == expected
    scores = both.run(undirected.LocalClusteringCoefficient()).collect()
    counts = {result.get_vertex_id0(): result.get_triangle_count() for result in scores}
    assert counts == nx.triangles(other)
    assert all(isnan(r.get_local_clustering_coefficient_score()) == (r.get_degree() < 2) for r in scores)
    average = both.run(undirected.AverageClusteringCoefficient()).execute()
    assert isclose(average.get_average_clustering_coefficient(), nx.average_clustering(other), abs_tol=1e-12)
    permuted = both.run(undirected.TriangleListing().set_permute_results(True)).collect()
    assert Counter(tuple(sorted(three)) for three in permuted) == Counter(expected * 6) and len(set(permuted)) == len(
        permuted
    )


@settings(max_examples=10, deadline=None)
@given(graphs())
def test_triads_and_bitmasks(made):
    graph, _, edges = made
    pairs = set(simple_edges(edges))
    plain = graph.with_data(edges=graph.get_edges().filter(lambda edge: edge[0] != edge[1]).distinct(0, 1))
    census = plain.run(directed.TriadicCensus()).execute()
    for name, count in nx.triadic_census(nx.DiGraph(pairs)).items():
        assert getattr(census, f"get_count{name.lower()}")() == count, name
    for first, second, third, mask in plain.run(directed.TriangleListing().set_permute_results(True)).collect():
        bits = [
            bit
            for one, other in ((first, second), (first, third), (second, third))
            for bit in ((one, other), (other, one))
        ]
        assert f"{mask:06b}" == "".join("1" if pair in pairs else "0" for pair in bits)


@settings(max_examples=15, deadline=None)
@given(graphs(), st.integers(1, 4))
def test_labels(made, rounds):
    graph, ids, edges = made
    labels, active = {each: each for each in ids}, set(ids)
    for _ in range(rounds):
        received = defaultdict(Counter)
        for source, target, _ in edges:
            if source in active:
                received[target][labels[source]] += 1
        new = dict(labels)
        for vertex, counts in received.items():
            most = max(counts.values())
            choice = [label for label, count in counts.items() if count == most]
            new[vertex] = max([*choice, labels[vertex]] if most == 1 else choice)
        labels, active = new, set(received)
    assert dict(graph.run(LabelPropagation(rounds)).collect()) == labels


@settings(max_examples=10, deadline=None)
@given(graphs(), st.integers(1, 6))
def test_hubs_and_authorities(made, rounds):
    graph, _, edges = made
    ids = {end for edge in edges for end in edge[:2]}
    authorities = Counter(target for _, target, _ in edges)
    for _ in range(rounds):
        hubs, new = Counter(), Counter()
        for source, target, _ in edges:
            hubs[source] += authorities[target]
        for source, target, _ in edges:
            new[target] += hubs[source]
        hubs, authorities = (scaled(scores) for scores in (hubs, new))
    found = graph.run(HITS(rounds)).collect()
    same([(r[0], r[1]) for r in found], {each: hubs.get(each, 0.0) for each in ids})
    same([(r[0], r[2]) for r in found], {each: authorities.get(each, 0.0) for each in ids})


def scaled(scores):
    length = sum(score * score for score in scores.values()) ** 0.5
    return Counter({key: score / length for key, score in scores.items()})


@settings(max_examples=10, deadline=None)
@given(graphs())
def test_similarity(made):
    graph, _, edges = made
    other = nx.Graph(simple_edges(edges))
    found = graph.run(simple.Simplify(False)).run(JaccardIndex()).collect()
    expected = {}
    for one, two in combinations(sorted(other), 2):
        shared = len(set(other[one]) & set(other[two]))
        if shared:
            expected[one, two] = shared / len(set(other[one]) | set(other[two]))
    same([((r[0], r[1]), r.get_jaccard_index_score()) for r in found], expected)


@settings(max_examples=10, deadline=None)
@given(graphs(), st.integers(1, 4))
def test_cores(made, k):
    graph, ids, edges = made
    other = nx.Graph(simple_edges(edges))
    other.add_nodes_from(ids)
    kept = set(nx.k_core(other, k))
    core = graph.run(KCore(k))
    assert {vertex.id for vertex in core.get_vertices().collect()} == kept
    assert Counter(core.get_edges().collect()) == Counter(Edge(*e) for e in edges if {*e[:2]} <= kept)


@settings(max_examples=10, deadline=None)
@given(graphs())
def test_networkx_and_back(made):
    graph, ids, edges = made
    back = Graph.from_networkx(graph.to_networkx(), graph.get_context())
    assert Counter(back.get_edges().collect()) == Counter(Edge(*edge) for edge in edges)
    assert Counter(back.get_vertices().collect()) == Counter(Vertex(each, each) for each in ids)
