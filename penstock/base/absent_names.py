"""Stand-ins for PyFlink's names that do not exist here. They can be imported, and their use raises an error."""

from __future__ import annotations

from typing import Any, NoReturn

from penstock.errors import UnsupportedOperation

__all__ = ["absent", "absent_object"]


class _Absent(type):
    """A class that can be named, in hints or as a base, but cannot be instantiated."""

    advice: str

    def __call__(cls, *args: Any, **named: Any) -> NoReturn:
        raise UnsupportedOperation(f"{cls.__name__} does not exist here: {cls.advice}")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnsupportedOperation(f"{cls.__name__}.{name} does not exist here: {cls.advice}")


def absent(name: str, advice: str) -> Any:
    """Return a class with that name. Creating an object of it, or using an attribute, raises UnsupportedOperation."""
    return _Absent(name, (), {"advice": advice, "__doc__": f"Does not exist here: {advice}"})


class absent_object:  # noqa: N801 - stands where a function would return something
    """An object that exists but raises an error with advice when any attribute is used."""

    def __init__(self, name: str, advice: str) -> None:
        self.__dict__.update(_name=name, _advice=advice)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnsupportedOperation(f"{self._name}.{name} does not exist here: {self._advice}")

    def __repr__(self) -> str:
        return f"<{self._name}: {self._advice}>"
