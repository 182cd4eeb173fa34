"""The options of the SQL client."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ClientOption:
    """An option's name, its default, and other names that mean the same."""

    name: str
    default: str | None = None
    others: tuple[str, ...] = ()


MODE = "sql-client.execution.result-mode"
ROWS = "sql-client.execution.max-table-result.rows"
VERBOSE = "sql-client.verbose"
TIME_COST = "sql-client.display.print-time-cost"

OPTIONS = [
    ClientOption(MODE, "tableau"),
    ClientOption(ROWS, "1000"),
    ClientOption(VERBOSE, "false"),
    ClientOption(TIME_COST, "false"),
]
"""Every option of the SQL client."""
