"""The conversion of a plan into a deployment: it pickles operators and partitionings, and names those that fail."""

from __future__ import annotations

import pickle
import sys
import types
from dataclasses import replace
from typing import Any

from penstock import compat
from penstock.base.main_classes import pickle_and_gather, pickle_classes, publish_classes
from penstock.base.pickling import dumps_by_value
from penstock.engine.messages.commands_and_reports import Deployment
from penstock.engine.state.key_groups import short_repr
from penstock.errors import NotSerializable
from penstock.graph.partitioning import ByKey, Custom, Partitioning
from penstock.graph.plan import Plan


def deployment_of(plan: Plan, job_id: str, **settings: Any) -> Deployment:
    """Return the deployment of a plan to its slots. The plan inside it holds no functions."""
    classes: dict[type, None] = {}
    operators = {node.id: pickle_part(node.operator, node.name, node.uid, classes) for node in plan.nodes}
    partitionings = {
        edge.id: pickle_part(edge.partitioning, f"the partitioning before {plan.nodes[edge.target].name}", "-", classes)
        for edge in plan.edges
    }
    addresses = publish_classes(classes)
    return Deployment(
        job_id=job_id,
        plan=_without_functions(plan),
        operators=operators,
        partitionings=partitionings,
        main_classes=addresses,
        class_definitions=pickle_classes(addresses),
        search_path=[folder for folder in sys.path if folder],
        pyflink=compat.is_installed(),
        **settings,
    )


def _without_functions(plan: Plan) -> Plan:
    nodes = [replace(node, operator=None) for node in plan.nodes]
    edges = [replace(edge, partitioning=_bare(edge.partitioning)) for edge in plan.edges]
    return Plan(nodes, edges, plan.batch, plan.job_name)


def _bare(partitioning: Partitioning) -> Partitioning:
    if isinstance(partitioning, ByKey):
        return ByKey(_gone)
    if isinstance(partitioning, Custom):
        return Custom(None, _gone)
    return partitioning


def _gone(_: Any) -> Any:
    raise RuntimeError("the plan in a slot holds no functions; they are in the deployment")


def pickle_part(value: Any, name: str, uid: str, classes: dict[type, None] | None = None) -> bytes:
    """Pickle an operator or partitioning. The error names it if that fails.

    `classes` gathers the classes of the main script.
    """
    try:
        return pickle_and_gather(value, {} if classes is None else classes)
    except Exception as error:
        culprit = find_culprit(value)
        where = f": it holds {culprit}" if culprit else ""
        raise NotSerializable(
            f"{name} (uid {uid}) cannot be sent to the slots{where} ({type(error).__name__}: {error}). "
            "Create such objects in the function's open() method instead of capturing them."
        ) from None


def find_culprit(value: Any, path: str = "", depth: int = 0, seen: set[int] | None = None) -> str:
    """Return the innermost captured object that cannot be pickled, as 'name (Type)', or an empty string."""
    seen = set() if seen is None else seen
    if id(value) in seen or depth > 6 or _picklable(value):
        return ""
    seen.add(id(value))
    for name, part in _parts(value):
        found = find_culprit(part, name, depth + 1, seen)
        if found:
            return found
    return f"'{path}' ({type(value).__name__}: {short_repr(value, 80)})" if path else ""


def _picklable(value: Any) -> bool:
    try:
        dumps_by_value(value)
    except Exception:
        return False
    return True


def _parts(value: Any) -> list[tuple[str, Any]]:
    """Return the named parts of an object: closure cells and globals of a function, attributes, items."""
    if isinstance(value, types.MethodType):
        return [("self", value.__self__), (value.__name__, value.__func__)]
    if isinstance(value, types.FunctionType):
        code = value.__code__
        cells = zip(code.co_freevars, value.__closure__ or (), strict=False)
        captured = [(name, _cell(cell)) for name, cell in cells]
        used = [(name, value.__globals__[name]) for name in code.co_names if name in value.__globals__]
        return captured + used
    if isinstance(value, dict):
        return [(str(key), item) for key, item in value.items()]
    if isinstance(value, (list, tuple, set)):
        return [(f"[{index}]", item) for index, item in enumerate(value)]
    if isinstance(value, type):
        return [(name, item) for name, item in vars(value).items() if isinstance(item, types.FunctionType)]
    own = list(getattr(value, "__dict__", {}).items())
    return own + ([(type(value).__name__, type(value))] if own or not isinstance(value, pickle.Pickler) else [])


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None
