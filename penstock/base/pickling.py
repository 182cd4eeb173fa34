"""Conversion of objects into bytes: pickled by reference where possible, by value where a class cannot be imported.

`loads` reads bytes that outlive the process, such as those of a checkpoint, and also finds classes that have moved
since (`penstock/persisted.py`). `pickle.loads` reads bytes from another process of the same job.
"""

from __future__ import annotations

import pickle
from functools import cached_property
from io import BytesIO
from typing import Any, BinaryIO

import cloudpickle

from penstock import persisted


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("penstock."):
            return persisted.find_persisted(module, name)
        return super().find_class(module, name)


def load(stream: BinaryIO) -> Any:
    """Read one value from a stream, also one that an earlier version of Penstock has written."""
    return _Unpickler(stream).load()


def loads(data: bytes) -> Any:
    """Return the object that `dumps` pickled, in this version of Penstock or an earlier one."""
    return _Unpickler(BytesIO(data)).load()


class ByValuePickler(cloudpickle.Pickler):
    """cloudpickle that supports classes with a `functools.cached_property`, which has a lock before Python 3.12."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, cached_property):
            return _rebuild_cached_property, (obj.func, obj.attrname)
        return super().reducer_override(obj)


def _rebuild_cached_property(function: Any, name: str | None) -> cached_property[Any]:
    """Create the property again under its name, which Python sets only where a class is defined."""
    rebuilt = cached_property(function)
    if name is not None:
        rebuilt.__set_name__(None, name)  # type: ignore[arg-type]
    return rebuilt


def dumps_by_value(value: Any) -> bytes:
    """Pickle a value together with its classes and functions, if they cannot be imported elsewhere."""
    file = BytesIO()
    ByValuePickler(file).dump(value)
    return file.getvalue()


def dumps(value: Any) -> bytes:
    """Pickle a value, with cloudpickle if plain pickle cannot, as for classes defined inside functions."""
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        return dumps_by_value(value)


def can_be_saved(value: Any) -> bool:
    """Return True if `dumps` can pickle a value."""
    try:
        dumps(value)
    except Exception:
        return False
    return True
