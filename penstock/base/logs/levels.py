"""Levels of loggers: parsing them from a configuration, reading and changing them in a process."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from penstock.errors import ConfigurationError

PREFIX = "logging.level."
ROOT = "root"
PYFLINKS_LEVEL, PYFLINKS_OVERRIDES = "python.logging.default.level", "python.logging.level.overrides"
OFF = logging.CRITICAL + 10
_WORDS = {
    "ALL": 1,
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "CRITICAL": logging.CRITICAL,
    "OFF": OFF,
}
"""Numbers of levels by name: Python's names, and Log4j's where they differ."""
_NAMES = {1: "ALL", 5: "TRACE", OFF: "OFF"}
Levels = dict[str, str]
"""Levels by the names of loggers. An empty level means that the logger takes the level of the one above it."""


def level_of(text: str) -> int:
    """Return the number of a level. Raise ConfigurationError if there is no such level."""
    word = text.strip().upper()
    if word not in _WORDS:
        allowed = "ALL, TRACE, DEBUG, INFO, WARN, WARNING, ERROR, FATAL, CRITICAL, OFF"
        raise ConfigurationError(f"there is no log level '{text}'; allowed are {allowed}")
    return _WORDS[word]


def check_levels(levels: Mapping[str, str]) -> Levels:
    """Return the same levels after checking each."""
    for name, level in levels.items():
        if not name.strip():
            raise ConfigurationError(f"the level {level} is given without a logger: name a logger, or {ROOT}")
        if level:
            level_of(level)
    return dict(levels)


def levels_of(configuration: Mapping[str, str]) -> Levels:
    """Return the levels from `logging.level.<logger>`, or from PyFlink's options where the former are not set."""
    levels: Levels = {}
    if PYFLINKS_LEVEL in configuration:
        levels[ROOT] = configuration[PYFLINKS_LEVEL]
    for pair in configuration.get(PYFLINKS_OVERRIDES, "").split(","):
        name, _, level = pair.strip(" {}").partition(":")
        if pair.strip():
            levels[name.strip()] = level.strip()
    given = {name.removeprefix(PREFIX): level for name, level in configuration.items() if name.startswith(PREFIX)}
    return check_levels({**levels, **given})


def apply(levels: Mapping[str, str]) -> None:
    """Set the levels of these loggers in this process. Other loggers keep their levels."""
    for name, level in levels.items():
        number = level_of(level) if level else logging.WARNING if name == ROOT else logging.NOTSET
        logging.getLogger(None if name == ROOT else name).setLevel(number)


def current() -> Levels:
    """Return the levels that were set on loggers of this process."""
    there = {ROOT: logging.getLogger(), **logging.root.manager.loggerDict}
    return {
        name: _name(logger.level)
        for name, logger in there.items()
        if isinstance(logger, logging.Logger) and logger.level
    }


def _name(level: int) -> str:
    return _NAMES.get(level) or next((word for word, number in _WORDS.items() if number == level), _nearest(level))


def _nearest(level: int) -> str:
    """Return the nearest named level below a level without a name. It lets slightly more through."""
    return max((number, word) for word, number in _WORDS.items() if number <= max(level, 1))[1]
