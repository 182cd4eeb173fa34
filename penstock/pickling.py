"""How objects become bytes: pickled by reference where possible, by value where a class cannot be imported."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import cloudpickle

loads = pickle.loads


def dumps(value: Any) -> bytes:
    """Plain pickle, or cloudpickle for what plain pickle does not know, such as classes defined inside functions."""
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        return cloudpickle.dumps(value)  # type: ignore[no-any-return]


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
