"""Editors complete names after every call: the type of what public methods and properties give is known."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from tests.surface.public import public
from tests.typing.checkers import reveal_types
from tests.typing.test_types import installed

FLUENT = re.compile(
    r"penstock\.(datastream\.(data_stream|async_|stream_ex|builders)|dataset\.|cep\.|common\.(job|watermark_strategy)"
    r"|api\.functions\.contexts|api\.windows\.windows"
    r"|table\.(api|environments|expression\.expression|display|catalogs\.table_d))|Builder$|\.Types$|\.DataTypes$"
)
"""Classes whose calls follow one another in programs: streams, tables, windows, patterns, and builders."""
OPAQUE = {
    r"\.CloseableIterator\.next$|\.Pattern(Select|Timeout)Function\.|\.RichPatternSelectFunction\.": (
        "of the type of a parameter, which is not given here"
    ),
    r"\.get_accumulator_result$": "any value that a function has added up",
    r"\.get_window_serializer$": "given for the constructors of Java's classes",
    r"ClusterBuilder\.build_cluster$": "a cluster of Cassandra's driver, of which Penstock does not import the types",
    r"Table\.to_spark$": "a DataFrame of Spark, of which Penstock does not import the types",
}
"""Members that give `Any`, and why."""
ANY = re.compile(r"(?:-> |\A)(Any|Unknown)(\]?\Z|, \()")


def members() -> list[tuple[type, str]]:
    """The public methods and properties of the fluent classes, also those that they inherit."""
    found = []
    for owner in public()[0]:
        if not FLUENT.search(f"{owner.__module__}.{owner.__qualname__}"):
            continue
        for name in sorted({name for base in owner.__mro__ for name in vars(base)}):
            home = next(base for base in owner.__mro__ if name in vars(base))
            member = inspect.getattr_static(owner, name)
            if name.startswith("_") or not home.__module__.startswith("penstock"):
                continue
            if inspect.isfunction(getattr(member, "__func__", member)) or isinstance(member, property):
                found.append((owner, name))
    return found


def test_the_type_of_what_every_public_method_gives_is_known(tmp_path: Path) -> None:
    owners = list(dict.fromkeys(owner for owner, _ in members()))
    imports = [f"import {module}" for module in sorted({owner.__module__ for owner in owners})]
    lines = [*imports]
    places = {}
    for owner, name in members():
        lines.append(f"def _{len(lines)}(x: {owner.__module__}.{owner.__qualname__}) -> None: reveal_type(x.{name})")
        places[len(lines)] = f"{owner.__module__}.{owner.__qualname__}.{name}"
    program = tmp_path / "program.py"
    program.write_text("\n".join(lines))
    said = installed(reveal_types, program)
    assert len(places) > 800
    unknown = {
        place: said.get(line, "nothing")
        for line, place in places.items()
        if line not in said or ANY.search(said[line].partition(" is ")[2].strip('"'))
    }
    assert not {place: text for place, text in unknown.items() if not any(re.search(one, place) for one in OPAQUE)}
    assert not [one for one in OPAQUE if not any(re.search(one, place) for place in unknown)]
