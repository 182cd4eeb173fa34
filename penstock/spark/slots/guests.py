"""Runs a program in one of Spark's Python workers, and afterwards restores the process to its state before."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from typing import Any

from penstock import compat


@contextmanager
def as_guest() -> Iterator[None]:
    """Undo a program's changes to this process after the block, because Spark reuses the process for other programs.

    Modules from the program's own folders are unloaded, so that another version of them can be imported. Installed
    packages stay loaded. The inner state of libraries, and threads that a function has left running, cannot be undone.
    """
    path, folder, environment = list(sys.path), os.getcwd(), dict(os.environ)
    modules, main = set(sys.modules), dict(vars(sys.modules["__main__"]))
    thresholds, pyflink = gc.get_threshold(), compat.is_installed()
    try:
        yield
    finally:
        own = [entry for entry in sys.path if entry and entry not in path]
        for name in set(sys.modules) - modules:
            if _lies_below(getattr(sys.modules[name], "__file__", None), own):
                del sys.modules[name]
        if not pyflink:
            compat.uninstall()
        sys.path[:] = path
        _restore(vars(sys.modules["__main__"]), main)
        _restore(os.environ, environment)
        gc.set_threshold(*thresholds)
        with suppress(OSError):
            os.chdir(folder)


def _lies_below(file: str | None, folders: list[str]) -> bool:
    return file is not None and any(os.path.abspath(file).startswith(os.path.abspath(f) + os.sep) for f in folders)


def _restore(mapping: MutableMapping[str, Any], before: dict[str, Any]) -> None:
    for name in set(mapping) - set(before):
        del mapping[name]
    mapping.update(before)
