"""The API reference has every public name."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import pytest

from penstock.datastream import connectors, formats

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PUBLIC = [
    "penstock.cep",
    "penstock.common",
    "penstock.dataset",
    "penstock.dataset.accumulators",
    "penstock.dataset.aggregators",
    "penstock.dataset.functions",
    "penstock.datastream",
    "penstock.errors",
    "penstock.gelly",
    *(
        f"penstock.gelly.{name}"
        for name in ("bipartite", "generators", "gsa", "library", "pregel", "spargel", "validation")
    ),
    *(f"penstock.gelly.library.{name}" for name in ("linkanalysis", "similarity")),
    *(
        f"penstock.gelly.library.{name}.{kind}"
        for name in ("clustering", "metric")
        for kind in ("directed", "undirected")
    ),
    *(f"penstock.gelly.asm.degree.annotate.{kind}" for kind in ("directed", "undirected")),
    *(f"penstock.gelly.asm.simple.{kind}" for kind in ("directed", "undirected")),
    "penstock.gelly.asm.degree.filter.undirected",
    "penstock.metrics",
    "penstock.queryable",
    "penstock.reporters",
    "penstock.state",
    "penstock.storage",
    "penstock.table",
    "penstock.testing",
    *(f"penstock.datastream.{name}" for name in ("functions", "state", "window")),
    *(f"penstock.datastream.formats.{module.name}" for module in iter_modules(formats.__path__)),
    *(f"penstock.datastream.connectors.{module.name}" for module in iter_modules(connectors.__path__)),
]
ELSEWHERE = {
    "penstock.datastream.connectors.dynamic_kafka": "PyFlink's names without an implementation: their use says so",
    "penstock.datastream.connectors.hybrid_source": "PyFlink's names without an implementation: their use says so",
    "penstock.datastream.connectors.kinesis": "PyFlink's names without an implementation: their use says so",
    "penstock.datastream.connectors.pulsar": "PyFlink's names without an implementation: their use says so",
}


def names(module: ModuleType) -> set[str]:
    """The public names of a module."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return set(listed)
    return {name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__}


def documented() -> list[object]:
    """All objects that some page of the reference shows."""
    modules = [
        import_module(name)
        for page in sorted(REFERENCE.glob("*.md"))
        for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)
    ]
    return [getattr(module, name) for module in modules for name in names(module)]


SHOWN = documented()


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in ELSEWHERE])
def test_every_public_name_is_on_a_page(name: str) -> None:
    module = import_module(name)
    missing = [
        one
        for one in sorted(names(module))
        if isinstance(getattr(module, one), type) or callable(getattr(module, one))
        if not any(getattr(module, one) is shown for shown in SHOWN)
    ]
    assert missing == []
