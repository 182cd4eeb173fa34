"""The check of a program's plan against a snapshot that it starts from."""

from __future__ import annotations

from penstock.engine.checkpoint.metadata import Metadata, fingerprint
from penstock.engine.state.snapshot_file import Kind
from penstock.errors import StateNotRestored
from penstock.graph.plan import Plan

_STATEFUL = {Kind.KEYED, Kind.TIMERS, Kind.LIST, Kind.UNION, Kind.BROADCAST}


def fit_plan(plan: Plan, metadata: Metadata, where: str, allow_non_restored: bool) -> None:
    """Check the plan of a program against a snapshot. Operators take over the max parallelism that it fixes."""
    by_uid = {node.uid: node for node in plan.nodes}
    if not allow_non_restored:
        _check_all_matched(metadata, set(by_uid), where)
    for uid, shape in metadata.shapes.items():
        node = by_uid.get(uid)
        if node is None or uid not in _uids_with_keyed_state(metadata):
            continue
        if node.max_parallelism != shape.max_parallelism and node.max_parallelism_given:
            raise StateNotRestored(
                f"{node.name} (uid {uid}): max parallelism is {node.max_parallelism}, but {where} was written "
                f"with {shape.max_parallelism}. It cannot change once state exists: set it to "
                f"{shape.max_parallelism}, or do not set it"
            )
        if node.parallelism > shape.max_parallelism:
            raise StateNotRestored(
                f"{node.name} (uid {uid}): parallelism {node.parallelism} is above the max parallelism "
                f"{shape.max_parallelism} with which {where} was written"
            )
        node.max_parallelism = shape.max_parallelism


def _check_all_matched(metadata: Metadata, uids: set[str], where: str) -> None:
    lost = sorted(_uids_with_state(metadata) - uids)
    if lost:
        names = ", ".join(f"{metadata.shapes[uid].name} (uid {uid})" for uid in lost)
        raise StateNotRestored(
            f"{where}, written by job '{metadata.job_name}', holds state of operators that the program does not have: "
            f"{names}. The program has the uids {', '.join(sorted(uids))}. Give the operators the same uids as "
            "before, or start with allow-non-restored-state (-n) to drop that state"
        )


def _uids_with_state(metadata: Metadata) -> set[str]:
    """Return the operators that would lose state: those with state of their own, and sources with a position."""
    with_state = {n.uid for slot in metadata.slots for n in slot.schemas if n.kind in _STATEFUL}
    return with_state | set(metadata.enumerators) | {uid for uid, shape in metadata.shapes.items() if shape.keeps}


def _uids_with_keyed_state(metadata: Metadata) -> set[str]:
    return {n.uid for slot in metadata.slots for n in slot.schemas if n.kind in (Kind.KEYED, Kind.TIMERS)}


def is_continued(plan: Plan, job_id: str, metadata: Metadata) -> bool:
    """Return True if the job that wrote a checkpoint continues with the same plan."""
    return not metadata.savepoint and metadata.job_id == job_id and metadata.fingerprint == fingerprint(plan)
