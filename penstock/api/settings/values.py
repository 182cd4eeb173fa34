"""Base of settings objects, which are compared and printed by value, and checks of their values."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


class Settings:
    """Plain data with a type. Two objects are equal if their types and all attributes are equal."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name.lstrip('_')}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__qualname__}({shown})"


def at_least(what: str, value: int, minimum: int) -> int:
    """Return `value` if it is a whole number of at least `minimum`. The error names the setting `what`."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{what} must be a whole number, not {value!r}")
    if value < minimum:
        raise ValueError(f"{what} must be at least {minimum}, not {value}")
    return value


def instance_of(what: str, value: object, kind: type[T]) -> T:
    """Return `value` if it is a `kind`. The error names the setting."""
    if not isinstance(value, kind):
        raise TypeError(f"{what} must be a {kind.__qualname__}, not {value!r}")
    return value


def check_kind(kind: type, value: Any) -> Any:
    """Return `value` if it is a `kind`. The error does not name the argument, because the calling method does."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__.startswith(tuple("AEIOU")) else "a"
        raise TypeError(f"expected {article} {kind.__name__}, not {value!r}")
    return value
