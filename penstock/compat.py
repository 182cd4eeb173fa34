"""Runs unchanged PyFlink programs: after `install()`, `import pyflink…` resolves to Penstock's modules."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType


class PyFlinkFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `pyflink.x.y` as `penstock.x.y`, as the very same module object."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "pyflink" and not fullname.startswith("pyflink."):
            return None
        try:
            found = importlib.util.find_spec(_own_name(fullname))
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise ModuleNotFoundError(f"Penstock has no module of PyFlink's name '{fullname}'", name=fullname)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return importlib.import_module(_own_name(spec.name))

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module was executed when it was imported under its own name."""
        own = importlib.util.find_spec(module.__name__)
        if own is not None:
            # The import system has just put the alias's spec on the shared module; give it its own back.
            module.__spec__ = own


def _own_name(fullname: str) -> str:
    return "penstock" + fullname.removeprefix("pyflink")


def install() -> None:
    """Let `import pyflink` find Penstock in this process, unless that has been done already.

    Jobs that are submitted from now on carry it into their slots.
    """
    if not is_installed():
        sys.meta_path.insert(0, PyFlinkFinder())


def is_installed() -> bool:
    """Return True if `import pyflink` finds Penstock in this process."""
    return any(isinstance(finder, PyFlinkFinder) for finder in sys.meta_path)


def uninstall() -> None:
    """Undo `install`."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, PyFlinkFinder)]
    for name in [name for name in sys.modules if name == "pyflink" or name.startswith("pyflink.")]:
        del sys.modules[name]
