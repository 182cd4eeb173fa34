"""A table in the terminal that changes with the rows of a stream."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

from penstock.common.types import Row, RowKind
from penstock.table.api.row_printing import text_of
from penstock.table.types.data_types import DataType

ADDED = (RowKind.INSERT, RowKind.UPDATE_AFTER)


class Materialised:
    """The rows that a changelog leaves. If there are too many, the oldest rows are forgotten."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rows: OrderedDict[tuple[str, ...], int] = OrderedDict()
        self.changes = 0

    def apply(self, row: tuple[str, ...], added: bool) -> None:
        """Add or remove a row."""
        self.changes += 1
        count = self._rows.get(row, 0) + (1 if added else -1)
        if count > 0:
            self._rows[row] = count
            if len(self._rows) > self._limit:
                self._rows.popitem(last=False)
        else:
            self._rows.pop(row, None)

    def newest(self, count: int) -> list[tuple[str, ...]]:
        """Return the newest rows in the order in which they came."""
        rows = [row for row, times in self._rows.items() for _ in range(times)]
        return rows[-count:]

    def __len__(self) -> int:
        return sum(self._rows.values())


def show_live(
    names: Sequence[str], types: Sequence[DataType], rows: Iterable[Row], limit: int, zone: str = "UTC"
) -> None:
    """Show the table until its stream ends or Ctrl-C is pressed. The last state stays on the screen."""
    from rich.console import Console
    from rich.live import Live

    held, console = Materialised(limit), Console()
    with Live(console=console, auto_refresh=False, refresh_per_second=8) as live:
        try:
            for row in rows:
                values = tuple(text_of(value, kind, zone) for value, kind in zip(row, types, strict=True))
                held.apply(values, row.get_row_kind() in ADDED)
                live.update(_draw(names, held, console.height - 6))
            live.update(_draw(names, held, console.height - 6), refresh=True)
        except KeyboardInterrupt:
            live.update(_draw(names, held, console.height - 6), refresh=True)


def _draw(names: Sequence[str], held: Materialised, height: int) -> Any:
    from rich import box
    from rich.table import Table

    shown = held.newest(max(height, 3))
    table = Table(box=box.SIMPLE_HEAD, caption=f"{len(held)} rows, {held.changes} changes; Ctrl-C ends the query")
    for name in names:
        table.add_column(name)
    for row in shown:
        table.add_row(*row)
    return table
