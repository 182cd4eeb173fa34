"""The options of the SQL client."""

from __future__ import annotations

from typing import Any

from penstock.base.options.option import Option
from penstock.base.options.parsers import positive, truth, words

MODES = ("tableau", "table", "changelog", "json")
MODE = "sql-client.execution.result-mode"
ROWS = "sql-client.execution.max-table-result.rows"
VERBOSE = "sql-client.verbose"
TIME_COST = "sql-client.display.print-time-cost"

OPTIONS: list[Option[Any]] = [
    Option(MODE, words(*MODES), "tableau"),
    Option(ROWS, positive, "1000"),
    Option(VERBOSE, truth, "false"),
    Option(TIME_COST, truth, "false"),
]
"""Every option of the SQL client."""
