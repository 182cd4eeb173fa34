"""The base class of reporters, their options, and the metrics that they get."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from penstock.common.configuration import parse_duration
from penstock.errors import ConfigurationError
from penstock.metrics.samples import Sample
from penstock.service.reporters.spans import Span

T = TypeVar("T")
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True)
class ReporterOptions:
    """The options of one reporter, without the prefix `metrics.reporter.<name>.`."""

    name: str
    values: Mapping[str, str]
    prefix: str = "metrics.reporter"

    def full_name(self, option: str) -> str:
        """Return the full name of an option."""
        return f"{self.prefix}.{self.name}.{option}"

    def text(self, option: str, default: str = "") -> str:
        """Return an option as text without surrounding blanks."""
        return self.values.get(option, default).strip()

    def needed(self, option: str) -> str:
        """Return a required option as text. Raise ConfigurationError if it is missing."""
        found = self.text(option)
        if not found:
            raise ConfigurationError(f"reporter '{self.name}' needs the option {self.full_name(option)}")
        return found

    def number(self, option: str, default: int) -> int:
        """Return an option as a whole number. Raise ConfigurationError for any other text."""
        return self._read(option, int, default, "it must be a whole number")

    def truth(self, option: str, default: bool) -> bool:
        """Return an option that is true or false. Raise ConfigurationError for any other text."""
        return self._read(option, lambda text: _TRUTHS[text.lower()], default, "it must be true or false")

    def millis(self, option: str, default: int) -> int:
        """Return a duration in milliseconds. Raise ConfigurationError for any other text."""
        return self._read(option, parse_duration, default, "it must be a duration, such as 10 s")

    def ports(self, option: str, default: str = "") -> list[int]:
        """Return the ports to try, in order. The option holds a port, several, or a range such as `9250-9260`."""
        return self._read(option, _ports, _ports(default), "it must be a port, or a range such as 9250-9260")

    def pairs(self, option: str, between: str, within: str) -> dict[str, str]:
        """Return the pairs of a text such as `key1:value1,key2:value2`.

        `between` separates pairs, and `within` separates a name from its value.
        """
        parts = [part.strip() for part in self.text(option).split(between) if part.strip()]
        for part in parts:
            if within not in part:
                raise ConfigurationError(f"option {self.full_name(option)}: '{part}' must be name{within}value")
        return {name.strip(): value.strip() for name, _, value in (part.partition(within) for part in parts)}

    def _read(self, option: str, parse: Callable[[str], T], default: T, allowed: str) -> T:
        text = self.text(option)
        if not text:
            return default
        try:
            return parse(text)
        except (ValueError, KeyError, ConfigurationError):
            raise ConfigurationError(f"option {self.full_name(option)} cannot be '{text}': {allowed}") from None


def _ports(text: str) -> list[int]:
    found: list[int] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, _, last = part.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    if any(not 0 <= port < 1 << 16 for port in found):
        raise ValueError(text)
    return found


@dataclass(frozen=True)
class ReporterContext:
    """The options and metrics of a reporter, from `open` on."""

    options: ReporterOptions
    samples: Callable[[], Sequence[Sample]]
    """Function that returns the current metrics that pass the reporter's filters. Any thread may call it."""
    delimiter: str = "."

    def full_name(self, sample: Sample) -> str:
        """Return the metric's name after its scope, in the format of `metrics.scope.*`."""
        return self.delimiter.join((*sample.scope, sample.name))


class Reporter:
    """Sends metrics to another system. Subclasses override `report`, and other methods if needed.

    One thread calls all methods except `check`, and does nothing else. They may block. If they take longer than the
    interval, reports are skipped. Errors, also of `open`, are logged, and the next interval tries again.
    """

    OPTIONS: ClassVar[tuple[str, ...]] = ()
    """Names of the reporter's own options. Other options cause a warning, unless this is empty."""
    context: ReporterContext

    def check(self, options: ReporterOptions) -> None:
        """Raise ConfigurationError or MissingDependency, before the job starts, if the reporter could never work."""

    def open(self, context: ReporterContext) -> None:
        """Prepare the reporter. Called before all other methods except `check`, and again until it succeeds."""
        self.context = context

    def report(self, samples: Sequence[Sample]) -> None:
        """Send all metrics. Called in every interval, and a last time before `close`."""

    def trace(self, spans: Sequence[Span]) -> None:
        """Send the spans that have ended since the last call. Called for reporters of `traces.reporter.*`."""

    def close(self) -> None:
        """Release the reporter's resources. Called once at the end."""


# --- what several reporters do ---
def plain(variable: str) -> str:
    """Return a variable's name without its brackets."""
    return variable.removeprefix("<").removesuffix(">")


def number_of(value: Any) -> float | int | None:
    """Return a value as a number, or None for texts and other values that are not numbers."""
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, (int, float)) else None


def readings(sample: Sample) -> dict[str, float | int]:
    """Return every finite number of a sample, by the name of its part."""
    found = {part: number_of(value) for part, value in sample.values.items()}
    return {part: number for part, number in found.items() if number is not None and math.isfinite(number)}
