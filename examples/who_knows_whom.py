"""Who knows whom: groups of people, the best-known ones, and friends of friends, from a list of acquaintances."""

from penstock.dataset import ExecutionEnvironment
from penstock.gelly import Edge, Graph
from penstock.gelly.asm.simple.undirected import Simplify
from penstock.gelly.library import ConnectedComponents
from penstock.gelly.library.clustering.undirected import TriangleListing
from penstock.gelly.library.linkanalysis import PageRank
from penstock.gelly.library.similarity import JaccardIndex

ACQUAINTANCES = [
    *(("Ann", "Bob"), ("Bob", "Cleo"), ("Cleo", "Ann"), ("Cleo", "Dan"), ("Dan", "Eve"), ("Eve", "Fay")),
    *(("Fay", "Dan"), ("Gil", "Hal"), ("Hal", "Ida")),
]


def main() -> None:
    env = ExecutionEnvironment.get_execution_environment().set_parallelism(2)
    pairs = env.from_collection([Edge(one, other, None) for one, other in ACQUAINTANCES])
    # The value of a person is the name, so that a group is called after its first member.
    people = Graph.from_dataset(pairs, lambda name: name, env).run(Simplify(False))

    groups: dict[str, list[str]] = {}
    for name, first in people.run(ConnectedComponents(10)).collect():
        groups.setdefault(first, []).append(name)
    for first in sorted(groups):
        print(f"{first}'s group: {', '.join(sorted(groups[first]))}")

    ranks = sorted(people.run(PageRank(0.85, 30)).collect(), key=lambda result: -result.get_page_rank_score())
    print("best known:", ", ".join(f"{rank.get_vertex_id0()} {rank.get_page_rank_score():.3f}" for rank in ranks[:2]))

    circles = people.run(TriangleListing().set_sort_triangle_vertices(True)).collect()
    print("all know each other:", "; ".join(" ".join(circle) for circle in sorted(circles)))

    known = set(people.get_edge_ids().collect())
    similar = people.run(JaccardIndex().set_minimum_score(1, 2)).collect()
    meet = sorted((one, other) for one, other, *_ in similar if (one, other) not in known)
    print("should meet:", "; ".join(f"{one} and {other}" for one, other in meet))


if __name__ == "__main__":
    main()
