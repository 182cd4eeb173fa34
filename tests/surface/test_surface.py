"""Penstock offers PyFlink's public names, but for those that absent.json gives a reason for.

`pyflink-surface.json` records PyFlink: its modules, their classes, and of each class the members with their parameters
(`name=` has a default). Every name is looked up in the Penstock module of the same name. What is missing must be in
`absent.json` and nothing else may be, so the list can only shrink.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
SURFACE = json.loads((HERE / "pyflink-surface.json").read_text())
ABSENT = json.loads((HERE / "absent.json").read_text())
MODULES = [
    "pyflink.common",
    "pyflink.datastream",
    "pyflink.datastream.functions",
    "pyflink.datastream.state",
    "pyflink.datastream.data_stream",
    "pyflink.datastream.output_tag",
    "pyflink.datastream.window",
    "pyflink.common.serialization",
    "pyflink.datastream.connectors.base",
    "pyflink.datastream.connectors.cassandra",
    "pyflink.datastream.connectors.file_system",
    "pyflink.datastream.connectors.jdbc",
    "pyflink.datastream.connectors.kafka",
    "pyflink.datastream.connectors.number_seq",
    "pyflink.datastream.connectors.rabbitmq",
    "pyflink.datastream.formats.avro",
    "pyflink.datastream.formats.csv",
    "pyflink.datastream.formats.json",
    "pyflink.datastream.formats.parquet",
]
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
NOTHING = object()


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_here_or_its_absence_has_a_reason(module: str) -> None:
    unexplained = set(missing_in(module)) - set(ABSENT)
    assert not unexplained, "missing; implement them, or add to absent.json with a reason:\n" + as_json(unexplained)


@pytest.mark.parametrize("module", MODULES)
def test_nothing_is_called_absent_that_is_here(module: str) -> None:
    listed = {name for name in ABSENT if module_of(name) == module}
    outdated = listed - set(missing_in(module))
    assert not outdated, "present, or covered by the entry of their class; remove from absent.json:\n" + as_json(
        outdated
    )


def test_the_list_of_absences_names_only_what_pyflink_has() -> None:
    known = {name for module in MODULES for name in names_in(module)}
    assert not set(ABSENT) - known, "not in the surface; remove from absent.json:\n" + as_json(set(ABSENT) - known)


def test_every_absence_has_a_reason() -> None:
    assert all(isinstance(reason, str) and reason.strip() for reason in ABSENT.values())


def as_json(names: set[str]) -> str:
    return "\n".join(f"  {json.dumps(name)}: {json.dumps(ABSENT.get(name, ''))}," for name in sorted(names))


def module_of(dotted: str) -> str:
    return max((module for module in MODULES if dotted.startswith(module + ".")), key=len, default="")


def missing_in(module: str) -> Iterator[str]:
    """Yield what PyFlink's module has and Penstock's has not; of what is missing as a whole, only its own name."""
    try:
        ours = import_module(module.replace("pyflink", "penstock", 1))
    except ModuleNotFoundError:
        ours = None
    for name, entry in SURFACE[module].items():
        found = attribute_of(ours, name)
        if found is NOTHING:
            yield f"{module}.{name}"
        elif "members" not in entry and entry["kind"] != "function":
            continue
        elif entry["kind"] == "function":
            yield from missing_parameters(f"{module}.{name}", found, entry["parameters"])
        else:
            yield from missing_members(f"{module}.{name}", found, entry["members"])


def attribute_of(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name, NOTHING)
    except ModuleNotFoundError:  # a lazy name whose module is not written yet
        return NOTHING


def missing_members(dotted: str, ours: Any, members: dict[str, Any]) -> Iterator[str]:
    for name, theirs in members.items():
        if ignored_member(name):
            continue
        member = f"{dotted}.{name}"
        found = attribute_of(ours, name)
        if found is NOTHING:
            yield member
        elif isinstance(theirs, dict):
            yield from missing_members(member, found, theirs["class"])
        elif isinstance(theirs, list):
            # A class is called through __new__ or __init__; only its own signature tells which parameters it takes.
            yield from missing_parameters(member, ours if name == "__init__" else found, theirs)


def missing_parameters(dotted: str, ours: Any, theirs: list[str]) -> Iterator[str]:
    """Yield the parameters that a call written for PyFlink could not pass in the same way.

    They must come in the same order, have a default where PyFlink's has one, and be followed by optional ones alone.
    """
    if made_from_java(theirs):
        return
    wanted = relevant(theirs)
    try:
        parameters = list(inspect.signature(ours).parameters.values())
    except (TypeError, ValueError):
        yield from (f"{dotted}({name.strip('*=')})" for name in wanted)
        return
    parameters = [parameter for parameter in parameters if parameter.name not in ("self", "cls")]
    for position, name in enumerate(wanted):
        if position >= len(parameters) or not same_parameter(name, parameters[position]):
            yield f"{dotted}({name.strip('*=')})"
    for extra in parameters[len(wanted) :]:
        if extra.default is inspect.Parameter.empty and extra.kind not in VARIABLE:
            yield f"{dotted}({extra.name})"


def same_parameter(theirs: str, ours: inspect.Parameter) -> bool:
    if theirs.startswith("*"):
        return ours.kind in VARIABLE
    optional = ours.default is not inspect.Parameter.empty
    return ours.name == theirs.rstrip("=") and (optional or not theirs.endswith("="))


def relevant(parameters: list[str]) -> list[str]:
    """Drop what no Python program passes: the receiver and handles of Java objects.

    Where a handle could take their place, the others have defaults in PyFlink that no Python program relies on.
    """
    instead_of_java = any(name.startswith("j_") for name in parameters)
    kept = [name for name in parameters if name not in ("self", "cls") and not name.startswith("j_")]
    return [name.rstrip("=") for name in kept] if instead_of_java else kept


def made_from_java(parameters: list[str]) -> bool:
    """Tell whether it cannot be called without a Java object, so that no Python program does."""
    return any(name.startswith("j_") and not name.endswith("=") for name in parameters)


def ignored_member(name: str) -> bool:
    return name.startswith("get_java_")


def names_in(module: str) -> Iterator[str]:
    """Yield every dotted name that may stand in absent.json."""
    for name, entry in SURFACE[module].items():
        yield f"{module}.{name}"
        yield from (f"{module}.{name}({parameter.strip('*=')})" for parameter in entry.get("parameters", []))
        yield from member_names(f"{module}.{name}", entry.get("members", {}))


def member_names(dotted: str, members: dict[str, Any]) -> Iterator[str]:
    for name, theirs in members.items():
        yield f"{dotted}.{name}"
        if isinstance(theirs, dict):
            yield from member_names(f"{dotted}.{name}", theirs["class"])
        elif isinstance(theirs, list):
            yield from (f"{dotted}.{name}({parameter.strip('*=')})" for parameter in theirs)
