"""Classes of the program's main script, and the names under which slots and driver exchange their objects.

A slot gets such a class by value and re-creates it; cloudpickle keeps of its name only the last part. The driver tells
the slots where every class of the job belongs, so that objects travel as a name and fields in both directions, and in
checkpoints:

- A class at the top level of the script, or inside of such a class, keeps its own name in `__main__`.
- A class that is defined inside a function belongs to a module that exists in memory only and is named after the
  function: `DC` in `def main()` is `DC` of `__main__.main`.
"""

from __future__ import annotations

import pickle
import sys
from io import BytesIO
from operator import attrgetter
from types import ModuleType
from typing import Any

import cloudpickle

from penstock.base.pickling import ByValuePickler

MAIN = "__main__"
Addresses = dict[str, tuple[str, str]]
"""Module and name of each class, by the identity that cloudpickle gives the class in all processes of the job."""


class ClassGatherer(ByValuePickler):
    """Pickles objects by value, and remembers which classes of the main script were among them."""

    def __init__(self, file: BytesIO, classes: dict[type, None]) -> None:
        super().__init__(file)
        self._classes = classes

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type) and obj.__module__ == MAIN:
            self._classes[obj] = None
        return super().reducer_override(obj)


def pickle_and_gather(value: Any, classes: dict[type, None]) -> bytes:
    """Pickle a value by value and add the classes of the main script that it needs to `classes`."""
    file = BytesIO()
    ClassGatherer(file, classes).dump(value)
    return file.getvalue()


def publish_classes(classes: dict[type, None]) -> Addresses:
    """Make the classes of a job importable in the driver, and return their addresses.

    If two classes have the same address, the result contains neither: objects of these travel with their class.
    """
    tracked = cloudpickle.cloudpickle._DYNAMIC_CLASS_TRACKER_BY_CLASS
    addresses = {defined: _address(defined) for defined in classes if defined in tracked}
    taken = list(addresses.values())
    unique = {defined: address for defined, address in addresses.items() if taken.count(address) == 1}
    for defined, address in unique.items():
        _bind(defined, *address)
    return {tracked[defined]: address for defined, address in unique.items()}


def pickle_classes(addresses: Addresses) -> bytes:
    """Pickle the classes themselves, for slots that run no operator which holds them but get their objects."""
    tracked = cloudpickle.cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID
    return pickle_and_gather([tracked[identity] for identity in addresses], {}) if addresses else b""


def adopt_classes(addresses: Addresses, definitions: bytes = b"") -> None:
    """Give the classes of a job their addresses in this process, so that plain pickle finds them.

    `definitions` re-creates those that no operator in this process has brought.

    A class from inside a function is reachable in `__main__` as well, if no other class has its name there: earlier
    versions wrote it into checkpoints under that name.
    """
    tracked = cloudpickle.cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID
    held = pickle.loads(definitions) if definitions else []
    for identity, (module, name) in addresses.items():
        adopted = tracked.get(identity)
        if adopted is None or "<locals>" in adopted.__qualname__:
            continue  # The class was not sent to this process, or it was defined in this process.
        adopted.__module__, adopted.__qualname__ = module, name
        _bind(adopted, module, name)
        if module != MAIN and (MAIN, name) not in addresses.values():
            _bind(adopted, MAIN, name)
    del held  # Until here nothing else may hold the classes, and the tracker does so weakly.


def adopt_all_classes() -> None:
    """Put all classes of the main script that this process has re-created at the top level of its own `__main__`."""
    for adopted in list(cloudpickle.cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID.values()):
        if adopted.__module__ == MAIN:
            _bind(adopted, MAIN, adopted.__qualname__)


def _address(defined: type) -> tuple[str, str]:
    """Return the module and the qualified name of a class. For a named tuple in a function, the function is unknown."""
    function, _, name = defined.__qualname__.rpartition(".<locals>.")
    if function:
        return f"{MAIN}.{function.replace('.<locals>', '')}", name
    try:
        is_global = attrgetter(name)(sys.modules[MAIN]) is defined
    except AttributeError:
        is_global = False
    return (MAIN if is_global else f"{MAIN}.<locals>"), name


def _bind(defined: type, module: str, name: str) -> None:
    """Make a class an attribute of a module. A class inside another class needs no attribute."""
    if "." not in name:
        setattr(sys.modules.setdefault(module, ModuleType(module)), name, defined)
