"""The options of logging. Each is one row of `OPTIONS`; `docs/logging.md` shows the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.base.logs.levels import PYFLINKS_LEVEL, PYFLINKS_OVERRIDES, Levels, levels_of
from penstock.errors import ConfigurationError

LINES, LENGTH, FORMAT = "logging.max-lines-per-second", "logging.max-line-length", "logging.format"
TEXT, JSON = "text", "json"


@dataclass(frozen=True)
class LogOption:
    """A row of the table."""

    name: str
    default: str | None = None
    others: tuple[str, ...] = ()


OPTIONS = [
    LogOption(FORMAT, TEXT),
    LogOption(LINES, "1000"),
    LogOption(LENGTH, "16384"),
    LogOption(PYFLINKS_LEVEL),
    LogOption(PYFLINKS_OVERRIDES),
]


@dataclass
class LogSettings:
    """Settings of logging for the slots. `levels` may change while the job runs."""

    levels: Levels = field(default_factory=dict)
    lines_per_second: int = 1000
    """Greatest number of lines per second for all slots together. 0 lets only errors through."""
    line_length: int = 16_384
    """Greatest number of characters of a line, and of its traceback. The rest is cut off."""
    format: str = TEXT


def log_settings(configuration: Mapping[str, str]) -> LogSettings:
    """Return the settings of logging in a configuration. Raise ConfigurationError for a value that is not allowed."""
    chosen = configuration.get(FORMAT, TEXT).strip().lower()
    if chosen not in (TEXT, JSON):
        raise ConfigurationError(f"option {FORMAT} must be {TEXT} or {JSON}, not '{chosen}'")
    return LogSettings(
        levels_of(configuration), _number(configuration, LINES, 0), _number(configuration, LENGTH, 100), chosen
    )


def _number(configuration: Mapping[str, str], option: str, least: int) -> int:
    default = next(one.default or "" for one in OPTIONS if one.name == option)
    text = configuration.get(option, default).strip()
    if not text.isdecimal() or int(text) < least:
        raise ConfigurationError(f"option {option} must be a whole number of at least {least}, not '{text}'")
    return int(text)
