"""The public classes and functions of streams, tables, patterns, connectors and formats, with their arguments."""

from __future__ import annotations

import inspect
import json
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).parent
SURFACES = ["pyflink-surface.json", "pyflink-table-surface.json"]
PACKAGES = ["penstock.common", "penstock.datastream", "penstock.cep", "penstock.table"]
FACADES = ["penstock.datastream"]
"""Packages all of whose modules are public."""


FITTING: dict[str, Any] = {"str": "name", "int": 1, "Key": 0, "TypeInformation | Key | None": 0, "Any": 0}
"""For annotations of required arguments that come before variable ones."""


@dataclass(frozen=True)
class Argument:
    """One argument of a public function or method."""

    owner: type | None
    """The class that defines the method."""
    member: Any
    """The method as the class holds it, or the function."""
    parameter: inspect.Parameter

    @property
    def function(self) -> Any:
        return getattr(self.member, "__func__", self.member)

    @property
    def annotation(self) -> str:
        return str(self.parameter.annotation)

    @property
    def method(self) -> str:
        """The full name of what is called."""
        if self.owner is None:
            return f"{self.function.__module__}.{self.function.__name__}"
        name = self.function.__name__
        return f"{self.owner.__module__}.{self.owner.__qualname__}{'' if name == '__init__' else '.' + name}"

    def _before(self) -> Iterator[Any]:
        """The defaults of the arguments before this one, which are never refused; None where there is none."""
        parameters = list(inspect.signature(self.function).parameters.values())
        for one in parameters[self.owner is not None and not isinstance(self.member, staticmethod) :]:
            if one.name == self.parameter.name:
                return
            yield FITTING.get(str(one.annotation), one.default)

    def __str__(self) -> str:
        return f"{self.method}({self.parameter.name})"

    def call(self, value: Any) -> Any:
        """Call with this argument alone; whoever checks it does so before others are missed."""
        receiver = () if self.owner is None or isinstance(self.member, staticmethod) else (object(),)
        if self.parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            return self.function(*receiver, *self._before(), value)
        name = "unknown" if self.parameter.kind is inspect.Parameter.VAR_KEYWORD else self.parameter.name
        return self.function(*receiver, **{name: value})


def modules() -> Iterator[ModuleType]:
    """Import the modules that PyFlink has, too, and those of the public packages."""
    names = {*PACKAGES}
    for surface in SURFACES:
        names.update(name.replace("pyflink", "penstock", 1) for name in json.loads((HERE / surface).read_text()))
    for package in map(import_module, FACADES):
        names.update(found.name for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."))
    for name in sorted(names):
        try:
            yield import_module(name)
        except ModuleNotFoundError as error:
            assert error.name == name, error  # PyFlink has the module and Penstock has not


def public() -> tuple[list[type], list[Any]]:
    """Return the public classes, with those that are defined in them, and the public functions."""
    classes: dict[type, None] = {}
    functions: dict[Any, None] = {}
    for module in modules():
        for name in getattr(module, "__all__", ()):
            found = getattr(module, name, None)
            if not str(getattr(found, "__module__", "")).startswith("penstock"):
                continue
            if isinstance(found, type):
                classes.update(dict.fromkeys(with_inner(found)))
            elif inspect.isfunction(found):
                functions[found] = None
    return list(classes), list(functions)


def with_inner(owner: type) -> Iterator[type]:
    yield owner
    for name, inner in vars(owner).items():
        if isinstance(inner, type) and not name.startswith("_") and inner.__qualname__.startswith(owner.__qualname__):
            yield from with_inner(inner)


def arguments_of(owner: type) -> Iterator[Argument]:
    """Yield the arguments of the constructor and of the public methods, also of those that a class inherits."""
    for name in sorted({name for base in owner.__mro__ for name in vars(base)}):
        if name.startswith("_") and name != "__init__":
            continue
        home = next(base for base in owner.__mro__ if name in vars(base))
        member = vars(home)[name]
        function = getattr(member, "__func__", member)
        if not inspect.isfunction(function) or not home.__module__.startswith("penstock"):
            continue
        parameters = list(inspect.signature(function).parameters.values())
        for parameter in parameters if isinstance(member, staticmethod) else parameters[1:]:
            yield Argument(home, member, parameter)


def arguments() -> list[Argument]:
    """All arguments of the public classes and functions, each once."""
    classes, functions = public()
    found = [argument for owner in classes for argument in arguments_of(owner)]
    for function in functions:
        found += [Argument(None, function, one) for one in inspect.signature(function).parameters.values()]
    return list({str(argument): argument for argument in found}.values())
