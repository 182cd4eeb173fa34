"""Output of commands: tables for people, JSON for scripts, and progress on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

_NO_TERMINAL = 1000
"""Width of a table, in characters, if the output is not a terminal."""


def errors() -> Console:
    """Return a console on the current standard error."""
    from rich.console import Console

    return Console(stderr=True)


def warn(message: str) -> None:
    """Print a warning on standard error. It does not end the command."""
    console = errors()
    console.print("[yellow]warning[/yellow]", end=": ")
    console.print(message, markup=False, highlight=False, soft_wrap=True)


def as_json(value: Any) -> None:
    """Print one JSON document on standard output."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def line(text: str) -> None:
    """Print a line on standard output, and flush it, because a script may wait for it."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def raw(data: bytes) -> None:
    """Write bytes to standard output unchanged, after all earlier output."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table on standard output. If that is not a terminal, lines are not wrapped."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, column in enumerate(columns):
        made.add_column(column, no_wrap=index == 0, overflow="fold")  # the first column names the subject of the row
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    console = Console()
    (console if console.is_terminal else Console(width=_NO_TERMINAL)).print(made)


@contextmanager
def progress(what: str) -> Iterator[Callable[[str], None] | None]:
    """Show on a terminal that an operation is under way. Yield a function that adds details, or None."""
    console = errors()
    if not console.is_terminal:
        yield None
        return
    with console.status(f"{what} …") as status:
        yield lambda known: status.update(f"{what} … {known}")


def moment(millis: int) -> str:
    """Return a time as text in the local time zone."""
    return "-" if millis < 0 else datetime.fromtimestamp(millis / 1000).strftime("%Y-%m-%d %H:%M:%S")


def duration(millis: int) -> str:
    """Return a duration as text in its two largest units.

    >>> duration(93_784_000), duration(65_000), duration(1_500), duration(-1)
    ('1d 2h', '1m 5s', '1.5s', '-')
    """
    if millis < 0:
        return "-"
    if millis < 10_000:
        return f"{millis / 1000:.1f}s"
    seconds = millis // 1000
    parts = [(seconds // 86_400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s")]
    largest = next(index for index, (number, _) in enumerate(parts) if number or index == 3)
    return " ".join(f"{number}{unit}" for number, unit in parts[largest : largest + 2])
