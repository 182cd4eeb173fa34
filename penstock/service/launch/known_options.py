"""The names of all options that some part of Penstock reads, and suggestions for mistyped names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, cast

from penstock.service.launch.options_without_effect import reason_without_effect

_TABLES = (
    "penstock.service.launch.options",
    "penstock.service.launch.translated_options",
    "penstock.service.launch.metric_options",
    "penstock.service.launch.client_options",
    "penstock.service.server.server_options",
    "penstock.service.rest.rest_options",
    "penstock.queryable.options",
    "penstock.service.reporters.reporter_options",
    "penstock.base.logs.log_options",
    "penstock.table.options.table_options",
    "penstock.service.gateway.gateway_options",
    "penstock.service.cli.sql.sql_client_options",
)
"""Modules with a list `OPTIONS`. Every part of Penstock that reads options adds its module here."""

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


class KnownOption(Protocol):
    """A row of a table of options."""

    @property
    def name(self) -> str: ...

    @property
    def default(self) -> str | None: ...

    @property
    def others(self) -> tuple[str, ...]: ...


def default_of(option: KnownOption) -> str | None:
    """Return an option's default, which may depend on the machine."""
    of_machine: Callable[[], str] | None = getattr(option, "machine_default", None)
    return option.default if of_machine is None else of_machine()


@cache
def known_options() -> dict[str, KnownOption]:
    """Return all options, by every name under which they may be set."""
    found: dict[str, KnownOption] = {}
    for module in _TABLES:
        if _is_there(module):
            for option in cast("Iterable[KnownOption]", import_module(module).OPTIONS):
                for name in (option.name, *option.others):
                    found.setdefault(name, option)
    return found


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def is_known(name: str) -> bool:
    """Return True if some part of Penstock, or Spark, reads an option of this name."""
    return name in known_options() or name.startswith(FREE)


def suggestion(name: str) -> str | None:
    """Return the known name that an unknown name resembles most, or None if no name is similar enough."""
    return next(iter(get_close_matches(name, known_options(), n=1, cutoff=_SIMILAR)), None)


def same_option(name: str) -> tuple[str, ...]:
    """Return every name that means the same as this one, the preferred name first; for an unknown name only itself."""
    option = known_options().get(name)
    return (name,) if option is None else (option.name, *option.others)


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
    reason = getattr(known_options().get(name), "no_effect", "") if known else reason_without_effect(name)
    if reason:
        return f"option '{prefix}{name}'{place} has no effect: {reason}"
    if known:
        return None
    if (meant := suggestion(name)) is not None:
        return f"there is no option '{prefix}{name}'{place}; did you mean '{prefix}{meant}'?"
    return f"no part of Penstock reads an option '{prefix}{name}'{place}"
