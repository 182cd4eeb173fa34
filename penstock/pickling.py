"""How objects become bytes: pickled by reference where possible, by value where a class cannot be imported.

Bytes that outlive the process, such as those of a checkpoint, are read with `loads`, which also finds classes that have
been moved since (`penstock/persisted.py`). Bytes from another process of the same job are read with `pickle.loads`.
"""

from __future__ import annotations

import pickle
import sys
from io import BytesIO
from typing import Any

import cloudpickle

from penstock import persisted


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("penstock."):
            return persisted.found(module, name)
        return super().find_class(module, name)


def loads(data: bytes) -> Any:
    """What `dumps` was given, in this version of Penstock or an earlier one."""
    return _Unpickler(BytesIO(data)).load()


def dumps(value: Any) -> bytes:
    """Plain pickle, or cloudpickle for what plain pickle does not know, such as classes defined inside functions."""
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        return cloudpickle.dumps(value)  # type: ignore[no-any-return]


def can_be_saved(value: Any) -> bool:
    """Whether `dumps` can make bytes of a value."""
    try:
        dumps(value)
    except Exception:
        return False
    return True


def adopt_main_classes() -> None:
    """Make the classes of the program's main script importable in this process, so that plain pickle finds them.

    Unpickling a program by value re-creates its classes but binds them to no module. cloudpickle keeps track of the
    classes it re-created; those of `__main__` that sit at its top level are put where pickle will look for them.
    """
    tracked = getattr(cloudpickle.cloudpickle, "_DYNAMIC_CLASS_TRACKER_BY_ID", None) or {}
    main = sys.modules["__main__"]
    for adopted in list(tracked.values()):
        if adopted.__module__ == "__main__" and "." not in adopted.__qualname__:
            setattr(main, adopted.__qualname__, adopted)
