"""The settings of the queries of a program, as far as the choice of operators depends on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from penstock.common.configuration import parse_duration


class Options(Protocol):
    """The options of a query."""

    def get(self, key: str, default_value: str) -> str:
        """Return the value of an option, or the default."""
        ...


@dataclass(frozen=True)
class QuerySettings:
    """The options, the mode, and the number of subtasks."""

    config: Options
    batch: bool
    is_parallel: bool
    """True if an operator has several subtasks."""

    @property
    def zone(self) -> str:
        """The time zone of the session."""
        return self.config.get("table.local-time-zone", "UTC")

    def word(self, key: str, default: str) -> str:
        """Return an option that is a word, in upper case."""
        return self.config.get(key, default).strip().upper()

    def duration(self, key: str) -> int | None:
        """Return an option that is a duration, in milliseconds, or None if it is not set."""
        found = self.config.get(key, "")
        return parse_duration(found) if found else None

    @property
    def ttl(self) -> int:
        """The time to live of state, in milliseconds, or 0 for no limit."""
        return 0 if self.batch else self.duration("table.exec.state.ttl") or 0

    def ttl_of(self, own: int | None) -> int:
        """Return the time to live of state, in milliseconds. A query may have a time to live of its own."""
        return self.ttl if own is None or self.batch else own
