"""The names of all options that some part of Penstock reads, and suggestions for mistyped names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from itertools import chain
from typing import Any

from penstock.base.options.option import Effect, Option
from penstock.service.options.options_without_effect import reason_without_effect

FREE = (
    "spark.",
    "pipeline.global-job-parameters.",
    "metrics.reporter.",
    "traces.reporter.",
    "logging.level.",
    "flink.hadoop.",
)
"""Prefixes of free names. Such options are passed on unchecked."""

_SIMILAR = 0.86
"""Least likeness, from 0 to 1, of a mistyped name and the name that it was meant to be."""


@cache
def known_options() -> dict[str, Option[Any]]:
    """Return all options, by every name under which they may be set.

    Every layer that reads options has a list of its own, which is named here.
    """
    from penstock.base.logs import log_options
    from penstock.service.options import (
        client_options,
        environment_options,
        gateway_options,
        metric_options,
        reporter_options,
        rest_options,
        server_options,
        sql_client_options,
        translated_options,
    )
    from penstock.table.options import table_options

    layers: list[Sequence[Option[Any]]] = [
        environment_options.OPTIONS,
        translated_options.OPTIONS,
        metric_options.OPTIONS,
        client_options.OPTIONS,
        server_options.OPTIONS,
        rest_options.OPTIONS,
        reporter_options.OPTIONS,
        log_options.OPTIONS,
        table_options.OPTIONS,
        gateway_options.OPTIONS,
        sql_client_options.OPTIONS,
    ]
    by_name: dict[str, Option[Any]] = {}
    for option in chain.from_iterable(layers):
        for name in option.spellings:
            by_name.setdefault(name, option)
    return by_name


def is_known(name: str) -> bool:
    """Return True if some part of Penstock, or Spark, reads an option with this name."""
    return name in known_options() or name.startswith(FREE)


def suggestion(name: str) -> str | None:
    """Return the known name that an unknown name resembles most, or None if no name is similar enough."""
    return next(iter(get_close_matches(name, known_options(), n=1, cutoff=_SIMILAR)), None)


def same_option(name: str) -> tuple[str, ...]:
    """Return every name that means the same as this one, the preferred name first; for an unknown name only itself."""
    option = known_options().get(name)
    return (name,) if option is None else option.spellings


_judged: set[str] = set()
"""Names about which this process has warned."""


def new_warnings(origins: Mapping[str, str | None], prefix: str = "") -> list[str]:
    """Return a warning for each name that is unknown or has no effect, except names that were warned about before.

    `origins` maps each name to its place, or to None. The warnings put `prefix` before each name.
    """
    warnings = []
    for name, origin in origins.items():
        if name not in _judged and (warning := _warning(name, f" ({origin})" if origin else "", prefix)) is not None:
            _judged.add(name)
            warnings.append(warning)
    return warnings


def _warning(name: str, place: str, prefix: str) -> str | None:
    known = is_known(name)
    option = known_options().get(name)
    reason = _reason(option) if known else reason_without_effect(name)
    if reason:
        return f"option '{prefix}{name}'{place} has no effect: {reason}"
    if known:
        return None
    if (meant := suggestion(name)) is not None:
        return f"there is no option '{prefix}{name}'{place}; did you mean '{prefix}{meant}'?"
    return f"no part of Penstock reads an option '{prefix}{name}'{place}"


def _reason(option: Option[Any] | None) -> str:
    return option.note if option is not None and option.effect is Effect.IRRELEVANT else ""
