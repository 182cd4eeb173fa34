"""The parallelism of a job's vertices, in the form of Flink's resource requirements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.engine.job.job_record import JobRecord, VertexRecord

Json = dict[str, Any]


class Unfulfillable(Exception):
    """The job cannot meet the requirements. The text says why."""


def requirements(record: JobRecord) -> Json:
    """Return the bounds of every vertex. The upper bound is its present parallelism."""
    return {
        vertex.id: {"parallelism": {"lowerBound": 1, "upperBound": vertex.parallelism}} for vertex in record.vertices
    }


def find_parallelism(record: JobRecord, upper_bounds: Mapping[str, int]) -> int | None:
    """Return the job parallelism that gives the vertices these upper bounds, or None if nothing changes.

    All vertices to which the program gives no parallelism of their own have that of the job. They can only change
    together. Raise Unfulfillable for all other requirements.
    """
    _check_names(record, upper_bounds)
    changed = [vertex for vertex in record.vertices if upper_bounds[vertex.id] != vertex.parallelism]
    if not changed:
        return None
    _check_own(record, changed)
    wanted = {upper_bounds[vertex.id] for vertex in changed}
    if len(wanted) > 1:
        raise Unfulfillable(
            f"The vertices {_names(changed)} share the job's parallelism: request the same upper bound for all of "
            f"them, not {', '.join(map(str, sorted(wanted)))}."
        )
    (parallelism,) = wanted
    for vertex in changed:
        if parallelism > vertex.max_parallelism:
            raise Unfulfillable(
                f"The upper bound of {_names([vertex])} is {parallelism}, and its max parallelism is "
                f"{vertex.max_parallelism}."
            )
    return parallelism


def _check_names(record: JobRecord, upper_bounds: Mapping[str, int]) -> None:
    known = {vertex.id for vertex in record.vertices}
    unknown = [name for name in upper_bounds if name not in known]
    if unknown:
        raise Unfulfillable(f"Job vertex {unknown[0]} was not found in job {record.job_id}.")
    absent = [vertex for vertex in record.vertices if vertex.id not in upper_bounds]
    if absent:
        raise Unfulfillable(f"The request is incomplete: it has no requirements for {_names(absent)}.")


def _check_own(record: JobRecord, changed: list[VertexRecord]) -> None:
    """Raise Unfulfillable unless exactly the vertices with the job's parallelism change."""
    common = record.settings.parallelism
    own = [vertex for vertex in changed if vertex.parallelism != common]
    if own:
        raise Unfulfillable(
            f"The program gives {_names(own)} a parallelism of its own, which only the program can change."
        )
    left = [vertex for vertex in record.vertices if vertex.parallelism == common and vertex not in changed]
    if left:
        raise Unfulfillable(
            f"{_names(left)} has the job's parallelism of {common}, too, and changes together with {_names(changed)}."
        )


def _names(vertices: list[VertexRecord]) -> str:
    return ", ".join(f"'{vertex.name}' ({vertex.id})" for vertex in vertices)
