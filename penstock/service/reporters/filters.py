"""The choice of metrics for a reporter: Flink's filters, and variables that are left out or added."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from penstock.errors import ConfigurationError
from penstock.metrics.samples import COUNTER, GAUGE, HISTOGRAM, METER, Sample
from penstock.service.reporters.reporter import ReporterOptions

KINDS = (COUNTER, METER, GAUGE, HISTOGRAM)


@dataclass(frozen=True)
class Pattern:
    """A filter `<scope>[:<names>[:<types>]]`, such as `*.job:*Records*,uptime:counter,gauge`."""

    scope: re.Pattern[str]
    names: re.Pattern[str]
    kinds: frozenset[str]

    def matches(self, sample: Sample) -> bool:
        """Return True if the filter fits a sample."""
        return (
            sample.kind in self.kinds
            and self.names.fullmatch(sample.name) is not None
            and self.scope.fullmatch(".".join(sample.logical_scope)) is not None
        )


def pattern_of(text: str) -> Pattern:
    """Parse a filter. Raise ValueError with the allowed form."""
    scope, names, kinds, *more = [*(part.strip() for part in text.split(":")), "", "", ""]
    if any(more):
        raise ValueError(f"'{text}' has more than three parts: <scope>:<names>:<types>")
    wanted = [kind.strip().lower() for kind in kinds.split(",") if kind.strip() not in ("", "*")]
    unknown = [kind for kind in wanted if kind not in KINDS]
    if unknown:
        raise ValueError(f"there is no type of metrics '{unknown[0]}'; allowed are {', '.join(KINDS)}")
    return Pattern(_glob(scope or "*"), _any_of(names or "*"), frozenset(wanted or KINDS))


def _any_of(texts: str) -> re.Pattern[str]:
    return re.compile("|".join(_glob(text.strip()).pattern for text in texts.split(",")))


def _glob(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text).replace(r"\*", ".*"))


@dataclass(frozen=True)
class Sieve:
    """The metrics and variables that a reporter wants."""

    includes: tuple[Pattern, ...] = (pattern_of("*:*:*"),)
    excludes: tuple[Pattern, ...] = ()
    left_out: frozenset[str] = frozenset()
    """Names of variables to leave out, without brackets."""
    additional: Mapping[str, str] | None = None

    def sift(self, samples: Iterable[Sample]) -> list[Sample]:
        """Return the wanted samples with the wanted variables."""
        return [self._with_variables(sample) for sample in samples if self._wants(sample)]

    def _wants(self, sample: Sample) -> bool:
        included = any(pattern.matches(sample) for pattern in self.includes)
        return included and not any(pattern.matches(sample) for pattern in self.excludes)

    def _with_variables(self, sample: Sample) -> Sample:
        if not self.left_out and not self.additional:
            return sample
        kept = {name: value for name, value in sample.variables.items() if name.strip("<>") not in self.left_out}
        return replace(sample, variables={**kept, **{f"<{n}>": value for n, value in (self.additional or {}).items()}})


def sieve_of(options: ReporterOptions) -> Sieve:
    """Return the metrics and variables that a reporter's options choose. Raise ConfigurationError."""
    left_out = options.text("scope.variables.excludes").split(";")
    return Sieve(
        includes=_patterns(options, "filter.includes", "*:*:*"),
        excludes=_patterns(options, "filter.excludes", ""),
        left_out=frozenset(name.strip().strip("<>") for name in left_out if name.strip()),
        additional={n.strip("<>"): v for n, v in options.pairs("scope.variables.additional", ",", ":").items()},
    )


def _patterns(options: ReporterOptions, option: str, default: str) -> tuple[Pattern, ...]:
    texts = [part.strip() for part in options.text(option, default).split(";") if part.strip()]
    try:
        return tuple(pattern_of(text) for text in texts)
    except ValueError as error:
        raise ConfigurationError(f"option {options.full_name(option)} cannot be read: {error}") from None
