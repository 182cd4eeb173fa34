"""Names of a module that are imported from other modules when they are first used (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from importlib import import_module
from typing import Any

from penstock.base.libraries import explain_missing


def lazy_names(
    module: str, names_by_origin: Mapping[str, str], needs: tuple[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make `__getattr__` and `__dir__` for a module.

    The table has names by the module that they come from, such as `{".window": "TimeWindow CountWindow"}`. A submodule,
    written with a dot in front, can itself be had as an attribute. `needs` is who needs libraries that may be missing,
    and the extra that installs them.
    """
    origins = {name: origin for origin, names in names_by_origin.items() for name in names.split()}
    submodules = {origin[1:] for origin in names_by_origin if origin.startswith(".")}

    def find(name: str) -> Any:
        if name in submodules:
            return import_module(f".{name}", module)
        if name not in origins:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        with explain_missing(*needs) if needs is not None else nullcontext():
            value = getattr(import_module(origins[name], module), name)
        setattr(sys.modules[module], name, value)  # the next access finds the name in the module
        return value

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[module]), *origins, *submodules})

    return find, list_names
