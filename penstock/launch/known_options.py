"""The names of all options that some part of Penstock reads, and what a mistyped name may have been meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, cast

_TABLES = (
    "penstock.launch.options",
    "penstock.launch.metric_options",
    "penstock.launch.client_options",
    "penstock.server.options",
    "penstock.rest.settings",
    "penstock.queryable.options",
    "penstock.reporters.options",
    "penstock.logs.settings",
)
"""Modules with a list `OPTIONS`. A part that reads options of its own adds its module here."""

FREE = ("spark.", "pipeline.global-job-parameters.", "metrics.reporter.", "traces.reporter.", "logging.level.")
"""Names that begin like this are passed on as they are, and cannot be judged."""

_SIMILAR = 0.86
"""Below this likeness, two names are more often two options than one with a mistake in it."""


class KnownOption(Protocol):
    """A row of a table of options."""

    @property
    def name(self) -> str: ...

    @property
    def default(self) -> str | None: ...

    @property
    def others(self) -> tuple[str, ...]: ...


@cache
def known_options() -> dict[str, KnownOption]:
    """All options, by every name under which they may be set."""
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
    """Whether some part of Penstock, or Spark, reads an option of this name."""
    return name in known_options() or name.startswith(FREE)


def suggestion(name: str) -> str | None:
    """The known name that an unknown one resembles, if any does."""
    return next(iter(get_close_matches(name, known_options(), n=1, cutoff=_SIMILAR)), None)


def same_option(name: str) -> tuple[str, ...]:
    """Every name that means the same as this one, the preferred one first; for an unknown name only itself."""
    option = known_options().get(name)
    return (name,) if option is None else (option.name, *option.others)
