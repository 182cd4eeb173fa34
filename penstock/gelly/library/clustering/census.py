"""The triads of a directed graph: three vertices, by the edges between them.

The name of a triad has three digits, for the numbers of its pairs of vertices with edges in both directions, in one,
and in none. A letter tells triads with equal digits apart: down, up, transitive or cyclic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import comb
from typing import Any

from penstock.gelly.columns.triangles import FORWARD, REVERSE, flip
from penstock.gelly.library.clustering.enumerating import total_pairs

BOTH = FORWARD + REVERSE
OPEN = {
    (FORWARD, FORWARD): "021d",
    (REVERSE, REVERSE): "021u",
    (FORWARD, REVERSE): "021c",
    (REVERSE, BOTH): "111d",
    (FORWARD, BOTH): "111u",
    (BOTH, BOTH): "201",
}
"""Names of the triads with two connected pairs, by the bits of the edges as the vertex in the middle sees them."""
NAMES = (
    *("003", "012", "102", "021d", "021u", "021c", "111d", "111u"),
    *("030t", "030c", "201", "120d", "120u", "120c", "210", "300"),
)


class TriadCounts:
    """The numbers of triads by name: get_count003() and so on."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.counts = {name: counts.get(name, 0) for name in NAMES}

    def __getattr__(self, name: str) -> Any:
        count = self.__dict__.get("counts", {}).get(name.removeprefix("get_count"))
        if count is None:
            raise AttributeError(f"there is no {name}; the counts are: {', '.join(NAMES)}")
        return lambda: count


def middle_pair(one: int, other: int) -> tuple[int, int]:
    """Return the bits of two edges of a vertex, in the order in which they are counted."""
    return (one, other) if (one, other) in OPEN else (other, one)


def triangle_name(one: int, two: int, three: int) -> str:
    """Return the name of a triangle, given the bits between first and second, first and third, second and third."""
    views = [(one, two), (flip(one), three), (flip(two), flip(three))]
    mutual = [one, two, three].count(BOTH)
    if mutual >= 2:
        return "300" if mutual == 3 else "210"
    if mutual == 1:
        (view,) = (view for view in views if BOTH not in view)
        return {"021d": "120d", "021u": "120u", "021c": "120c"}[OPEN[middle_pair(*view)]]
    return "030c" if all(set(view) == {FORWARD, REVERSE} for view in views) else "030t"


def count_triads(parts: list[Any]) -> TriadCounts:
    """Return the numbers of all triads, given what the parts have counted."""
    vertices = sum(part["vertices"] for part in parts)
    one_way = sum(part["one-way"] for part in parts)
    both_ways = sum(part["both ways"] for part in parts) // 2
    pairs, counts = total_pairs(parts), Counter[str]()
    for code in range(64):
        number = sum(part["triangles"][code] for part in parts)
        if not number:
            continue
        one, two, three = code >> 4, code >> 2 & 3, code & 3
        counts[triangle_name(one, two, three)] += number
        for view in ((one, two), (flip(one), three), (flip(two), flip(three))):
            pairs[middle_pair(*view)] -= number
    for kind, number in pairs.items():
        counts[OPEN[kind]] += number
    # A pair with edges is part of as many triads as there are other vertices.
    others = max(vertices - 2, 0)
    counts["102"] = both_ways * others - sum(int(name[0]) * number for name, number in counts.items())
    counts["012"] = one_way * others - sum(int(name[1]) * number for name, number in counts.items() if name != "102")
    counts["003"] = comb(vertices, 3) - sum(counts.values())
    return TriadCounts(counts)
