"""Settings of algorithms: setters return the algorithm, so that calls can be chained."""

from __future__ import annotations

from typing import Any, Self

from penstock.dataset.plan.checks import check_type


class IncludesZeroDegrees:
    """The setting that adds vertices without edges to the results."""

    include_zero_degree_vertices = False

    def set_include_zero_degree_vertices(self, include: bool) -> Self:
        """Say whether vertices without edges are in the results."""
        check_type("set_include_zero_degree_vertices", "include", include, bool)
        self.include_zero_degree_vertices = include
        return self


class MirrorsResults:
    """The setting that adds each result for a pair a second time, the other way round."""

    mirror_results = False

    def set_mirror_results(self, mirror: bool) -> Self:
        """Say whether each pair comes in both orders."""
        check_type("set_mirror_results", "mirror", mirror, bool)
        self.mirror_results = mirror
        return self


class ReducesOnTarget:
    """The setting by which degrees are counted at the targets of edges. In an undirected graph nothing changes."""

    reduce_on_target_id = False

    def set_reduce_on_target_id(self, reduce_on_target: bool) -> Self:
        """Say whether edges are counted at their targets instead of their sources."""
        check_type("set_reduce_on_target_id", "reduce_on_target", reduce_on_target, bool)
        self.reduce_on_target_id = reduce_on_target
        return self

    @property
    def end(self) -> int:
        """Position of the id, within an edge, at which it is counted."""
        return int(self.reduce_on_target_id)


def in_order(first: Any, second: Any) -> bool:
    """Return True if the first id is the lesser one."""
    return bool(first < second)
