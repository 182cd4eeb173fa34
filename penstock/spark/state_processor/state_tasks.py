"""Parts of the driver's process that Spark tasks need to handle its objects: module paths and main-script classes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import cloudpickle

from penstock import compat
from penstock.base.main_classes import adopt_all_classes
from penstock.base.pickling import dumps_by_value
from penstock.errors import PenstockError
from penstock.spark.state_processor.state_sessions import Session


@dataclass(frozen=True)
class Outfit:
    """The module paths and classes that a task installs before it unpickles anything."""

    search_path: tuple[str, ...]
    classes: tuple[bytes, ...]
    """Classes at the top level of the main script, pickled by value."""
    pyflink: bool
    """Whether `import pyflink` finds Penstock."""

    @classmethod
    def of_this_process(cls) -> Outfit:
        """Return the module paths and the main script's classes of this process."""
        main = vars(sys.modules["__main__"]).values()
        own = [value for value in main if isinstance(value, type) and value.__module__ == "__main__"]
        pickled = [made for made in map(_pickle_class, own) if made is not None]
        return cls(tuple(folder for folder in sys.path if folder), tuple(pickled), compat.is_installed())

    def put_on(self) -> None:
        """Make the modules and classes available in this process."""
        sys.path.extend(folder for folder in self.search_path if folder not in sys.path)
        if self.pyflink:
            compat.install()
        for made in self.classes:
            cloudpickle.loads(made)
        adopt_all_classes()


def _pickle_class(value: type) -> bytes | None:
    """Return the pickled class, or None if it cannot be pickled. The state may hold no instance of it."""
    try:
        return dumps_by_value(value)
    except Exception:
        return None


def apply_in_tasks(session: Session, items: Sequence[Any], outfit: Outfit, function: Callable[[Any], Any]) -> list[Any]:
    """Apply a function to every item in Spark tasks, and return the results. Raise Penstock's errors unchanged."""
    return without_errors(session.map(items, partial(_attempt, outfit, function)))


def without_errors(results: list[Any]) -> list[Any]:
    """Return results of tasks. Raise the first PenstockError among them."""
    for result in results:
        if isinstance(result, PenstockError):
            raise result
    return results


def _attempt(outfit: Outfit, function: Callable[[Any], Any], share: Any) -> Any:
    outfit.put_on()
    try:
        return function(share)
    except PenstockError as error:
        return error
