"""The options of logging. Each is one row of `OPTIONS`; `docs/logging.md` shows the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.base.logs.levels import PYFLINKS_LEVEL, PYFLINKS_OVERRIDES, Levels, levels_of
from penstock.base.options.option import Option, Parser
from penstock.base.options.parsers import words

LINES, LENGTH, FORMAT = "logging.max-lines-per-second", "logging.max-line-length", "logging.format"
TEXT, JSON = "text", "json"


def _at_least(least: int) -> Parser[int]:
    def parse(text: str) -> int:
        plain = text.strip()
        if not plain.isdecimal() or int(plain) < least:
            raise ValueError(f"it must be a whole number of at least {least}")
        return int(plain)

    return parse


_FORMAT = Option(FORMAT, words(TEXT, JSON), TEXT)
_LINES = Option(LINES, _at_least(0), "1000")
_LENGTH = Option(LENGTH, _at_least(100), "16384")

OPTIONS: list[Option[Any]] = [_FORMAT, _LINES, _LENGTH, Option(PYFLINKS_LEVEL, str), Option(PYFLINKS_OVERRIDES, str)]


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
    return LogSettings(
        levels_of(configuration),
        _LINES.value(configuration),
        _LENGTH.value(configuration),
        _FORMAT.value(configuration),
    )
