"""An option of the configuration: its name, the parser of its text, its default, and its effect.

A layer lists its options in a module of its own. `penstock.service.options.known_options` combines these lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from operator import attrgetter
from typing import Any, Generic, TypeVar

from penstock.errors import ConfigurationError

T = TypeVar("T")
Parser = Callable[[str], T]
Apply = Callable[[Any, Any], Any]
"""Function that puts a parsed value into settings. It returns new settings if the settings are frozen."""


class Effect(Enum):
    """Meaning that a known option has."""

    OWN = "has its effect"
    TRANSLATED = "is translated"
    """The option becomes a setting of Spark or of a process, which its note names."""
    IRRELEVANT = "is irrelevant"
    """The option is accepted and changes nothing, for the reason in its note."""
    REFUSED = "is refused"
    """Only the default is accepted, for the reason in the option's note."""


def ignore(settings: Any, value: Any) -> Any:
    """Return settings unchanged."""
    return settings


@dataclass(frozen=True)
class Option(Generic[T]):
    """An option. Its parser raises ValueError or ConfigurationError for a text that is not allowed.

    Applying `default` to new settings changes nothing. It is None or empty if no value means the same as an unset
    option.
    """

    name: str
    parse: Parser[T]
    default: str | None = None
    others: tuple[str, ...] = ()
    """Further names of the option, mostly from Flink 1.x."""
    apply: Apply = ignore
    effect: Effect = Effect.OWN
    note: str = ""
    """Setting that the option becomes, or the reason why it has no effect or is refused."""
    of_machine: Callable[[], str] | None = None
    """Function that returns the default if it depends on the machine."""

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every name of the option, the preferred one first."""
        return self.name, *self.others

    @property
    def initial(self) -> str | None:
        """The value of the option if it is not set, or None."""
        return (self.default or None) if self.of_machine is None else self.of_machine()

    def spelling(self, configuration: Mapping[str, str]) -> str | None:
        """Return the name under which the configuration sets the option, or None."""
        return next((name for name in self.spellings if name in configuration), None)

    def of(self, configuration: Mapping[str, str]) -> T | None:
        """Return the value in a configuration, or the default, or None. Raise ConfigurationError for a bad text."""
        name = self.spelling(configuration)
        text = self.initial if name is None else configuration[name]
        if text is None:
            return None
        try:
            return self.parse(text)
        except (ValueError, ConfigurationError) as error:
            raise ConfigurationError(f"option {self.name} cannot be {text!r}: {error}") from None

    def value(self, configuration: Mapping[str, str]) -> T:
        """Return the value in a configuration, or the default. The option has a default."""
        value = self.of(configuration)
        if value is None:
            raise ConfigurationError(f"option {self.name} has neither a value nor a default")
        return value


# --- where values go ---
def keep(path: str) -> Apply:
    """Return a function that sets a field of the settings. A path with dots names a field of one of their parts."""
    names = path.split(".")
    return lambda settings, value: _with_field(settings, names, value)


def _with_field(owner: Any, path: Sequence[str], value: Any) -> Any:
    """Return the owner with a new value. A frozen owner is replaced, another one is changed."""
    name, *rest = path
    held = _with_field(getattr(owner, name), rest, value) if rest else value
    if type(owner).__dataclass_params__.frozen:
        return replace(owner, **{name: held})
    setattr(owner, name, held)
    return owner


def call(path: str) -> Apply:
    """Return a function that gives the value to a method of the settings or of one of their parts."""
    method = attrgetter(path)

    def apply(settings: Any, value: Any) -> Any:
        method(settings)(value)
        return settings

    return apply


def enter(path: str, key: str) -> Apply:
    """Return a function that puts the value into a dictionary of the settings, under a key."""
    table = attrgetter(path)

    def apply(settings: Any, value: Any) -> Any:
        table(settings)[key] = value
        return settings

    return apply
