"""A table in the terminal that changes with the rows of a stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from penstock.base.display.short_texts import count, one_line, printable
from penstock.common.types import Row
from penstock.table.display.materialised_rows import Materialised
from penstock.table.display.row_printing import NULL, texts_of
from penstock.table.types.data_types import DataType

_BELOW = 6
"""Number of terminal lines for the headings and the caption."""


def show_live(
    names: Sequence[str],
    types: Sequence[DataType],
    rows: Iterable[Row],
    limit: int,
    zone: str = "UTC",
    console: Any = None,
) -> None:
    """Show the table until its stream ends or Ctrl-C is pressed. The last state stays on the screen."""
    from rich.console import Console
    from rich.live import Live

    held, console = Materialised(limit), console or Console()
    with Live(console=console, auto_refresh=False, refresh_per_second=8) as live:
        try:
            for row in rows:
                held.apply(texts_of(row, types, zone), row.get_row_kind())
                live.update(_draw(names, held, console.height - _BELOW))
        except KeyboardInterrupt:
            pass
        live.update(_draw(names, held, console.height - _BELOW, is_over=True), refresh=True)


def _draw(names: Sequence[str], held: Materialised, height: int, is_over: bool = False) -> Any:
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    ends = "" if is_over else "; Ctrl-C ends the query"
    caption = f"{count(len(held), 'row')}, {count(held.changes, 'change')}{ends}"
    table = Table(box=box.SIMPLE_HEAD)
    for name in names:
        table.add_column(Text(name))
    for row in held.newest(max(height, 3)):
        table.add_row(*(Text(NULL, "dim") if text is None else Text(one_line(printable(text))) for text in row))
    return Group(table, Text(f" {caption}", "dim italic"))
