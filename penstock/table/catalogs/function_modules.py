"""Modules: the origins of functions that belong to no catalog. The functions of SQL are the module core."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.base.arguments import check_arguments
from penstock.errors import ValidationException

__all__ = ["Module", "ModuleEntry", "Modules"]

CORE = "core"


class Module:
    """A set of functions. A subclass offers its own, which are called by name like functions of SQL."""

    def list_functions(self) -> list[str]:
        """Return the names of the functions; of the core module none, as all SQL has them."""
        return []

    def get_function(self, name: str) -> Any:
        """Return what `udf`, `udtf`, `udaf` or `udtaf` made; None if there is no function with this name."""
        return None

    @staticmethod
    def core() -> Module:
        """Return the module with the functions of SQL."""
        return _CORE


_CORE = Module()


@check_arguments
@dataclass(frozen=True)
class ModuleEntry:
    """A module's name, and whether it is used."""

    _name: str
    _used: bool

    def name(self) -> str:
        """Return the name of the module."""
        return self._name

    def used(self) -> bool:
        """Return True if functions are searched in the module."""
        return self._used


class Modules:
    """The modules of an environment, in use or not."""

    def __init__(self) -> None:
        self._loaded: dict[str, Module] = {CORE: _CORE}
        self._used: list[str] = [CORE]

    def names(self) -> list[str]:
        """Return the names of the modules in use, in their order."""
        return list(self._used)

    def entries(self) -> list[ModuleEntry]:
        """Return all loaded modules, those in use first."""
        others = [name for name in self._loaded if name not in self._used]
        return [*(ModuleEntry(name, True) for name in self._used), *(ModuleEntry(name, False) for name in others)]

    def has_core(self) -> bool:
        """Return True if the functions of SQL can be called."""
        return any(self._loaded[name] is _CORE for name in self._used)

    def function(self, name: str, core: Callable[[], Container[str]]) -> Any:
        """Return a function of the first module in use that has it; None if that is the core module, or none is.

        `core` returns the names of the functions of the core module.
        """
        if self._used == [CORE]:
            return None
        for used in self._used:
            module = self._loaded[used]
            if module is _CORE and name.lower() in core():
                return None
            found = module.get_function(name)
            if found is not None:
                return found
        return None

    def functions(self) -> set[str]:
        """Return the names of functions of all modules in use, but for the core module."""
        return {name for used in self._used for name in self._loaded[used].list_functions()}

    def load(self, name: str, module: Module) -> None:
        """Load a module and use it as the last one."""
        if not isinstance(module, Module):
            raise TypeError(f"load_module: module {name} is a Module, not {module!r}")
        if name in self._loaded:
            raise ValidationException(f"A module with name '{name}' already exists")
        self._loaded[name] = module
        self._used.append(name)

    def unload(self, name: str) -> None:
        """Forget a module."""
        self._check(name)
        del self._loaded[name]
        self._used = [one for one in self._used if one != name]

    def use(self, names: Sequence[str]) -> None:
        """Use only these modules, in this order."""
        for name in names:
            self._check(name)
            if names.count(name) > 1:
                raise ValidationException(f"Module '{name}' appears more than once")
        self._used = list(names)

    def _check(self, name: str) -> None:
        if name not in self._loaded:
            known = ", ".join(self._loaded)
            raise ValidationException(f"No module with name '{name}' exists; loaded are: {known}")
