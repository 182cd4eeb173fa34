"""What a reporter is, and what it is given: its options, and the metrics that it may see."""

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
    """The options of one reporter, without the `metrics.reporter.<name>.` in front."""

    name: str
    values: Mapping[str, str]
    prefix: str = "metrics.reporter"

    def full_name(self, option: str) -> str:
        return f"{self.prefix}.{self.name}.{option}"

    def text(self, option: str, default: str = "") -> str:
        return self.values.get(option, default).strip()

    def needed(self, option: str) -> str:
        """A text that has to be there."""
        found = self.text(option)
        if not found:
            raise ConfigurationError(f"reporter '{self.name}' needs the option {self.full_name(option)}")
        return found

    def number(self, option: str, default: int) -> int:
        return self._read(option, int, default, "it must be a whole number")

    def truth(self, option: str, default: bool) -> bool:
        return self._read(option, lambda text: _TRUTHS[text.lower()], default, "it must be true or false")

    def millis(self, option: str, default: int) -> int:
        return self._read(option, parse_duration, default, "it must be a time, such as 10 s")

    def ports(self, option: str, default: str = "") -> list[int]:
        """A port, several, or a range such as `9250-9260`: they are tried in this order."""
        return self._read(option, _ports, _ports(default), "it must be a port, or a range such as 9250-9260")

    def pairs(self, option: str, between: str, within: str) -> dict[str, str]:
        """Such as `key1:value1,key2:value2`."""
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
    """What a reporter works with from `open` on."""

    options: ReporterOptions
    samples: Callable[[], Sequence[Sample]]
    """The metrics of this moment, as far as the reporter's filters let them through; may be called from any thread."""
    delimiter: str = "."

    def full_name(self, sample: Sample) -> str:
        """The metric's name behind its formatted scope, as `metrics.scope.*` says."""
        return self.delimiter.join((*sample.scope, sample.name))


class Reporter:
    """Sends metrics somewhere. Subclasses override `report`, and what else they need.

    All methods are called by one thread, which does nothing else: they may block, and if they take longer than the
    interval, turns are left out. What they raise is logged, and the next turn tries again. What `open` raises ends the
    start of the job, if it is a ConfigurationError; everything else is tried again later.
    """

    OPTIONS: ClassVar[tuple[str, ...]] = ()
    """The names of its own options; an option that is not among them is warned of. Empty: it is not looked at."""
    context: ReporterContext

    def check(self, options: ReporterOptions) -> None:
        """Raise ConfigurationError or MissingDependency, before the job starts, if it could never work."""

    def open(self, context: ReporterContext) -> None:
        """Called once before everything else."""
        self.context = context

    def report(self, samples: Sequence[Sample]) -> None:
        """Called every interval with all metrics, and a last time before `close`."""

    def trace(self, spans: Sequence[Span]) -> None:
        """Called with what has come to its end since the last turn, if the reporter is one of `traces.reporter.*`."""

    def close(self) -> None:
        """Called once at the end."""


# --- what several reporters do ---
def plain(variable: str) -> str:
    """A variable's name without its brackets."""
    return variable.removeprefix("<").removesuffix(">")


def number_of(value: Any) -> float | int | None:
    """What a value is as a number; None for texts and whatever else is none."""
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, (int, float)) else None


def readings(sample: Sample) -> dict[str, float | int]:
    """Every finite number that a sample holds, by the name that it has behind the metric's own."""
    found = {part: number_of(value) for part, value in sample.values.items()}
    return {part: number for part, number in found.items() if number is not None and math.isfinite(number)}
